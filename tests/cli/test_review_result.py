"""Findings in a review's result, also those of an answer that was told back: by rlmd review and serve."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
from harness import turn  # noqa: E402

GOOD = {"rule": "memory-safety", "severity": "error", "confidence": 0.9, "message": "it is freed twice",
        "path": "a.c", "quote": "free(a);", "line": 1, "patch": None}


class Spare(client.ServeTest):
    def setUp(self):
        super().setUp()
        self.write("tree/a.c", "int f(char *a)\n{\n\tfree(a);\n\tfree(a);\n}\n")
        lost = {**GOOD, "quote": "strcpy(b, a);"}
        self.texts = "FINAL(%s)" % json.dumps({"findings": [GOOD, lost]}), "I am done."

    def check(self, result):
        self.assertEqual((result["success"], result["error"]), (True, None))
        self.assertEqual([each["line"] for each in result["review"]["findings"]], [3])
        (warning,) = [each for each in result["warnings"] if "told back" in each]
        self.assertIn("which gave no other answer: ", warning)
        self.assertIn("free(a);", result["output"])

    def test_of_serve(self):
        peer = self.open(model_request=client.model(*self.texts))
        self.check(self.answered(peer, model="client", review={"path": "tree"},
                                 options={"quick": True, "max-iterations": 2}))
        self.assertEqual(self.close(peer), (0, ""))

    def test_of_the_command(self):
        script = self.script(turn(self.texts[0], 0), {**turn(self.texts[1]), "repeat": True},
                             {"match": {"kind": "forced"}, "response": {"text": self.texts[1]}})
        outcome = self.rlmd("review", "-q", "-p", "replay", "--replay", script, "--quick", "--json",
                            "--max-iterations", "2", "tree")
        self.assertEqual(outcome.status, 3, outcome.err)
        self.check(outcome.result)


if __name__ == "__main__":
    unittest.main()

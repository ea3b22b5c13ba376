"""rlmd trace with --chrome and --otlp: options that do not go together, and where it is written."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trace"))
from exports import ExportTest  # noqa: E402


class Options(ExportTest):
    def test_what_excludes_what(self):
        self.run_it()
        for words in (["--otlp", "-", "--html", "x"], ["--otlp", "-", "--follow"],
                      ["--otlp", "-", "--text"], ["--otel-content"]):
            self.assertIn("rlmd", self.trace(*words, status=2).err)

    def test_nothing_is_written_halfway(self):
        self.run_it()
        self.write("c.json", "old")
        self.write("bad", "words\n")
        self.trace("--chrome", "c.json", status=8, file="bad")
        self.assertEqual((self.dir / "c.json").read_text(), "old")
        self.trace("--chrome", "nowhere/c.json", status=2)
        self.trace("--chrome", "c.json")
        self.assertTrue(json.loads((self.dir / "c.json").read_text())["traceEvents"])

    def test_a_trace_of_before(self):
        self.run_it()
        text = (self.dir / "t.jsonl").read_text().replace('"startedAt"', '"other"').replace('"formatVersion":1,', '')
        self.write("old.txt", text)
        self.assertIn("does not say when", self.trace("--otlp", "-", status=8, file="old.txt").err)
        (self.dir / "old.txt").unlink()  # it is no trace of this program's form


if __name__ == "__main__":
    unittest.main()

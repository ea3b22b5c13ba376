"""rlmd trace --chrome: what Perfetto reads."""

import json
import unittest

from exports import ExportTest


class Chrome(ExportTest):
    def test_each_span_is_one_event(self):
        self.run_it()
        self.trace("--chrome", "c.json")
        made = json.loads((self.dir / "c.json").read_text())
        events = made["traceEvents"]
        self.assertEqual(made["displayTimeUnit"], "ms")
        kinds = [each["cat"] for each in events]
        self.assertEqual({kind: kinds.count(kind) for kind in set(kinds)},
                         {"run": 3, "turn": 4, "call": 41, "block": 3})
        for each in events:
            self.assertEqual((each["ph"], each["pid"]), ("X", 1))
            self.assertGreaterEqual(each["dur"], 0)
        (failed,) = [each for each in events if each["args"].get("error")]
        self.assertEqual((failed["name"], failed["args"]["error"]), ("python", "exception"))
        self.assertNotIn("secret", json.dumps(events))

    def overlap(self):
        """Moves the second sub-run, such that it begins inside of the first one and ends behind it."""
        path = self.dir / "t.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()]
        first, second = [each["run"] for each in events if each["event"] == "run" and each["depth"]]
        last = max(each["seq"] for each in events if each.get("run") in (first, second))
        for each in events:
            ends = each["event"] in ("end", "iteration", "code")
            shift = 2000 * (each.get("run") == first and ends)
            if each.get("run") == second:
                shift = 3000 if ends else 1000
            if each["seq"] > last:
                shift = 4000
            for key in ("ms", "startedMs", "queuedMs"):
                if key in each:
                    each[key] += shift
        path.write_text("".join(json.dumps(each) + "\n" for each in events))

    def test_spans_of_one_row_are_nested(self):
        self.run_it()
        self.overlap()
        self.trace("--chrome", "c.json")
        rows = {}
        for each in json.loads((self.dir / "c.json").read_text())["traceEvents"]:
            rows.setdefault(each["tid"], []).append((each["ts"], each["ts"] + each["dur"]))
        self.assertGreater(len(rows), 1)
        for spans in rows.values():
            for begin, end in spans:
                for other, last in spans:
                    self.assertFalse(begin < other < end < last, (begin, end, other, last))

    def test_what_is_no_trace(self):
        self.write("bad", "words\n")
        outcome = self.trace("--chrome", "c.json", status=8, file="bad")
        self.assertFalse((self.dir / "c.json").exists())
        self.assertIn("bad", outcome.err)
        for others in (["--html", "x"], ["--otlp", "-"], ["--follow"], ["--text"]):
            self.trace("--chrome", "c.json", *others, status=2)


if __name__ == "__main__":
    unittest.main()

"""rlmd trace --otlp URL, beside a collector on loopback."""

import unittest

from exports import Collector, ExportTest
from test_otlp import spans_of


class Push(ExportTest):
    def setUp(self):
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.close)

    def test_of_a_file(self):
        self.run_it()
        for url in (self.collector.url, self.collector.url + "/v1/traces",
                    self.collector.url + "/otel/"):
            self.trace("--otlp", url, OTEL_EXPORTER_OTLP_HEADERS="authorization=Basic%20abc,x=1")
        paths = [path for path, _, _ in self.collector.requests]
        self.assertEqual(paths, ["/v1/traces", "/v1/traces", "/otel/v1/traces"])
        for _, headers, text in self.collector.requests:
            self.assertEqual((headers["Content-Type"], headers["authorization"], headers["x"]),
                             ("application/json", "Basic abc", "1"))
            self.assertEqual(spans_of(text), spans_of(self.trace("--otlp", "-").out))

    def test_many_spans_are_several_requests(self):
        self.run_it()
        lines = (self.dir / "t.jsonl").read_text().splitlines(keepends=True)
        (call,) = [line for line in lines if '"llm_call"' in line][:1]
        self.write("long.jsonl", lines[0] + call * 5000)
        self.trace("--otlp", self.collector.url, file="long.jsonl")
        self.assertGreater(len(self.collector.requests), 1)
        self.assertEqual(sum(len(spans_of(text)) for _, _, text in self.collector.requests), 5001)

    def test_refusals(self):
        self.run_it()
        for status, exit_status in ((401, 4), (400, 5), (503, 5)):
            self.collector.statuses = [status]
            outcome = self.trace("--otlp", self.collector.url, status=exit_status)
            self.assertIn(f"status {status}", outcome.err)
        self.trace("--otlp", "http://127.0.0.1:9", status=5)
        self.trace("--otlp", "ftp://x", status=2)
        outcome = self.trace("--otlp", self.collector.url, status=2,
                             OTEL_EXPORTER_OTLP_HEADERS="a:b%0d%0ac=d")
        self.assertIn("name=value", outcome.err)


if __name__ == "__main__":
    unittest.main()

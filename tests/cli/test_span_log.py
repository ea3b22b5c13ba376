"""The spans of a run whose environment names a collector: sent when it is over."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trace"))
from exports import Collector, ExportTest  # noqa: E402
from test_otlp import spans_of  # noqa: E402


class Live(ExportTest):
    def setUp(self):
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.close)

    def spans(self):
        return [span for _, _, text in self.collector.requests for span, _ in spans_of(text)]

    def test_at_the_end_of_a_run(self):
        """The same spans that its trace gives."""
        self.run_it(OTEL_EXPORTER_OTLP_ENDPOINT=self.collector.url)
        self.assertEqual(self.spans(),
                         [span for span, _ in spans_of(self.trace("--otlp", "-").out)])
        self.collector.requests.clear()
        self.run_it("--otel-content",
                    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=self.collector.url + "/v1/traces",
                    OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
        self.assertIn("secret words", self.collector.requests[0][2])

    def test_a_collector_that_fails_costs_no_answer(self):
        outcome = self.run_it(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(outcome.out, "secret answer\n")
        self.assertRegex(outcome.err, "warning: 51 of 51 spans did not reach the collector: ")
        self.collector.hangs.clear()
        outcome = self.run_it(OTEL_EXPORTER_OTLP_ENDPOINT=self.collector.url)
        self.assertRegex(outcome.err, "warning: 51 of 51 spans did not reach the collector: ")
        self.assertEqual(outcome.out, "secret answer\n")


if __name__ == "__main__":
    unittest.main()

"""The spans of a run whose environment names a collector: sent when it is over."""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trace"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "system"))
import client  # noqa: E402
from model import ModelServer, Reply  # noqa: E402
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


def attributes(span):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span["attributes"]}


class Stays(ExportTest):
    """Commands with many jobs send each one's spans at its end."""

    def setUp(self):
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.close)

    def roots(self):
        spans = [span for _, _, text in self.collector.requests for span, _ in spans_of(text)]
        return [attributes(span) for span in spans if span["name"] == "invoke_agent rlmd"]

    def batch(self, count, *options):
        lines = "".join(f'{{"custom_id": "ä,{n}", "task": "secret {n}"}}\n' for n in range(count))
        server = self.serve_model()
        environment = self.environment(**server.environment(),
                                       OTEL_EXPORTER_OTLP_ENDPOINT=self.collector.url)
        outcome = self.rlmd("batch", "-p", "openai", "-m", "m", "-o", "r.jsonl", *options,
                            self.write("jobs.jsonl", lines), env=environment)
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome

    def serve_model(self):
        server = ModelServer(provider="openai")
        server.script(None, lambda request: Reply(text="FINAL(secret answer)"))
        self.addCleanup(server.stop)
        server.start()
        return server

    def test_a_batch(self):
        outcome = self.batch(5)
        self.assertNotIn("collector", outcome.err)
        self.assertEqual(sorted(root["rlmd.custom_id"] for root in self.roots()), [f"ä,{n}" for n in range(5)])
        self.assertNotIn("secret", str(self.collector.requests))
        (self.dir / "r.jsonl").unlink()
        (self.dir / "r.jsonl.store").unlink()
        self.batch(1, "--otel-content")
        self.assertIn("secret answer", self.collector.requests[-1][2])

    def test_a_collector_that_hangs_holds_no_job(self):
        self.collector.hangs.clear()
        outcome = self.batch(20)
        self.assertIn("spans did not reach the collector: the collector has not answered in time", outcome.err)
        self.assertEqual(len((self.dir / "r.jsonl").read_text().splitlines()), 20)

    def test_a_server(self):
        """With the events that its client asked for, and no others."""
        server = self.serve_model()
        environment = {**server.environment(), "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url}
        process = self.start("serve", "--stdio", "-p", "openai", "-m", "m", stdin=subprocess.PIPE,
                             env=self.environment(**environment))
        peer = client.Client(process)
        peer.initialize()
        for events in (["code"], None):
            job = peer.call("job.start", task="t", **({"events": events} if events else {}))["job"]
            self.assertEqual(peer.result(job)["output"], "secret answer")
        told = [note["event"]["event"] for note in peer.told("job.event")]
        self.assertEqual(set(told) - {"code"}, set())
        process.stdin.close()
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(len(self.roots()), 2)


if __name__ == "__main__":
    unittest.main()

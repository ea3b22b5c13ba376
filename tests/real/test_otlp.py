"""The spans of a trace beside the messages of opentelemetry-proto, from tools/real-servers."""

import base64
import json
import pathlib
import subprocess
import unittest

import servers
from harness import block, query, turn

PYTHON = pathlib.Path(servers.PLACE, "otlp", "bin", "python")
READ = """
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
request = json_format.Parse(sys.stdin.read(), ExportTraceServiceRequest())
spans = [span for resource in request.resource_spans for scope in resource.scope_spans
         for span in scope.spans]
json.dump([[span.name, span.kind, len(span.trace_id), len(span.span_id), len(span.parent_span_id),
            span.end_time_unix_nano - span.start_time_unix_nano, span.status.code]
           for span in spans], sys.stdout)
"""


def setUpModule():
    servers.wanted()
    if not PYTHON.exists():
        raise unittest.SkipTest("opentelemetry-proto is not installed: tools/real-servers does it")


def with_bytes(span):
    """Ids are hexadecimal in OTLP's JSON, and base64 in that of other messages."""
    for name in ("traceId", "spanId", "parentSpanId"):
        if name in span:
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return span


class Otlp(servers.SystemTest):
    def test_each_member_is_one_of_the_messages(self):
        """A name that is none, or a value of another type, is refused there."""
        script = self.script(turn(block("print(llm_query('a'))", "print(rlm_query('part'))", "1/0"),
                                  0, depth=0), turn("FINAL(it)", 1, depth=0),
                             {**turn("FINAL(part)", depth=1), "repeat": True},
                             {**query("reply"), "repeat": True})
        self.rlmd("exec", "-q", "-p", "replay", "--replay", script, "--trace", "t.jsonl", "task")
        for options in ([], ["--otel-content"]):
            sent = json.loads(self.rlmd("trace", "t.jsonl", "--otlp", "-", *options).out)
            for resource in sent["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    scope["spans"] = [with_bytes(span) for span in scope["spans"]]
            done = subprocess.run([PYTHON, "-c", READ], input=json.dumps(sent), text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            spans = json.loads(done.stdout)
            self.assertGreater(len(spans), 6)
            for name, kind, trace, span, parent, duration, status in spans:
                with self.subTest(name=name):
                    self.assertEqual((kind, trace, span), (3 if "chat" in name else 1, 16, 8))
                    self.assertIn(parent, (0, 8))
                    self.assertGreaterEqual(duration, 0)
            self.assertEqual([parent for *_, parent, _, _ in spans].count(0), 1)
            self.assertIn(2, [status for *_, status in spans])


if __name__ == "__main__":
    unittest.main()

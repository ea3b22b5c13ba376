"""rlmd trace --otlp -: spans by the JSON of opentelemetry-proto, and the names of OpenTelemetry's
conventions for generative AI."""

import json
import re
import unittest

from exports import ExportTest

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SPAN = {"traceId": r"[0-9a-f]{32}", "spanId": r"[0-9a-f]{16}", "parentSpanId": r"[0-9a-f]{16}",
        "name": r".+", "startTimeUnixNano": r"\d{19}", "endTimeUnixNano": r"\d{19}"}
VALUES = {"stringValue": str, "intValue": str, "doubleValue": float, "boolValue": bool}


def attributes(thing):
    return {each["key"]: next(iter(each["value"].values())) for each in thing["attributes"]}


def spans_of(text):
    """Of one object, held to the form; [(span, its attributes)]."""
    (resource,) = json.loads(text)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert scope["scope"]["name"] == "rlmd"
    for span in scope["spans"]:
        for name, pattern in SPAN.items():
            assert name == "parentSpanId" and name not in span or \
                re.fullmatch(pattern, span[name]), (name, span)
        assert set(span) <= {*SPAN, "kind", "attributes", "status"}, span
        assert span["kind"] in (1, 3) and span["status"] in ({}, {"code": 2}), span
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        for each in span["attributes"]:
            ((kind, value),) = each["value"].items()
            assert isinstance(value, VALUES[kind]), each
            assert kind != "intValue" or re.fullmatch(r"-?\d+", value), each
    return [(span, attributes(span)) for span in scope["spans"]]


class Otlp(ExportTest):
    def spans(self, *arguments, **environment):
        return spans_of(self.trace("--otlp", "-", *arguments, **environment).out)

    def test_the_spans(self):
        self.run_it()
        spans = self.spans()
        names = [span["name"] for span, _ in spans]
        self.assertEqual({name: names.count(name) for name in set(names)},
                         {"invoke_agent rlmd": 3, "chat replay": 45, "execute_tool python": 3})
        ids = {span["spanId"]: span for span, _ in spans}
        self.assertEqual(len(ids), len(spans))
        self.assertEqual(len({span["traceId"] for span, _ in spans}), 1)
        roots = [span for span, _ in spans if "parentSpanId" not in span]
        self.assertEqual([root["name"] for root in roots], ["invoke_agent rlmd"])
        for span, _ in spans:
            self.assertIn(span.get("parentSpanId", roots[0]["spanId"]), ids)

    def test_attributes(self):
        self.run_it()
        spans = self.spans()
        for span, told in spans:
            if span["name"] == "chat replay":
                self.assertEqual((told["gen_ai.operation.name"], told["gen_ai.provider.name"],
                                  told["gen_ai.request.model"]), ("chat", "replay", "replay"))
                self.assertGreater(int(told["gen_ai.usage.output_tokens"]), 0)
                self.assertEqual(span["kind"], 3)
        (failed,) = [(span, told) for span, told in spans if span["status"]]
        self.assertEqual((failed[0]["name"], failed[1]["error.type"]),
                         ("execute_tool python", "exception"))
        result = json.loads((self.dir / "t.jsonl").read_text().splitlines()[-1])
        chats = [told for span, told in spans if span["name"] == "chat replay"]
        self.assertEqual(sum(int(each["gen_ai.usage.input_tokens"]) for each in chats),
                         result["usage"]["inputTokens"])

    def test_no_content_unless_it_is_asked_for(self):
        self.run_it()
        self.assertNotIn("secret", self.trace("--otlp", "-").out)
        self.assertNotIn("1/0", self.trace("--otlp", "-").out)
        told = [told for _, told in self.spans("--otel-content")]
        asked = [json.loads(each["gen_ai.input.messages"])[0]["parts"][0]["content"]
                 for each in told if "gen_ai.input.messages" in each]
        self.assertIn("secret words", asked)
        self.assertTrue(any("1/0" in each.get("gen_ai.tool.call.arguments", "") for each in told))

    def test_the_same_trace_has_the_same_ids(self):
        self.run_it()
        self.assertEqual(self.trace("--otlp", "-").out, self.trace("--otlp", "-").out)

    def test_variables(self):
        self.run_it()
        text = self.trace("--otlp", "-", TRACEPARENT=PARENT, OTEL_SERVICE_NAME="a service",
                          OTEL_RESOURCE_ATTRIBUTES="team=a%20b, service.name=x,odd,=y,env = prod ").out
        (resource,) = json.loads(text)["resourceSpans"]
        told = attributes(resource["resource"])
        self.assertEqual({name: told[name] for name in ("service.name", "team", "env")},
                         {"service.name": "a service", "team": "a b", "env": "prod"})
        (root,) = [span for span, _ in spans_of(text) if span.get("parentSpanId") == PARENT[36:52]]
        self.assertEqual(root["traceId"], PARENT[3:35])
        for bad in ("x", PARENT[:-3], PARENT.replace("4bf9", "4BF9"), "00-" + "0" * 32 + PARENT[35:]):
            self.assertNotIn("00f067aa0ba902b7", self.trace("--otlp", "-", TRACEPARENT=bad).out)


if __name__ == "__main__":
    unittest.main()

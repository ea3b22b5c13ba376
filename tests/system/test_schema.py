"""Answers that have to satisfy a JSON Schema: --schema, and the "schema" of a plan's operation."""

import json
import os
import subprocess
import unittest

import patience
from harness import RLMD, Outcome, block, turn
from model import PROVIDERS, Reply
from providers import ProviderTest, code, final

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}, "word": {"enum": ["a", "b"]}},
         "required": ["count"], "additionalProperties": False}
FORCED = "No code runs any more"
REFUSED = {
    "openai": {"error": {"message": "Invalid schema for response_format 'answer': In context=(), "
                                    "'additionalProperties' is required to be supplied.",
                         "type": "invalid_request_error", "param": "response_format", "code": None}},
    "anthropic": {"type": "error", "error": {
        "type": "invalid_request_error",
        "message": "output_config: Extra inputs are not permitted"}},
}


def structured(request):
    """The schema that a provider was asked to see to; None: none."""
    asked = request.json
    if request.provider == "openai":
        form = asked.get("response_format")
        return form and form["json_schema"]["schema"]
    if request.provider == "anthropic":
        return asked.get("output_config") and asked["output_config"]["format"]["schema"]
    return asked.get("format")


class SchemaTest(ProviderTest):
    def schema(self, schema=COUNT, name="schema.json"):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return ["--schema", self.write(name, text)]

    def scripted(self, *arguments, status=0):
        """The program on a script of answers: no provider is asked."""
        outcome = self.rlmd("exec", *arguments, "--", "how many?")
        self.assertEqual(outcome.status, status, outcome.err)
        return outcome


class Task(SchemaTest):
    def test_violations_go_back(self):
        """With path and reason; the output is the JSON itself, and the iterations are counted."""
        server = self.serve("openai", final('{"count": "many", "word": "c"}'), final("no JSON"),
                            final('{"count": 3, "more": true}'), final('{"count":  3}'))
        result = self.ask(server, *self.schema()).result
        self.assertEqual(result["output"], '{"count":  3}')
        self.assertEqual(result["stopReason"], "final")
        self.assertEqual(result["usage"]["iterations"], 4)
        first, *told = [request.last_user for request in server.requests]
        self.assertNotIn("not accepted", first)
        self.assertIn("$.count: 'many' is not of type 'integer'", told[0])
        self.assertIn("$.word: 'c' is not one of ['a', 'b']", told[0])
        self.assertIn("$: this is no JSON", told[1])
        self.assertIn("'more' was unexpected", told[2])
        system = server.requests[0].system
        self.assertIn(json.dumps(COUNT), system)
        self.assertEqual([structured(request) for request in server.requests], [None] * 4)

    def test_the_answer_alone_is_printed(self):
        script = self.script(turn("FINAL({})", 0), turn('FINAL({"count": 1})', 1))
        outcome = self.scripted("--replay", script, *self.schema())
        self.assertEqual(outcome.out, '{"count": 1}\n')

    def test_a_fence_is_no_part_of_it(self):
        for text in ('FINAL(\n```json\n{"count": 7}\n```\n)',
                     'It is:\n```json\n{"count": 7}\n```\nSo it is.', '{"count": 7}',
                     block("text = 'Here it is:\\n```json\\n{\"count\": 7}\\n```\\nSo it is.'",
                           "FINAL(text)")):
            with self.subTest(text=text):
                outcome = self.scripted("--replay", self.script(turn(text)), *self.schema())
                self.assertEqual(outcome.out, '{"count": 7}\n')

    def test_from_code(self):
        """A dict is its JSON, by FINAL() and by FINAL_VAR(); a wrong one has another turn."""
        script = self.script(turn(block("d = {'count': 'x'}", "FINAL_VAR('d')"), 0),
                             turn(block("d['count'] = 4"), 1), turn("FINAL_VAR(d)", 2))
        outcome = self.scripted("--replay", script, "--json", *self.schema())
        self.assertEqual(json.loads(outcome.result["output"]), {"count": 4})
        self.assertEqual(outcome.result["usage"]["iterations"], 3)

    def test_never_satisfied(self):
        """In the end exit 9, with the last violation; nothing is printed for an answer."""
        server = self.serve("openai")
        server.script(FORCED, Reply(text="no JSON at all"))
        server.script("not accepted", final('{"count": "x"}'))
        server.script(None, final('{"count": null}'))
        result = self.ask(server, *self.schema(), "--max-iterations", "2", status=9).result
        self.assertFalse(result["success"])
        self.assertEqual(result["stopReason"], "schema")
        self.assertEqual(result["error"]["kind"], "schema")
        self.assertEqual(result["output"], "")
        plain = self.rlmd("exec", "-p", "openai", "-m", "m", *self.schema(), "--max-iterations", "1",
                          "--", "x", env=self.environment(**server.environment()))
        self.assertEqual((plain.status, plain.out), (9, ""))
        self.assertIn("$.count: 'x' is not of type 'integer'", plain.err)

    def test_a_forced_answer(self):
        """Is held to it too, asked of the provider in that form, and may be mended once."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider)
                server.script(FORCED, Reply(text='```json\n{"count": 2.5}\n```'))
                server.script("not accepted", Reply(text='{"count": 2}'))
                server.script(None, code("print(1)"))
                result = self.ask(server, *self.schema(), "--max-iterations", "1").result
                self.assertEqual(result["output"], '{"count": 2}')
                self.assertEqual(result["stopReason"], "max_iterations")
                turn_, forced, again = server.requests
                self.assertIsNone(structured(turn_))
                self.assertEqual(structured(forced), COUNT)
                self.assertEqual(structured(again), COUNT)
                self.assertIn(json.dumps(COUNT), forced.last_user)
                self.assertIn("$.count: 2.5 is not of type 'integer'", again.last_user)

    def test_a_provider_that_refuses_schemas(self):
        """Is asked once more without; the answer is checked all the same."""
        for provider, body in REFUSED.items():
            with self.subTest(provider=provider):
                refusal = Reply(status=400, body=json.dumps(body).encode())
                server = self.serve(provider, code("print(1)"), refusal, Reply(text='{"count": 2}'))
                result = self.ask(server, *self.schema(), "--max-iterations", "1").result
                self.assertEqual(result["output"], '{"count": 2}')
                self.assertEqual([structured(request) for request in server.requests],
                                 [None, COUNT, None])

    def test_sub_runs_have_none(self):
        script = self.script(turn(block("print(rlm_query('sub'))"), 0, 0), turn("FINAL(words)", 0, 1),
                             turn('FINAL({"count": 1})', 1, 0))
        outcome = self.scripted("--replay", script, "--json", *self.schema())
        self.assertEqual(outcome.executions()[0]["stdout"], "words\n")


class NoSchema(SchemaTest):
    def refused(self, schema, words, *arguments):
        """Before anything begins, with the file's name; by a dry run, too."""
        server = self.serve("openai", final('{"count": 1}'))
        given = self.schema(schema)
        error = self.fails(server, 2, "usage", *given, *arguments)
        self.assertEqual(server.requests, [])
        self.assertIn(words, error["message"])
        self.assertTrue(error["message"].startswith(f"--schema {given[1]}: "), error["message"])
        dry = self.rlmd("exec", "--dry-run", "-p", "openai", "-m", "m", *given, "--", "x")
        self.assertEqual((dry.status, dry.out), (2, ""), dry.err)
        self.assertIn(words, dry.err)
        self.assertIn(f"--schema {given[1]}: ", dry.err)
        return error["message"]

    def test_with_path_and_reason(self):
        self.refused({"properties": {"a": {"type": "strin"}}}, "$.properties.a.type: 'strin' is not")
        self.refused({"properties": {"a": {"pattern": "("}}}, "$.properties.a.pattern: '(' is not a 'regex'")
        self.refused({"$schema": "urn:mine"}, "'urn:mine' is not known")
        self.refused("[1]", "it has to be an object")
        self.refused("{", "no JSON")

    def test_references_stay_inside(self):
        for reference in ("http://127.0.0.1/x", "https://example.com/s#/a", "file:///etc/passwd",
                          "other.json#/$defs/a", "//host/x"):
            with self.subTest(reference=reference):
                self.refused({"items": {"$ref": reference}}, f"'{reference}' leads out of this schema")
        self.refused({"$ref": "#/$defs/none"}, "'#/$defs/none' leads to nothing")
        self.refused({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
                     "its references go round in a circle")
        self.refused({"$id": "https://e.com/r", "items": {"$dynamicRef": "#x"}}, "leads to nothing")

    def test_inside_they_are_fine(self):
        schema = {"$id": "https://example.com/root", "$ref": "item", "$defs": {
            "i": {"$id": "item", "properties": {"count": {"$ref": "https://example.com/root#/$defs/n"}}},
            "n": {"type": "integer"}}, "default": {"$ref": "http://is.data/"}}
        script = self.script(turn('FINAL({"count": "x"})', 0), turn('FINAL({"count": 5})', 1))
        self.assertEqual(self.scripted("--replay", script, *self.schema(schema)).out, '{"count": 5}\n')

    def test_files(self):
        for path, words in ((self.dir / "none", "No such file"), (self.write("empty", " \n"), "is empty"),
                            (self.write("long", '"' + "x" * 70000 + '"'), "65536")):
            with self.subTest(path=path):
                outcome = self.rlmd("exec", "--schema", path, "--", "x")
                self.assertEqual(outcome.status, 2)
                self.assertIn(words, outcome.err)

    def test_without_jsonschema(self):
        """It is named with the way to install it, by the run and by doctor; nobody is asked."""
        unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("this kernel lets nobody have mounts of his own")
        where = subprocess.run(["/usr/bin/python3", "-I", "-c", "import jsonschema as j; print(j.__path__[0])"],
                               stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        hidden = [*unshare, "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', where, RLMD]
        script = self.script(turn('FINAL({"count": 5})'))
        run = self.run_in(hidden, "exec", "--python", "/usr/bin/python3", "--replay", script,
                          *self.schema(), "--", "x")
        self.assertEqual((run.status, run.out), (2, ""), run.err)
        self.assertIn("apt install python3-jsonschema", run.err)
        doctor = self.run_in(hidden, "doctor", "--json", "--python", "/usr/bin/python3")
        self.assertIn("--schema cannot be used", " ".join(doctor.result["warnings"]))

    def run_in(self, before, *arguments):
        process = self.start(*before[1:], *arguments, program=before[0])
        return Outcome(process, *process.communicate())


class Hostile(SchemaTest):
    """Neither schema nor answer is trusted; each ends at the helper's limits, in a clear error."""

    def hostile(self, schema, answer, *arguments):
        script = self.script(turn(f"FINAL({answer})"))
        outcome = self.rlmd("exec", "--replay", script, "--json", *self.schema(schema), *arguments,
                            "--", "x")
        self.assertEqual(outcome.status, 9, outcome.err + outcome.out[:3000])
        self.assertEqual(outcome.result["error"]["kind"], "schema")
        return outcome.result["error"]["message"]

    def test_a_pattern_that_takes_for_ever(self):
        message = self.hostile({"properties": {"a": {"pattern": "^(a+)+$"}}},
                               json.dumps({"a": "a" * 64 + "!"}), "--block-timeout", "1s")
        self.assertIn("took more than 1.0s", message)

    def test_memory(self):
        """The work of a schema on an answer doubles with each level: the helper ends, nobody else."""
        levels = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 12} for i in range(12)}
        schema = {"$defs": {**levels, "a12": {"type": "integer"}}, "anyOf": [{"$ref": "#/$defs/a0"}]}
        message = self.hostile(schema, json.dumps({"a": "x" * 100000}),
                               "--block-timeout", patience.duration(20))
        self.assertRegex(message, "took more than (256 MiB|20)")

    def test_deep_answers(self):
        deep = "[" * 100000 + "]" * 100000
        script = self.script(turn(block("FINAL('[' * 100000 + ']' * 100000)"), 0), turn("FINAL([])", 1))
        outcome = self.scripted("--replay", script, *self.schema({"type": "array"}))
        self.assertEqual(outcome.out, "[]\n")
        self.assertEqual(len(deep), 200000)

    def test_words_of_an_answer_are_bounded(self):
        """However long it is, and whatever stands in it, a violation is a short line."""
        script = self.script(
            turn(block("FINAL('{\"count\": \"' + 'y' * 1000000 + '\\\\u001b[31m\\\\n\"}')"), 0),
            turn('FINAL({"count": 1})', 1))
        outcome = self.scripted("--replay", script, "--json", *self.schema())
        told = outcome.result["trace"]["iterations"][1]["prompt"]["content"]
        note = told[told.index("not accepted"):]
        self.assertLess(len(note), 4000)
        self.assertIn("[...]", note)
        self.assertNotIn("\x1b", note)
        self.assertIn("is not of type 'integer'", note)


class Plan(SchemaTest):
    def plan(self, operations, server=None, *arguments, status=0, **more):
        path = self.write("plan.json", json.dumps({"operations": operations, **more}))
        asked = ["-p", server.provider, "-m", "m"] if server else []
        environment = self.environment(**(server.environment() if server else {}))
        outcome = self.rlmd("plan", *asked, *arguments, "--", path, env=environment)
        self.assertEqual(outcome.status, status, outcome.err + outcome.out[:2000])
        return outcome.result

    def test_a_call(self):
        """Is asked again with what was said, in the form that its provider sees to."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, Reply(text='{"count": []}', usage=(100, 10)),
                                    Reply(text='```json\n{"count": 2}\n```', usage=(200, 20)))
                result = self.plan([{"id": "a", "input": "how many?", "schema": COUNT}], server)
                self.assertEqual(result["results"]["a"]["response"], '{"count": 2}')
                self.assertEqual(result["results"]["a"]["tokens"], 330)
                first, second = server.requests
                self.assertEqual([structured(first), structured(second)], [COUNT, COUNT])
                self.assertEqual(second.messages[-3:-1],
                                 [("user", "how many?"), ("assistant", '{"count": []}')])
                self.assertIn("$.count: [] is not of type 'integer'", second.last_user)
                self.assertIn('"additionalProperties"', first.system)

    def test_in_the_end_it_fails(self):
        server = self.serve("openai")
        server.script(None, Reply(text="never"))
        result = self.plan([{"id": "a", "input": "x", "schema": COUNT}], server, status=9)
        error = result["results"]["a"]["error"]
        self.assertEqual(error["kind"], "schema")
        self.assertIn("this is no JSON", error["message"])
        self.assertEqual(len(server.requests), 3)

    def test_a_run(self):
        server = self.serve("openai", final('{"count": "x"}'), final('{"count": 9}'))
        result = self.plan([{"id": "a", "mode": "rlm", "input": "x", "schema": COUNT}], server)
        self.assertEqual(result["results"]["a"]["response"], '{"count": 9}')
        self.assertIn("$.count: 'x' is not", server.requests[1].last_user)

    def test_what_is_no_schema(self):
        """Is said of the operation, before any of them begins."""
        server = self.serve("openai")
        bad = {"properties": {"a": {"$ref": "http://127.0.0.1/"}}}
        path = self.write("plan.json", json.dumps({"operations": [
            {"id": "good", "input": "x", "schema": COUNT}, {"id": "none", "input": "x"},
            {"id": "bad", "input": "x", "schema": bad}]}))
        outcome = self.rlmd("plan", "-p", "openai", "-m", "m", "--", path,
                            env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn('operation "bad": the schema: $.properties.a["$ref"]', outcome.err)
        self.assertEqual(server.requests, [])
        dry = self.rlmd("plan", "--dry-run", "-p", "openai", "-m", "m", "--", path)
        self.assertEqual((dry.status, dry.out), (2, ""), dry.err)
        self.assertIn('operation "bad": the schema: $.properties.a["$ref"]', dry.err)
        path = self.write("plan.json", json.dumps({"operations": [
            {"id": "a", "input": "x", "schema": "no"}]}))
        outcome = self.rlmd("plan", "--", path)
        self.assertEqual(outcome.status, 8)
        self.assertIn("operations[0].schema: must be a JSON Schema", outcome.err)

    def test_many_at_once(self):
        """Each is held to its own."""
        server = self.serve("openai")
        server.script("not accepted", lambda request: Reply(
            text=json.dumps({"n": int(request.messages[1][1])})))
        server.script(None, lambda request: Reply(text=json.dumps({"n": -1})))
        operations = [{"id": str(i), "input": str(i), "schema": {"properties": {"n": {"const": i}}}}
                      for i in range(20)]
        result = self.plan(operations, server, "-j", "8", maxParallel=8)
        for i in range(20):
            self.assertEqual(json.loads(result["results"][str(i)]["response"]), {"n": i})

    def test_code_has_none(self):
        script = self.script(turn(block(
            "try:", "    run_plan([{'id': 'a', 'type': 'Query', 'input': 'x', 'schema': {}}])",
            "except Exception as error:", "    FINAL(str(error))")))
        outcome = self.rlmd("exec", "--replay", script, "--", "x")
        self.assertIn("schema", outcome.out)


if __name__ == "__main__":
    unittest.main()

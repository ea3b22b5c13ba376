"""Functions of the host's: how code calls them, what is sent, what comes back."""

import json
import unittest

from supervisor import Worker, WorkerTest

LOOKUP = {
    "name": "lookup", "doc": "Looks a customer up.",
    "schema": {"type": "object", "required": ["key"], "properties": {
        "limit": {"type": "integer", "default": 10}, "key": {"type": "string"}}},
}
ANY = {"name": "anything", "doc": "Takes anything.", "schema": {"type": "object"}}


class Functions(WorkerTest):
    def setUp(self):
        self.worker = Worker(functions=[LOOKUP, ANY])
        self.addCleanup(self.worker.__exit__)
        self.worker.answer = lambda _call: [json.dumps({"name": "Ada", "orders": [1, 2.5, None]})]

    def output(self, code):
        done = self.worker.run(code)
        self.assertIsNone(done["error"], done["error"])
        return done["stdout"]

    def sent(self):
        call, = self.worker.calls
        self.worker.calls.clear()
        self.assertEqual(call["type"], "function")
        return call["name"], json.loads(call["arguments"])

    def assert_raises(self, code, pattern):
        error = self.worker.run(code)["error"]
        self.assertRegex(error or "", pattern)
        self.assertNotIn(".py", error)

    def test_result(self):
        self.assertEqual(self.output("lookup('a')['orders']"), "[1, 2.5, None]\n")
        self.assertEqual(self.sent(), ("lookup", {"key": "a"}))

    def test_arguments(self):
        for code, arguments in (
            ("lookup('a', 3)", {"key": "a", "limit": 3}),
            ("lookup(limit=3, key='a')", {"key": "a", "limit": 3}),
            ("anything()", {}),
            ("anything(x={'y': [1, (2, 3)]}, others=True)",
             {"x": {"y": [1, [2, 3]]}, "others": True}),
            ("anything(x={1: 'a', '1': 'b'})", {"x": {"1": "b"}}),
        ):
            with self.subTest(code):
                self.output(code)
                self.assertEqual(self.sent()[1], arguments)

    def test_what_is_no_call(self):
        """Nothing is sent that the other side would take for a lie."""
        for code, pattern in (
            ("lookup()", r"TypeError: lookup\(\): .*'key'.* The call is lookup\(key, limit=10\)"),
            ("lookup('a', other=1)", r"TypeError: lookup\(\): .*'other'"),
            ("lookup({1, 2})", "TypeError: lookup.*not JSON serializable"),
            ("lookup(float('nan'))", "ValueError: lookup"),
            ("lookup(1 << 63)", "ValueError: lookup.*64 bits"),
            ("lookup('\\udc80')", "ValueError: lookup.*surrogates"),
            ("anything(x={'a\\0': 1})", "ValueError: anything.*NUL"),
            ("lookup('x' * 2000000)", "ValueError: lookup.*MiB"),
            ("lookup([0] * 100001)", "ValueError: lookup.*values"),
            ("a = []\nfor _ in range(40): a = [a]\nlookup(a)", "ValueError: lookup.*deep"),
            ("a = []\na.append(a)\nlookup(a)", "ValueError: lookup.*Circular"),
        ):
            with self.subTest(code):
                self.assert_raises(code, rf"(?m)^{pattern}")
        self.assertEqual(self.worker.calls, [])

    def test_help(self):
        told = self.output("help(lookup)")
        self.assertIn("lookup(key, limit=10)", told)
        self.assertIn("Looks a customer up.", told)

    def test_errors(self):
        for kind, name in (("budget", "BudgetExceeded"), ("timeout", "TimeoutError"),
                           ("input", "ValueError"), ("function", "RuntimeError"),
                           ("cancelled", "RuntimeError")):
            with self.subTest(kind):
                self.worker.answer = lambda _call: [(kind, "so it is")]
                self.assert_raises("lookup('a')", rf"(?m)^{name}: .*lookup\(\): so it is")

    def test_names_are_ours(self):
        done = self.worker.run("lookup = 1")
        self.assertIn("`lookup` is a function of this session", done["stderr"])
        self.output("lookup('a')")

    def test_awaited_and_at_the_same_time(self):
        self.assertEqual(self.output(
            "import asyncio\n"
            "print(len(await asyncio.gather(lookup('a'), lookup('b'))), (await lookup('c'))['name'])"
        ), "2 Ada\n")
        self.assertEqual(self.output(
            "import concurrent.futures\n"
            "with concurrent.futures.ThreadPoolExecutor() as pool:\n"
            "    print(len(list(pool.map(lookup, 'abcdef'))))"), "6\n")


if __name__ == "__main__":
    unittest.main()

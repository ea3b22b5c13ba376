"""The functions of the namespace: what they ask, what they give back, what they refuse."""

import unittest

from supervisor import Worker, WorkerTest

CONTEXT = "# One\nalpha {\"a\": [1, 2]} Alpha\n# Two\nbeta\n"


class Helpers(WorkerTest):
    def setUp(self):
        self.worker = Worker(context=CONTEXT.encode())
        self.addCleanup(self.worker.__exit__)

    def assert_raises(self, code, name, pattern=""):
        error = self.worker.run(code)["error"]
        self.assertRegex(error or "", rf"(?m)^{name}: .*{pattern}")
        self.assertNotIn("helpers.py", error)
        self.assertNotIn("channel.py", error)


class Calls(Helpers):
    def test_llm_query(self):
        """ENG-11: a call of one prompt."""
        self.assert_shows("llm_query('p')", "'<p>'")
        self.assert_shows("llm_query('p', model='other')", "'<p>'")
        self.assertEqual([call["model"] for call in self.worker.calls], [None, "other"])
        self.assertEqual(self.worker.calls[0]["prompts"], ["p"])

    def test_batch_llm_query(self):
        for name in ("batch_llm_query", "llm_query_batched", "llm_batch"):
            self.assert_shows(f"{name}(str(n) for n in range(3))", "['<0>', '<1>', '<2>']")
        self.assertEqual(len(self.worker.calls), 3)

    def test_rlm_query(self):
        """ENG-12: without ctx, or with the caller's own, nothing is sent."""
        self.assert_shows("[rlm_query('t'), rlm_query('t', context), rlm_query('t', ctx='other')]",
                          "['<t>', '<t>', '<t>']")
        self.assertEqual(
            [call["contexts"] for call in self.worker.calls], [[None], [None], [b"other"]]
        )

    def test_batch_rlm_query(self):
        for name in ("batch_rlm_query", "rlm_query_batched"):
            self.assert_shows(
                f"{name}(['a', {{'task': 'b'}}, {{'task': 'c', 'context': context[:3]}}])",
                "['<a>', '<b>', '<c>']",
            )
            self.assertEqual(self.worker.calls[-1]["tasks"], ["a", "b", "c"])
            self.assertEqual(self.worker.calls[-1]["contexts"], [None, None, b"# O"])

    def test_empty_batches_make_no_call(self):
        self.assert_shows("batch_llm_query([]), batch_rlm_query([])", "([], [])")
        self.assertEqual(self.worker.calls, [])

    def test_large_batch_comes_in_order(self):
        """More than a message holds, with texts of every length."""
        self.worker.answer = lambda call: [
            str(len(prompt if type(prompt) is bytes else prompt.encode()))
            for prompt in call["prompts"]
        ]
        self.assert_shows("batch_llm_query(['é' * (n % 9000) for n in range(9001)]) == "
                          "[str(n % 9000 * 2) for n in range(9001)]", "True")

    def test_heavy_batch_is_spread_over_calls(self):
        """Prompts that one call cannot carry go into several, one after the other."""
        self.worker.run("large = 'x' * (50 << 20)")
        self.assert_shows("batch_rlm_query([{'task': t, 'context': large} for t in 'abc'])",
                          "['<a>', '<b>', '<c>']")
        self.assertEqual([call["tasks"] for call in self.worker.calls], [["a", "b"], ["c"]])

    def test_what_is_too_large_for_any_call(self):
        """A context fails alone, in its slot, and is not sent; a prompt is refused sooner."""
        self.worker.run("large = 'x' * (128 << 20)")
        self.assert_raises("rlm_query('t', large)", "LLMError", "more than 128 MiB of text")
        self.assert_shows("[bool(r) for r in batch_rlm_query(['a', "
                          "{'task': 't', 'context': large}, 'b'])]", "[True, False, True]")
        self.assertEqual([call["tasks"] for call in self.worker.calls], [["a"], ["b"]])
        self.worker.run("large = large[:(64 << 20) + 1]")
        self.assert_raises("llm_query(large)", "ValueError", "more than 64 MiB")

    def test_large_batch_of_short_texts_fits_its_frames(self):
        self.worker.answer = lambda call: [
            prompt[:9] if type(prompt) is str else prompt[:9].decode() for prompt in call["prompts"]
        ]
        self.assert_shows("batch_llm_query([f'{n:09}' + '\\0' * 200 for n in range(9000)]) == "
                          "[f'{n:09}' for n in range(9000)]", "True")

    def test_large_batch_of_tasks_with_contexts(self):
        self.assert_shows(
            "len(batch_rlm_query([{'task': str(n), 'context': ''} for n in range(4500)]))", "4500"
        )
        self.assertEqual(sum(len(call["contexts"]) for call in self.worker.calls), 4500)

    def test_large_batch_comes_in_parts(self):
        """No call has more than 64 MiB of prompts; nothing of that shows."""
        self.worker.answer = lambda call: [str(len(prompt)) for prompt in call["prompts"]]
        self.assert_shows("batch_llm_query(['x' * (30 << 20), 'é' * (15 << 20), 'y' * (20 << 20)])",
                          f"['{30 << 20}', '{30 << 20}', '{20 << 20}']")
        self.assertEqual([len(call["prompts"]) for call in self.worker.calls], [2, 1])

    def test_giant_prompts_are_refused(self):
        for code in ("llm_query('x' * (1 << 26 | 1))", "batch_llm_query(['é' * (1 << 25), 'é' * (1 << 26)])",
                     "rlm_query('x' * (1 << 26 | 1))", "batch_rlm_query(['x' * (1 << 26 | 1)])"):
            with self.subTest(code):
                self.assert_raises(code, "ValueError", "more than 64 MiB.*chunk_text")
        self.assertEqual(self.worker.calls, [])

    def test_budget(self):
        self.assert_shows("budget()['cost']", "1.5")

    def test_answers_are_texts(self):
        """A str in every use but `type() is str`, that tells what it is worth."""
        self.worker.answer = lambda _call: [['{"a": 1}', "cut"]]
        self.worker.run("import copy, io, json, pickle, re\na = llm_query('p')")
        for code, shown in (
            ("a, str(a), f'{a}', a + '', a[:3]",
             "('{\"a\": 1}', '{\"a\": 1}', '{\"a\": 1}', '{\"a\": 1}', '{\"a')"),
            ("json.loads(a), json.dumps([a]), a == str(a), a in {str(a)}, isinstance(a, str)",
             "({'a': 1}, '[\"{\\\\\"a\\\\\": 1}\"]', True, True, True)"),
            ("[(x, x.degraded, x.reason) for x in (a, copy.copy(a), copy.deepcopy([a])[0])]",
             str([('{"a": 1}', True, "cut")] * 3)),
            ("[(x.degraded, x.reason) for n in range(pickle.HIGHEST_PROTOCOL + 1)"
             " for x in [pickle.loads(pickle.dumps(a, n))]] == [(True, 'cut')] * 6", "True"),
            ("type(a).__name__, type(a) is str", "('str', False)"),
            ("type(a.strip()), type(str(a)), re.findall('[a-z]+', a)",
             "(<class 'str'>, <class 'str'>, ['a'])"),
            ("count_matches('a', text=a), extract_json(a), io.StringIO(a).read()",
             "(1, {'a': 1}, '{\"a\": 1}')"),
            ("llm_query(a), rlm_query('t', a)", str(('{"a": 1}',) * 2)),
            ("SHOW_VARS()", "context, str, 43 characters, '# One\\nalpha {\"a\": [1, 2]} Alpha"
             "\\n# Two\\nbeta\\n'\na, str, 8 characters, '{\"a\": 1}'"),
        ):
            with self.subTest(code):
                self.assert_shows(code, shown)
        self.assertEqual(self.worker.run("FINAL(a)")["answer"], '{"a": 1}')
        self.assertEqual(self.worker.get("a")["value"], '{"a": 1}')
        self.assertEqual(self.worker.calls[1]["prompts"], ['{"a": 1}'])

    def test_the_output_tells_of_degraded_answers(self):
        """Once for each function and reason, in the block that got them, wherever it printed."""
        self.worker.answer = lambda call: [
            ["x", "cut" if n % 2 else "forced"] for n in range(len(call.get("prompts", "t")))
        ]
        done = self.worker.run(
            "import contextlib, io\n"
            "with contextlib.redirect_stderr(io.StringIO()):\n"
            "    rlm_query('t'), batch_llm_query(list('abcde'))\n1/0"
        )
        tail = " (.degraded and .reason of an answer tell)"
        self.assertEqual(done["stderr"].splitlines(), [
            "[note] rlm_query(): 1 degraded answer: forced" + tail,
            "[note] batch_llm_query(): 3 degraded answers: forced" + tail,
            "[note] batch_llm_query(): 2 degraded answers: cut" + tail,
        ])
        self.assertIn("ZeroDivisionError", done["error"])
        self.assertEqual(self.worker.run("1")["stderr"], "")

    def test_an_error_value_is_degraded_too(self):
        self.worker.answer = lambda _call: ["a", ("timeout", "late")]
        self.worker.run("r = batch_llm_query(['1', '2'])")
        self.assert_shows("[(x.degraded, x.reason) for x in r]", "[(False, ''), (True, 'late')]")

    def test_errors_are_exceptions(self):
        """ASY-36 and interface.md: each can be told apart and caught."""
        for kind, name in (
            ("budget", "BudgetExceeded"), ("timeout", "TimeoutError"), ("refused", "LLMError"),
        ):
            for call in ("llm_query('p')", "rlm_query('p')"):
                with self.subTest(kind, call=call):
                    self.worker.answer = lambda _call, kind=kind: [(kind, "the reason")]
                    self.assert_raises(call, name, "the reason")
                    self.assert_shows(
                        f"try: {call}\n"
                        f"except {name} as e: print(getattr(e, 'kind', None), e)",
                        {"budget": "budget the reason", "timeout": "None the reason",
                         "refused": "refused Error (refused): the reason"}[kind],
                    )

    def test_a_failed_slot_does_not_lose_the_batch(self):
        """ENG-29: a falsy LLMError whose str begins with Error."""
        self.worker.answer = lambda _call: ["a", ("budget", "why"), "", ("timeout", "late")]
        for name in ("batch_llm_query", "batch_rlm_query"):
            self.worker.run(f"r = {name}(['1', '2', '3', '4'])")
            self.assert_shows(
                "r[0], r[2], [bool(x) for x in r]", "('a', '', [True, False, False, False])"
            )
            self.assert_shows(
                "[(type(x) is LLMError, x.kind, str(x)) for x in r[1::2]]",
                "[(True, 'budget', 'Error (budget): why'), "
                "(True, 'timeout', 'Error (timeout): late')]",
            )

    def test_wrong_arguments_ask_nothing(self):
        for code, name, pattern in (
            ("llm_query(5)", "TypeError", "str, not int"),
            ("llm_query(['a'])", "TypeError", r"batch_llm_query\(\)"),
            ("llm_query(None)", "TypeError", "NoneType"),
            ("llm_query(b'a')", "TypeError", "bytes"),
            ("llm_query('a', model=5)", "TypeError", "model"),
            ("llm_query('a', model='m' * 300)", "ValueError", "256"),
            ("llm_query('a', model='m\\0n')", "ValueError", "NUL"),
            ("batch_llm_query('abc')", "TypeError", "list, not str"),
            ("batch_llm_query(5)", "TypeError", "list, not int"),
            ("batch_llm_query(['a', 5])", "TypeError", "prompt 1"),
            ("rlm_query('t', {'a': 1})", "TypeError", "json.dumps"),
            ("batch_rlm_query([{'context': 'x'}])", "ValueError", "task 0"),
            ("batch_rlm_query([{'task': 't', 'colour': 'x'}])", "ValueError", "'colour'"),
            ("batch_rlm_query([{'task': 't', 'ctx': 'x', 'context': 'y'}])", "ValueError",
             "'context' twice"),
            ("batch_rlm_query([{'task': 't', 'context': 3}])", "TypeError", "context of task 0"),
            ("batch_rlm_query({'task': 't'})", "TypeError", "list, not dict"),
        ):
            with self.subTest(code):
                self.assert_raises(code, name, pattern)
        self.assertEqual(self.worker.calls, [])

    def test_str_subclasses_are_plain_text(self):
        self.worker.run("class S(str):\n    def __str__(self): return 'no'\n"
                        "    def __len__(self): return 1\n"
                        "    encode = isascii = __getitem__ = None")
        self.assert_shows("llm_query(S('text'))", "'<text>'")
        self.worker.answer = lambda call: ["r"]
        self.assert_shows("rlm_query(S('task'), S('ctx'))", "'r'")
        self.assertEqual(
            (self.worker.calls[-1]["tasks"], self.worker.calls[-1]["contexts"]),
            (["task"], [b"ctx"]),
        )


class Plain(Helpers):
    """They are functions like any others: what is said of them names no class and no self."""

    NAMES = ("llm_query", "batch_llm_query", "rlm_query", "batch_rlm_query", "race_query",
             "run_plan", "chunk_text", "search_context", "count_matches", "extract_sections",
             "FINAL_VAR")

    def test_wrong_calls_are_told_the_right_one(self):
        for name in self.NAMES:
            for arguments, reason in (
                ("", "missing a required argument"), ("1, 2, 3, 4, 5, 6, 7", "too many positional"),
                ("1, colour=2", "'colour'"),
            ):
                with self.subTest(name, arguments=arguments):
                    error = self.worker.run(f"{name}({arguments})")["error"]
                    self.assertRegex(error, rf"TypeError: {name}\(\): .*{reason}.*{name}\(\w+")
                    for word in ("Helpers", "Queries", "Texts", "self", "bind", "calling.py"):
                        self.assertNotIn(word, error)
        self.assertEqual(self.worker.calls, [])

    def test_final(self):
        self.assert_raises("FINAL()", "TypeError", r"FINAL\(\): .*The call is FINAL\(value\)")
        self.assert_raises("FINAL(1, colour=2)", "TypeError", r"The call is FINAL\(value\)")

    def test_help_and_inspect_show_the_call(self):
        shown = self.worker.run("help(llm_query)")["stdout"]
        self.assertRegex(shown, r"llm_query\(\s*prompt,\s*model=None")  # Python 3.13: a line each
        self.assertIn("Asks the model one question", shown)
        self.assertNotIn("self", shown)
        self.assert_shows("import inspect\nlist(inspect.signature(count_matches).parameters)",
                          "['pattern', 'text']")
        self.assert_shows("llm_query.__name__, llm_query.__qualname__, llm_query.__module__",
                          "('llm_query', 'llm_query', '__main__')")
        self.assertNotIn("method", self.worker.run("llm_query")["stdout"])


class Texts(Helpers):
    def test_chunk_text(self):
        """LIB-16"""
        self.assert_shows("chunk_text('abcdefghij', 4, 1)", "['abcd', 'defg', 'ghij']")
        self.assert_shows("chunk_text('abcdefghijk', 4, 1)", "['abcd', 'defg', 'ghij', 'jk']")
        self.assert_shows("chunk_text('abc', 4, 3), chunk_text('abcd', 4, 3), chunk_text('')",
                          "(['abc'], ['abcd'], [])")
        self.assert_shows("[len(c) for c in chunk_text('x' * 20000)]", "[10000, 10000, 1000]")
        for arguments in ("10, 10", "10, 11", "0, 0", "-1, -2", "10, -1", "100"):
            self.assert_raises(f"chunk_text('abc', {arguments})", "ValueError", "chunk_text")

    def test_chunk_text_is_what_the_specification_computes(self):
        self.assert_shows(
            "def spec(text, size, overlap):\n"
            "    chunks, start = [], 0\n"
            "    while start < len(text):\n"
            "        end = min(start + size, len(text))\n"
            "        chunks.append(text[start:end])\n"
            "        if end >= len(text): break\n"
            "        start = end - overlap\n"
            "    return chunks\n"
            "all(spec('x' * n, s, o) == chunk_text('x' * n, s, o)"
            " for n in range(12) for s in range(1, 6) for o in range(s))", "True")

    def test_search_context(self):
        self.assert_shows("search_context('ALPHA', window=2)",
                          "[{'match': 'alpha', 'start': 6, 'context': 'e\\nalpha {'}, "
                          "{'match': 'Alpha', 'start': 26, 'context': '} Alpha\\n#'}]")
        self.assert_shows(
            "search_context('b', 1, text='abc')", "[{'match': 'b', 'start': 1, 'context': 'abc'}]"
        )
        self.assert_shows("import re\nlen(search_context(re.compile('ALPHA')))", "0")
        self.assert_raises("search_context('(')", r"(re\.error|re\.PatternError|error)")

    def test_count_matches(self):
        self.assert_shows(
            "count_matches('alpha'), count_matches('^#'), count_matches('x', text='xX')",
            "(2, 2, 2)",
        )

    def test_extract_json(self):
        self.assert_shows("extract_json()", "{'a': [1, 2]}")
        for text, value in (
            ("{\"k\": 1}", "{'k': 1}"), ("5", "5"),
            ("see [1]: {\"long\": \"object\"}!", "{'long': 'object'}"),
            ("```json\\n[1, 2]\\n```", "[1, 2]"), ("{not json} {\"y\": {}}", "{'y': {}}"),
        ):
            with self.subTest(text):
                self.assert_shows(f"extract_json('{text}')", value)
        self.assert_shows(
            "extract_json('none {here'), extract_json('[' * 2000), extract_json('')",
            "(None, None, None)",
        )

    def test_extract_sections(self):
        self.assert_shows("[(s['header'], s['content'][:6], s['start'])"
                          " for s in extract_sections(r'^# .*$')]",
                          "[('# One', '\\nalpha', 0), ('# Two', '\\nbeta\\n', 32)]")
        self.assert_shows(
            "extract_sections('none'), len(extract_sections('a', text='aaa'))", "([], 3)"
        )


if __name__ == "__main__":
    unittest.main()

"""Names and arguments of other RLM libraries: each row runs as it stands in their documents.

The sources, as their repositories are called: official (alexzhang13/rlm), dspy (stanfordnlp/dspy),
rlm-cli (viplismism/rlm-cli), specification (DwayneWilkes/rlm, of which docs/conformance.md cites
the specifications), and others by their names.
"""

import unittest

from supervisor import Worker, WorkerTest

CONTEXT = "# One\nalpha {\"a\": [1, 2]} Alpha\n# Two\nbeta\n## Sub\nmore\n## Sub 2\nend"


class Conventions(WorkerTest):
    def setUp(self):
        self.worker = Worker(context=CONTEXT.encode())
        self.addCleanup(self.worker.__exit__)

    def assert_refused(self, code, kind, *parts):
        error = self.worker.run(code)["error"] or ""
        self.assertRegex(error.splitlines()[-1] if error else "", rf"^{kind}: ")
        for part in parts:
            self.assertIn(part, error.splitlines()[-1])

    def assert_rows(self, rows):
        for source, code, shown in rows:
            with self.subTest(code, source=source):
                self.assert_shows(code, shown)


class Answers(Conventions):
    def assert_answers(self, rows):
        for source, code, *answer in rows:
            with self.subTest(code, source=source):
                done = self.worker.run(code)
                self.assertIsNone(done["error"])
                self.assertEqual([done["final"], done["answer"]], answer)

    def test_names_and_arguments(self):
        self.assert_answers((
            ("dspy: SUBMIT", "SUBMIT(answer='42')", "final_direct", "42"),
            ("dspy: SUBMIT, several outputs", "SUBMIT(answer='é', score=0.5, why=['a'])",
             "final_direct", '{"answer": "é", "score": 0.5, "why": ["a"]}'),
            ("dspy: SUBMIT, no JSON", "SUBMIT(a={1}, b=1j)", "final_direct",
             '{"a": "{1}", "b": "1j"}'),
            ("dspy: SUBMIT, one output by place", "SUBMIT('x')", "final_direct", "x"),
            ("smolagents: final_answer", "final_answer(answer=[1, 2])", "final_direct", "[1, 2]"),
            ("smolagents: final_answer", "final_answer('Paris')", "final_direct", "Paris"),
            ("models: FINAL(answer=)", "FINAL(answer='a')", "final_direct", "a"),
            ("models: FINAL(value=)", "FINAL(value=None)", "final_direct", "None"),
            ("models: FINAL(a, b)", "FINAL('Total:', 5)", "final_direct", "Total: 5"),
            ("official: FINAL_VAR", "x = 'v'\nFINAL_VAR(variable_name='x')", "final_var", "v"),
            ("models: FinalVar", "FinalVar('x')", "final_var", "v"),
            ("models: FINAL_VAR('answer')", "answer['content'] = 'c'\nFINAL_VAR('answer')",
             "final_var", "c"),
        ))

    def test_a_value_given_to_final_var(self):
        self.worker.run("city = 'Berlin'\nd = {'k': 'Paris'}\nn = 'city'\ndef f(): return 'Rome'")
        self.assert_answers((
            ("rlm-cli: the variable", "FINAL_VAR(city)", "final_var", "Berlin"),
            ("rlm-cli: in the block that sets it", "c = 'Oslo'\nFINAL_VAR(c)", "final_var", "Oslo"),
            ("rlm-cli: an element", "FINAL_VAR(d['k'])", "final_var", "Paris"),
            ("rlm-cli: a call", "FINAL_VAR(\n  f()\n)", "final_var", "Rome"),
            ("rlm-cli: a sum", "FINAL_VAR('Mad' + 'rid')", "final_var", "Madrid"),
            ("rlm-cli: an f-string", "FINAL_VAR(f'{city}')", "final_var", "Berlin"),
            ("rlm-cli: in a function", "def end(v): FINAL_VAR(v)\nend('Bonn')", "final_var",
             "Bonn"),
            ("rlm-cli: by name", "FINAL_VAR(value=city)", "final_var", "Berlin"),
            ("a name in a variable", "FINAL_VAR(n)", "final_var", "Berlin"),
            ("the name", "FINAL_VAR('city')", "final_var", "Berlin"),
            ("the source is not to be seen", "eval('FINAL_VAR(city)')", "final_var", "Berlin"),
        ))

    def test_a_name_that_is_none_is_refused(self):
        """Also where a variable's value is the same text, for it is the same object in Python."""
        for code in ("FINAL_VAR('reprot')", "kind = 'reprot'\nFINAL_VAR('reprot')",
                     "FinalVar('reprot')", "FINAL_VAR(name='reprot')",
                     "eval(\"FINAL_VAR('unknown')\")"):
            with self.subTest(code):
                self.assert_refused(code, "NameError", "there is no variable", "FINAL()")


class Texts(Conventions):
    def test_names_and_arguments(self):
        self.assert_rows((
            # source, code, what it shows
            ("specification: find_line", "find_line('ALPHA')",
             "[(2, 'alpha {\"a\": [1, 2]} Alpha')]"),
            ("specification: find_line", "find_line('^#')[1], find_line('none')", "((3, '# Two'), [])"),
            ("specification: get_line", "get_line(1), get_line(8), get_line(9), get_line(0)",
             "('# One', 'end', '', '')"),
            ("specification: count_lines", "count_lines(), count_lines('^#'), count_lines('BETA')",
             "(8, 4, 1)"),
            ("specification: quote_match", "quote_match('b[a-z]+'), quote_match('none')",
             "('beta', None)"),
            ("specification: quote_match", "quote_match('alpha.*', max_length=5)", "'alpha...'"),
            ("specification: chunk_by_headers", "chunk_by_headers()",
             "[{'header': '## Sub', 'content': 'more', 'start': 43}, "
             "{'header': '## Sub 2', 'content': 'end', 'start': 55}]"),
            ("specification: chunk_by_headers",
             "[c['header'] for c in chunk_by_headers(level=1)]", "['# One', '# Two']"),
            ("specification: chunk_by_size",
             "[len(c) for c in chunk_by_size(30)], [len(c) for c in chunk_by_size(chars=30, overlap=10)]",
             "([30, 30, 7], [30, 30, 27])"),
            ("specification: chunk_by_size", "chunk_by_size() == [context]", "True"),
            ("specification: search_context(max_results=)",
             "len(search_context('#', max_results=2)), len(search_context('#', 5))", "(2, 6)"),
            ("langchain: chunk_size, chunk_overlap",
             "chunk_text('abcdefghij', chunk_size=4, chunk_overlap=1)", "['abcd', 'defg', 'ghij']"),
            ("rag: top_k", "len(search_context('#', top_k=1))", "1"),
            ("minrlm: text first",
             "len(search_context(context, 'alpha')), count_matches(context, 'alpha')", "(2, 2)"),
        ))

    def test_swapped_arguments_are_put_right(self):
        long = "x = 'needle in a line\\n' * 40"
        self.worker.run(long + "\nimport re")
        self.assert_rows((
            ("the context", "count_matches(context, 'a')", "6"),
            ("the context, by name", "count_matches(pattern='a', text=context)", "6"),
            ("the context, second", "count_matches('a', context)", "6"),
            ("a long text", "count_matches(x, 'needle'), count_matches('needle', x)", "(40, 40)"),
            ("a long text, by name", "count_matches(x, text='needle')", "40"),
            ("another name", "count_matches(context=x, query='needle')", "40"),
            ("an expression", "count_matches('abcabc', re.compile('b'))", "2"),
            ("the context", "[s['header'] for s in extract_sections(context, '^# .*$')]",
             "['# One', '# Two']"),
            ("text for a number", "len(search_context('a', x))", "40"),
            ("text first", "search_context(x, 'needle', 2)[0]['context']", "'needle i'"),
            ("text first", "find_line(context, 'beta'), quote_match(context, 'be..')",
             "([(4, 'beta')], 'beta')"),
            ("text first", "get_line(context, 4), get_line(4, context)", "('beta', 'beta')"),
            ("text alone", "count_lines(context), count_lines(x)", "(8, 41)"),
            ("text first", "len(chunk_by_headers(context, 2)), len(chunk_by_headers(context))",
             "(2, 2)"),
            ("text first", "len(chunk_by_size(x, 100))", "7"),
            ("number first", "chunk_text(4, 'abcdefgh', 0)", "['abcd', 'efgh']"),
        ))

    def test_what_may_be_meant_as_it_stands_is_not_swapped(self):
        self.assert_rows((
            ("a pattern longer than the text", "count_matches('error|warning', 'warn')", "0"),
            ("a pattern longer than the text", "count_matches('abc|b', 'b')", "1"),
            ("both long", "count_matches('needle', 'x' * 1000)", "0"),
            ("a verbose pattern", "count_matches('(?x) b  # the second letter\\n', 'abc')", "1"),
            ("as long as the text", "count_matches('a' * 600, 'a' * 600)", "1"),
            ("the context in the context", "count_matches('beta', context)", "1"),
        ))

    def test_impossible_arguments_are_told_the_right_call(self):
        for code, kind, *parts in (
            ("count_matches(context)", "ValueError", "count_matches(): the pattern is missing",
             "count_matches(pattern, text=...)"),
            ("count_matches(5)", "TypeError", "must be a str, not int"),
            ("search_context(['a', 'b'])", "TypeError", '"|".join(words)'),
            ("search_context('a', window='b', text='c')", "TypeError", "window must be a number"),
            ("search_context('a', -1)", "ValueError", "window", "at least 0"),
            ("search_context('a', max_results=1.5)", "ValueError", "max_results"),
            ("count_matches('a', text='b', context='c')", "TypeError",
             "text= and context= mean the same"),
            ("chunk_text('abc', 2.5, 1)", "ValueError", "whole number"),
            ("chunk_by_size(10, 10)", "ValueError", "overlap must be less than chars"),
            ("get_line('three')", "TypeError", "missing a required argument", "get_line(n"),
            ("chunk_by_headers(0)", "ValueError", "level"),
        ):
            with self.subTest(code):
                self.assert_refused(code, kind, *parts)


if __name__ == "__main__":
    unittest.main()

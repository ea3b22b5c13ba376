"""Errors that teach: a name that models invent is answered with what is there instead."""

import unittest

from supervisor import WorkerTest, Worker


class Hints(WorkerTest):
    def setUp(self):
        self.worker = Worker(context=b"one\ntwo")
        self.addCleanup(self.worker.__exit__)

    def hint(self, code):
        """The last line of the block's error, where it is a hint; else ''."""
        error = self.worker.run(code)["error"] or ""
        last = error.splitlines()[-1] if error else ""
        return last if last.startswith("Hint: ") else ""

    def test_names(self):
        for source, code, part in (
            ("minrlm", "peek(context)", "context[:2000]"),
            ("rlm-cli", "ctx[:10]", "the input is the variable `context`"),
            ("recursive-llm", "sub_query('q')", "llm_query(prompt) asks a model"),
            ("models", "ask_llm('q')", "batch_llm_query(prompts)"),
            ("aleph", "chunk(1000)", "chunk_text(context, size=10000)"),
            ("aleph", "lines(0, 5)", "context.splitlines()"),
            ("models", "spawn('t')", "rlm_query(task, ctx)"),
            ("models", "find_all('x')", "search_context(pattern)"),
            ("coding agents", "read_file('a.py')", "context.files"),
            ("dspy", "submit('x')", "FINAL(value)"),
            ("models", "get_budget()", "budget()"),
            ("models", "list_variables()", "SHOW_VARS()"),
            ("notebooks", "np.mean([1])", "numpy is not loaded here; in its place serves math"),
            ("notebooks", "pd.DataFrame()", "pandas is not loaded here; in its place serves csv"),
            ("in a function", "def f():\n    return document\nf()", "`context`"),
        ):
            with self.subTest(code, source=source):
                self.assertIn(part, self.hint(code))

    def test_memory(self):
        """Where the interpreter says no more than that there is none."""
        self.assertIn("grep() and read_lines() copy little", self.hint("raise MemoryError"))
        self.assertEqual(self.hint("raise MemoryError('too many apples')"), "")

    def test_what_an_answer_is(self):
        self.worker.answer = lambda call: ["the answer"] * len(call["prompts"])
        self.worker.run("a = llm_query('q')")
        for code, part in (
            ("a.text", "give a str: use it as it is"),
            ("a.choices[0].message.content", "give a str"),
            ("a.content", "give a str"),
            ("batch_llm_query(['q'])[0].response", "give a str"),
            ("a['text']", "json.loads()"),
            ("context.read()", "it is the text itself"),
            ("context.get('a')", "json.loads()"),
            ("context.files", "not made of files"),
        ):
            with self.subTest(code):
                self.assertIn(part, self.hint(code))

    def test_other_errors_have_none(self):
        for code in ("undefined_name_of_the_users", "'x'.no_such", "{}['k']", "1 + ''", "raise NameError",
                     "raise NameError('ctx')", "[][0]", "(1).text",
                     "class E(NameError):\n    def __str__(self): raise ValueError\nraise E"):
            with self.subTest(code):
                self.assertEqual(self.hint(code), "")

    def test_a_name_of_the_users_is_his(self):
        self.assert_shows("ctx = 'mine'\nctx", "'mine'")


if __name__ == "__main__":
    unittest.main()

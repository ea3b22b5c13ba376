"""Names and arguments of other RLM libraries: each row runs as it stands in their documents.

The sources, as their repositories are called: official (alexzhang13/rlm), dspy (stanfordnlp/dspy),
rlm-cli (viplismism/rlm-cli), specification (DwayneWilkes/rlm, of which docs/conformance.md cites
the specifications), and others by their names.
"""

import builtins
import json
import keyword
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


class Calls(Conventions):
    USUAL = {"turns": [], "model": None, "system": None, "max_tokens": None, "temperature": None}

    def assert_asks(self, source, code, *calls):
        """Each of `calls` are the members that are not the usual ones."""
        with self.subTest(code, source=source):
            self.worker.calls.clear()
            done = self.worker.run(code)
            self.assertIsNone(done["error"])
            asked = []
            for call in self.worker.calls:
                call.pop("id")
                usual = self.USUAL if call.pop("type") == "llm_query" else {"subsets": []}
                asked.append({
                    key: value for key, value in call.items()
                    if key not in usual or value != usual[key]
                })
            self.assertEqual(asked, list(calls))

    def setUp(self):
        super().setUp()
        self.worker.answer = lambda call: ["a"] * len(
            call.get("turns") or call.get("prompts") or call.get("tasks"))
        self.worker.run("chunk, text = 'one two', 'three four'")

    def test_questions(self):
        one = {"prompts": ["one two"]}
        both = {"prompts": ["one two\n\nthree four"]}
        for source, code, *calls in (
            ("rlm-cli: llm_query(sub_context, instruction)", "llm_query(chunk, text)", both),
            ("rlm-cli: by name", "llm_query(sub_context=text, instruction=chunk)", both),
            ("rlm-cli: no instruction", "llm_query(chunk, '')", one),
            ("rlm-cli: no instruction", "llm_query(sub_context=chunk, instruction='')", one),
            ("fast-rlm: llm_query(data, instruction=)", "llm_query(text, instruction=chunk)", both),
            ("models: llm_query(data, query=)", "llm_query(text, query=chunk)", both),
            ("models: the question last", "llm_query(chunk, 'why?')",
             {"prompts": ["one two\n\nwhy?"]}),
            ("models: context=", "llm_query('one two', context=text)", both),
            ("models: text and question", "llm_query(text=text, question=chunk)", both),
            ("official: model by place", "llm_query(chunk, 'gpt-5')", {**one, "model": "gpt-5"}),
            ("openrouter", "llm_query(chunk, 'anthropic/claude-sonnet-4.5')",
             {**one, "model": "anthropic/claude-sonnet-4.5"}),
            ("ollama", "llm_query(chunk, 'qwen2.5-coder:1.5b')",
             {**one, "model": "qwen2.5-coder:1.5b"}),
            ("a family's name", "llm_query(chunk, 'mistral')", {**one, "model": "mistral"}),
            ("a model of one's own", "llm_query(chunk, model='local')", {**one, "model": "local"}),
            ("text and model", "llm_query(chunk, text, 'gpt-5')", {**both, "model": "gpt-5"}),
            ("no model", "llm_query(chunk, model=None), llm_query(chunk, model='')", one, one),
            ("openai: options",
             "llm_query(chunk, system='s', max_tokens=50, temperature=0.25)",
             {**one, "system": "s", "max_tokens": 50, "temperature": 250}),
            ("openai: other names", "llm_query(chunk, system_prompt='s', max_output_tokens=50.0)",
             {**one, "system": "s", "max_tokens": 50}),
            ("openai: messages", "llm_query([{'role': 'user', 'content': chunk}])", one),
            ("openai: one message", "llm_query({'role': 'user', 'content': chunk})", one),
            ("openai: system", "llm_query(messages=[{'role': 'system', 'content': 's'}, "
             "{'role': 'user', 'content': chunk}, {'role': 'user', 'content': text}])",
             {**both, "system": "s"}),
            ("openai: a conversation", "llm_query([{'role': 'user', 'content': 'u'}, "
             "{'role': 'assistant', 'content': 'a'}, {'role': 'user', 'content': 'v'}])",
             {"prompts": ["u", "a", "v"], "turns": [3]}),
            ("anthropic: parts of a content", "llm_query([{'role': 'user', 'content': "
             "[{'type': 'text', 'text': chunk}, {'type': 'text', 'text': text}]}])", both),
            ("nano-rlm: a dict", "llm_query({'prompt': chunk, 'model': 'm'})",
             {**one, "model": "m"}),
            ("sub_llm(task, context)", "sub_llm(chunk, text), sub_llm(chunk)", both, one),
            ("sub_llm(task, context): a word", "sub_llm(chunk, 'gpt-5')",
             {"prompts": ["one two\n\ngpt-5"]}),
            ("llm", "llm(chunk), call_llm(prompt=chunk)", one, one),
        ):
            self.assert_asks(source, code, *calls)

    def test_batches_of_questions(self):
        two = {"prompts": ["p", "q"]}
        for source, code, *calls in (
            ("official: llm_query_batched", "llm_query_batched(prompts=['p', 'q'], model='m')",
             {**two, "model": "m"}),
            ("models: one text for all", "batch_llm_query(['p', 'q'], context='c')",
             {"prompts": ["p\n\nc", "q\n\nc"]}),
            ("models: a text for each", "batch_llm_query(['p', 'q'], contexts=['c', 'd'])",
             {"prompts": ["p\n\nc", "q\n\nd"]}),
            ("models: by place", "batch_llm_query(['p', 'q'], ['c', 'd'])",
             {"prompts": ["p\n\nc", "q\n\nd"]}),
            ("models: the question for all", "batch_llm_query(['p', 'q'], 'who is it?')",
             {"prompts": ["p\n\nwho is it?", "q\n\nwho is it?"]}),
            ("official: the model by place", "batch_llm_query(['p', 'q'], 'gpt-5')",
             {**two, "model": "gpt-5"}),
            ("models: one by one", "batch_llm_query('p', 'q')", two),
            ("models: one by one", "batch_llm_query(*['p', 'q', 'r'])", {"prompts": ["p", "q", "r"]}),
            ("models: texts and the question", "batch_llm_query(['c', 'd'], question='p')",
             {"prompts": ["p\n\nc", "p\n\nd"]}),
            ("sub_llm_batch: pairs", "sub_llm_batch([('p', 'c'), ('q', 'd')])",
             {"prompts": ["p\n\nc", "q\n\nd"]}),
            ("fast-rlm: dicts", "batch_llm_query([{'query': 'p'}, {'prompt': 'q', 'data': 'd'}])",
             {"prompts": ["p", "q\n\nd"]}),
            ("openai: conversations", "batch_llm_query([[{'role': 'user', 'content': 'u'}, "
             "{'role': 'assistant', 'content': 'a'}, {'role': 'user', 'content': 'v'}], 'q'])",
             {"prompts": ["u", "a", "v", "q"], "turns": [3, 1]}),
            ("dicts with options of their own", "batch_llm_query([{'prompt': 'p', 'model': 'm'}, "
             "'q', {'prompt': 'r', 'model': 'm'}], temperature=0)",
             {"prompts": ["p", "r"], "model": "m", "temperature": 0},
             {"prompts": ["q"], "temperature": 0}),
        ):
            self.assert_asks(source, code, *calls)

    def test_calls_that_are_awaited(self):
        """rlm-cli: all are asked before one is answered, the second argument is the instruction."""
        self.worker.calls.clear()
        self.worker.start_block(
            "import asyncio\n"
            "await asyncio.gather(async_llm_query(chunk, 'summarize'), sub_llm(chunk), llm(text))")
        calls = [self.worker.receive() for _ in range(3)]
        self.assertEqual(sorted(call["prompts"][0] for call in calls),
                         ["one two", "one two\n\nsummarize", "three four"])
        for call in calls:
            self.worker.reply(call["id"], call["prompts"])
        done = self.worker.until("done")
        self.assertIsNone(done["error"])
        self.assertEqual(done["stdout"], "['one two\\n\\nsummarize', 'one two', 'three four']\n")
        self.assert_asks("rlm-cli: by name", "await async_llm_query(sub_context=text, "
                         "instruction=chunk)", {"prompts": ["one two\n\nthree four"]})
        self.assert_asks("fast-rlm", "await async_rlm_query('t')",
                         {"tasks": ["t"], "contexts": [None], "models": [None]})

    def test_plans_and_races(self):
        self.worker.calls.clear()
        self.worker.answer = lambda call: [json.dumps(
            {"winner": "0", "results": {"0": {"response": "r"}}})]
        for code, wanted in (
            ("race_query([{'query': 'p', 'model': 'm'}])", {"input": "p", "model": "m"}),
            ("race_query([{'task': 't', 'ctx': 'c'}])", {"input": "t", "mode": "rlm",
                                                         "context": "c"}),
            ("run_plan([{'id': '0', 'query': 'p', 'dependencies': []}])",
             {"input": "p", "dependsOn": []}),
        ):
            with self.subTest(code):
                self.assertIsNone(self.worker.run(code)["error"])
                operation, = json.loads(self.worker.calls[-1]["plan"])["operations"]
                self.assertEqual(operation, {"id": "0", **wanted})
        self.assert_refused("run_plan([{'id': '0', 'prompt': 'p', 'query': 'q'}])", "ValueError",
                            "twice, by two names")

    def test_answers_stand_in_the_order_of_the_prompts(self):
        self.worker.answer = lambda call: [f"<{text}>" for text in call["prompts"]]
        self.assert_shows(
            "batch_llm_query(['p', {'prompt': 'q', 'model': 'm'}, 'r', {'prompt': 's', 'model': 'n'}])",
            "['<p>', '<q>', '<r>', '<s>']")

    def test_tasks(self):
        one = {"tasks": ["t"], "contexts": [None], "models": [None]}
        two = {"tasks": ["t", "u"], "contexts": [None, None], "models": [None, None]}
        for source, code, *calls in (
            ("official: model=", "rlm_query('t', model='gpt-5-mini')",
             {**one, "models": ["gpt-5-mini"]}),
            ("official: prompt=", "rlm_query(prompt='t')", one),
            ("swapped", "rlm_query(context, 'which host?')", {**one, "tasks": ["which host?"]}),
            ("models: context=", "rlm_query('t', context='c')", {**one, "contexts": [b"c"]}),
            ("models: the caller's own", "rlm_query('t', context=context)", one),
            ("a model's name for a text", "rlm_query('t', ctx='gpt-5-mini')",
             {**one, "contexts": [b"gpt-5-mini"]}),
            ("one word for a text", "rlm_query('t', 'France'), rlm_query('t', 'http://a.b/c1')",
             {**one, "contexts": [b"France"]}, {**one, "contexts": [b"http://a.b/c1"]}),
            ("recursive-llm", "recursive_llm(sub_query='t', sub_context='c')",
             {**one, "contexts": [b"c"]}),
            ("nano-rlm: rlm", "rlm({'prompt': 't'})", one),
            ("official: rlm_query_batched", "rlm_query_batched(['t', 'u'], model='m')",
             {**two, "models": ["m", "m"]}),
            ("fleet: query and context", "batch_rlm_query([{'query': 't', 'context': 'c'}, "
             "{'prompt': 'u', 'model': 'm'}])",
             {**two, "contexts": [b"c", None], "models": [None, "m"]}),
            ("specification: pairs", "batch_rlm_query([('t', 'c'), ('u', context)])",
             {**two, "contexts": [b"c", None]}),
            ("models: a text for each", "batch_rlm_query(['t', 'u'], ['c', 'd'])",
             {**two, "contexts": [b"c", b"d"]}),
            ("models: rlm_query(data, task=)", "rlm_query('c', task='t')", {**one, "contexts": [b"c"]}),
            ("models: one text for all", "batch_rlm_query(['t', 'u'], context='c')",
             {**two, "contexts": [b"c", b"c"]}),
        ):
            self.assert_asks(source, code, *calls)

    def test_arguments_that_change_nothing_are_ignored_with_a_note(self):
        for code, *notes in (
            ("batch_llm_query(['p'], max_workers=8)", "max_workers= was ignored: the run decides that"),
            ("llm_query('p', timeout=5, top_p=1)", "timeout= was ignored", "top_p= was ignored"),
            ("llm_query('p', response_format={'type': 'json_object'})",
             "response_format= was ignored: say in the prompt which form"),
            ("rlm_query('t', max_depth=3)", "rlm_query(): max_depth= was ignored"),
            ("batch_rlm_query(['t'], max_iterations=3)", "max_iterations= was ignored"),
            ("[llm_query(p, verbose=True) for p in 'pq']", "verbose= was ignored"),
        ):
            with self.subTest(code):
                self.worker.calls.clear()
                done = self.worker.run(code)
                self.assertIsNone(done["error"])
                self.assertTrue(self.worker.calls)
                self.assertEqual(done["stderr"].count("was ignored"), len(notes))
                for note in notes:
                    self.assertIn(note, done["stderr"])
        self.assertEqual(self.worker.run("llm_query('p')")["stderr"], "")

    def test_what_cannot_be_told_is_refused_with_the_right_call(self):
        for code, kind, *parts in (
            ("llm_query(chunk, 'summarize')", "ValueError",
             "llm_query(prompt, model='summarize')", "llm_query(prompt, context='summarize')"),
            ("batch_llm_query(['p'], 'summarize')", "ValueError",
             "batch_llm_query(prompts, context='summarize')"),
            ("rlm_query('t', 'gpt-5-mini')", "ValueError",
             "rlm_query(task, model='gpt-5-mini')", "ctx='gpt-5-mini'"),
            ("batch_rlm_query(['t'], 'claude-haiku-4-5')", "ValueError",
             "batch_rlm_query(tasks, model='claude-haiku-4-5')"),
            ("llm_query(chunk, temperature=9)", "ValueError", "from 0 to 2, not 9"),
            ("llm_query(chunk, temperature=-0.1)", "ValueError", "from 0 to 2"),
            ("llm_query(chunk, temperature=float('nan'))", "ValueError", "from 0 to 2"),
            ("llm_query(chunk, temperature='hot')", "TypeError", "must be a number, not str"),
            ("llm_query(chunk, max_tokens=-1)", "ValueError", "at least 1, not -1"),
            ("llm_query(chunk, max_tokens=0)", "ValueError", "at least 1"),
            ("llm_query(chunk, max_tokens=True)", "TypeError", "a number, not bool"),
            ("llm_query(chunk, max_tokens=10**9)", "ValueError", "at most 100000000"),
            ("llm_query(chunk, max_tokens=float('inf'))", "ValueError", "whole number"),
            ("llm_query(chunk, system=['s'])", "TypeError", "system must be a str, not list"),
            ("llm_query(chunk, colour=5)", "TypeError", "'colour'", "llm_query(prompt, model="),
            ("llm_query(chunk, context={'a': 1})", "TypeError", "json.dumps()"),
            ("llm_query(prompt=chunk, query=text)", "TypeError", "prompt= and query="),
            ("llm_query([{'role': 'tool', 'content': 'x'}])", "ValueError", "'tool'"),
            ("llm_query([{'role': 'assistant', 'content': 'x'}])", "ValueError",
             "the first message of the prompt must be the user's"),
            ("llm_query([{'role': 'user', 'content': 'x'}, {'role': 'assistant', 'content': 'y'}])",
             "ValueError", "the last message of the prompt must be the user's"),
            ("llm_query([{'role': 'system', 'content': 'x'}])", "ValueError", "the last message"),
            ("llm_query([{'role': 'user', 'content': [{'type': 'image'}]}])", "TypeError",
             "the content of message 0"),
            ("llm_query({'prompt': 'p', 'colour': 1})", "ValueError", "'colour'", "'system'"),
            ("batch_llm_query([{'role': 'user', 'content': 'x'}])", "TypeError",
             "prompt 0", "messages"),
            ("batch_llm_query(['p', 'q'], context=['c'])", "ValueError", "a list of 1",
             "there are 2 to ask"),
            ("rlm_query('t', temperature=1)", "TypeError", "'temperature'", "rlm_query(task"),
            ("batch_llm_query('p', 'gpt-5')", "TypeError", "must be a list, not str"),
        ):
            with self.subTest(code):
                self.assert_refused(code, kind, *parts)
        self.assertEqual(self.worker.calls, [])


class Names(Conventions):
    ALIASES = (
        "SUBMIT final_answer FinalVar sub_llm llm call_llm sub_llm_batch rlm recursive_llm search "
        "show_vars find_line get_line count_lines quote_match chunk_by_headers chunk_by_size "
        "query history context_0 input_0 task_0 async_llm_query"
    ).split()

    def test_values(self):
        self.assert_rows((
            ("official: context_0", "context_0 is context", "True"),
            ("official: history", "history, len(history)", "([], 0)"),
            ("minrlm: query", "query", "'the task'"),
            ("minrlm: input_0, task_0", "input_0 is context, task_0", "(True, 'the task')"),
            ("official: show_vars", "show_vars()", str(self.worker.run("SHOW_VARS()")["stdout"])[:-1]),
        ))

    def test_they_are_not_listed(self):
        listing = self.worker.get()["variables"] + self.worker.run("SHOW_VARS()")["stdout"]
        listing += self.worker.run("sorted(globals())")["stdout"]
        for name in self.ALIASES:
            self.assertNotIn(f"{name},", listing)
            self.assertNotIn(f"'{name}'", listing)
            self.assertIsNone(self.worker.get(name)["value"])
        self.assert_refused("FINAL_VAR('query')", "NameError", "no variable 'query'")

    def test_a_variable_of_the_users_is_found_first_and_stays(self):
        for name in self.ALIASES:
            with self.subTest(name):
                self.worker.run(f"{name} = 'mine'")
                self.assert_shows(f"{name}", "'mine'")
                self.assert_shows(f"def f(): return {name}\nf()", "'mine'")
                self.assertEqual(self.worker.get(name)["value"], "mine")
                self.assertEqual(self.worker.run(f"FINAL_VAR('{name}')")["answer"], "mine")
                self.worker.run(f"del {name}")
                self.assert_shows(f"{name} != 'mine'", "True")

    def test_an_input_is_found_first(self):
        names = ["history", "query", "search"]
        worker = Worker(more=[(name, b"an input") for name in names])
        self.addCleanup(worker.__exit__)
        for name in names:
            with self.subTest(name):
                self.assertEqual(worker.run(name)["stdout"], "'an input'\n")
                worker.run(f"{name} = 1")
                self.assertEqual(worker.run(name)["stdout"], "'an input'\n")

    def test_nothing_of_pythons_is_hidden(self):
        self.assertEqual(set(self.ALIASES) & {*dir(builtins), *keyword.kwlist}, set())


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

    def test_search(self):
        """minrlm's tuples; others ask what it gives by the keys of dicts."""
        self.worker.run("line = 'a C++ error: 1.5 of 1x5'")
        self.assert_rows((
            ("minrlm: unpacked",
             "[(m, b, a) for m, b, a in search(context, 'BETA', context=3)]",
             "[('beta', 'wo\\n', '\\n##')]"),
            ("minrlm: by place", "[t[0] for t in search(input_0, 'alpha')]", "['alpha', 'Alpha']"),
            ("minrlm: the window by place", "search(context, 'beta', 2)", "[('beta', 'o\\n', '\\n#')]"),
            ("minrlm: no regular expression", "len(search(line, 'C++')), len(search(line, '1.5'))",
             "(1, 1)"),
            ("minrlm: nothing", "search(context, 'none')", "[]"),
            ("models: a regular expression", "search(context, r'^# T\\w+')[0][0]", "'# Two'"),
            ("aleph: the pattern alone", "search('alpha', max_results=1)[0]['match']", "'alpha'"),
            ("aleph: by keys", "search('alpha', 2, top_k=1)[0]['context'], search('alpha')[0]['start']",
             "('e\\nalpha {', 6)"),
            ("models: the pattern first", "search('alpha', context)[0]['start']", "6"),
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

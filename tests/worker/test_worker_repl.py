"""Blocks in the session of worker/repl.py: what they print, raise, keep, lose and answer."""

import json
import os
import re
import sys
import unittest

from supervisor import Gone, Worker, index_of

# Forms of a text that is mapped, each with a character that needs it.
MAPPED = {"ascii": "a", "latin-1": "é", "ucs-2": "€", "ucs-4": "🙂"}


class Blocks(unittest.TestCase):
    def setUp(self):
        self.worker = Worker(context="Grüße\r\nzwei\x00 🙂\n".encode() + b"\xff!")
        self.addCleanup(self.worker.__exit__)

    def run_block(self, code):
        return self.worker.run(code)

    def out(self, code):
        """The output of a block that must not fail."""
        done = self.run_block(code)
        self.assertIsNone(done["error"], done["error"])
        self.assertEqual(done["stderr"], "")
        return done["stdout"]

    def error(self, code):
        done = self.run_block(code)
        self.assertIsNotNone(done["error"], done)
        return done["error"]

    def assert_goes_on(self):
        self.assertEqual(self.out("1 + 1"), "2\n")


class Namespace(Blocks):
    def test_names_stay_from_block_to_block(self):
        """ENG-8: one namespace for all blocks."""
        self.out("x = 20\ndef double(n): return n * 2 + x\nimport math")
        self.assertEqual(self.out("print(double(1), math.floor(2.5))"), "22 2\n")

    def test_names_survive_an_exception(self):
        self.error("kept = 5\nraise ValueError()")
        self.assertEqual(self.out("kept"), "5\n")

    def test_is_the_main_module(self):
        """Code that looks a class up by its module finds the namespace."""
        self.assertEqual(self.out("print(__name__)"), "__main__\n")
        self.assertEqual(
            self.out(
                "import pickle, dataclasses, typing\n"
                "@dataclasses.dataclass\n"
                "class Point:\n    x: 'int' = 1\n"
                "print(pickle.loads(pickle.dumps(Point(3))), typing.get_type_hints(Point))"
            ),
            "Point(x=3) {'x': <class 'int'>}\n",
        )

    def test_future_import_lasts(self):
        self.out("from __future__ import annotations")
        self.assertEqual(
            self.out("def f(a: Undefined): pass\nf.__annotations__"), "{'a': 'Undefined'}\n"
        )

    def test_names_of_the_contract_are_restored(self):
        """interface.md: overwritten or deleted, they are back in the next block."""
        for name in ("llm_query", "batch_llm_query", "context", "FINAL", "chunk_text", "LLMError"):
            with self.subTest(name):
                before = self.out(f"id({name})")
                self.run_block(f"{name} = 'spoilt'")
                self.assertEqual(self.out(f"id({name})"), before)
                self.run_block(f"del {name}")
                self.assertEqual(self.out(f"id({name})"), before)

    def test_answer_and_user_variables_are_not_restored(self):
        self.out("answer = 'mine'\nx = 1\ndel x")
        self.assertEqual(self.out("answer, 'x' in globals()"), "('mine', False)\n")

    def test_survives_an_emptied_namespace(self):
        self.run_block("globals().clear()")
        self.assertEqual(self.out("len(context), __name__"), "(17, '__main__')\n")

    def test_a_missing_module_is_named(self):
        """For the user, who can preload it: where its import ended the block, and no lie that breaks."""
        self.out("import sys\nsys.meta_path.append(sys.modules['missing'].Missing())")  # the template's
        lie = "import nonesuch"
        for code, name in (("import pandas_of_nobody.part", "pandas_of_nobody"),
                           ("try: import nonesuch\nexcept ImportError: x", None),
                           ("raise ModuleNotFoundError('m', name='m')", None),
                           ("import tkinter", None), ("1", None),
                           (f"try: {lie}\nexcept ImportError as e: e.name = 5; raise", None),
                           (f"try: {lie}\nexcept ImportError as e: e.name = 65 * 'x'; raise", None)):
            with self.subTest(code):
                self.assertEqual(self.worker.run(code)["missing"], name)

    def test_all_names_exist_with_docstrings(self):
        """ENG-21"""
        names = (
            "llm_query batch_llm_query rlm_query batch_rlm_query race_query run_plan chunk_text "
            "search_context count_matches extract_json extract_sections FINAL FINAL_VAR SHOW_VARS "
            "budget llm_query_batched rlm_query_batched llm_batch LLMError BudgetExceeded"
        ).split()
        self.assertEqual(self.out(f"[n for n in {names!r} if not globals()[n].__doc__]"), "[]\n")
        self.assertEqual(self.out("answer"), "{'content': '', 'ready': False}\n")
        self.assertIn("overlap", self.out("help(chunk_text)"))


class Inputs(unittest.TestCase):
    def read_back(self, data):
        with Worker(context=data) as worker:
            self.assertIsNone(worker.started["error"])
            worker.run("FINAL(context)")
            done = worker.run("FINAL(context)")
            answer = done["answer"]
            return answer if isinstance(answer, bytes) else answer.encode()

    def test_context_is_byte_exact(self):
        """LIB-9, there and back: quotes, line ends, NUL, non-BMP, invalid UTF-8, nothing."""
        for data in (b"", b'"\'\\\n\\n', b"a\r\nb\rc", b"\0\0", "🙂é".encode(),
                     b"\xff\xfe\xed\xa0\x80", bytes(range(256)) * 200):
            with self.subTest(data[:10]):
                self.assertEqual(self.read_back(data), data)

    def test_context_that_is_mapped(self):
        """It is the str that decoding would have made."""
        page = os.sysconf("SC_PAGE_SIZE")
        for form, character in MAPPED.items():
            for length in (1, page - 1, page, 3 * page + 1):
                text = (character + "bc") * length
                with self.subTest(form, length=length), Worker(
                    context=text.encode(), forms=[form, "utf-8"],
                    more=[("decoded", text.encode())],
                ) as worker:
                    told = worker.run(
                        "type(context) is str, len(context), context == decoded,"
                        "hash(context) == hash(decoded), context.upper() == decoded.upper(),"
                        "(context + 'x')[-3:] == 'bcx', context.count('bc'), context[0]"
                    )
                    self.assertIsNone(told["error"])
                    self.assertEqual(told["stdout"].strip(), str(
                        (True, 3 * length, True, True, True, True, length, character)))
                    worker.run("del context\nimport gc; gc.collect()")
                    worker.run("context += 'more'")
                    self.assertEqual(worker.run("context == decoded")["stdout"], "True\n")

    def test_mapped_text_is_read_only(self):
        """Not by Python's ways: code that writes where it lies dies, and changes nothing."""
        with Worker(context=b"abc" * 5000, forms=["ascii"]) as worker:
            worker.run("import ctypes, sys")
            with self.assertRaises(Gone):
                worker.run("ctypes.memset(id(context) + sys.getsizeof('') - 1, 88, 1)")

    def test_file_that_cannot_be_mapped(self):
        """Shorter than it was said to be: told, not touched."""
        for data, form in ((b"", "ascii"), (b"", "ucs-2")):
            with self.subTest(form), Worker(context=data, forms=[form]) as worker:
                self.assertRegex(worker.started["error"], "^ValueError: ")

    def test_context_is_a_plain_str(self):
        with Worker(context=b"abc") as worker:
            self.assertEqual(worker.run("type(context) is str")["stdout"], "True\n")

    def test_context_is_empty_where_nothing_was_given(self):
        with Worker(context=None) as worker:
            self.assertEqual(worker.run("context")["stdout"], "''\n")

    def test_several_inputs_have_their_names_and_are_restored(self):
        with Worker(context=b"c", more=[("log", b"l"), ("data", b"d")]) as worker:
            worker.run("log = 1\ndel data")
            self.assertEqual(worker.run("context, log, data")["stdout"], "('c', 'l', 'd')\n")

    def test_directory(self):
        """A str subclass that has the files, in order, as slices."""
        for form in ("utf-8", "latin-1"):
            with self.subTest(form):
                self.check_directory(form)

    def check_directory(self, form):
        text = "== b.c\nüber\n== a.c\nx\n"
        index = index_of([("b.c", 7, 5), ("a.c", 19, 2)], text=text)
        with Worker(context=text.encode(), forms=[form], indexes=[index]) as worker:
            for code, shown in (
                ("isinstance(context, str), len(context)", "(True, 21)"),
                ("context == str(context), type(str(context))", "(True, <class 'str'>)"),
                ("list(context.files.items())", "[('b.c', 'über\\n'), ('a.c', 'x\\n')]"),
                ("len(context.files), 'a.c' in context.files", "(2, True)"),
                ("context.files.get('none')", ""),
                ("context.files", "<files: 2 texts by path: 'b.c', 'a.c'>"),
                ("type(context[:3]) is str, context[:4]", "(True, '== b')"),
                ("count_matches('==')", "2"),
                ("import gc, copy, pickle\ngc.collect() >= 0, copy.copy(context) == context",
                 "(True, True)"),
                ("type(pickle.loads(pickle.dumps(context)))", "<class 'str'>"),
                ("hasattr(type(context)('x'), 'files')", "False"),
                ("context.replace('x', 'y').count('y')", "1"),
            ):
                with self.subTest(code):
                    done = worker.run(code)
                    self.assertIsNone(done["error"])
                    self.assertEqual(done["stdout"].strip(), shown)
            error = worker.run("context.files['none']")["error"]
            self.assertTrue(error.endswith("KeyError: there is no file 'none'\n"), error)
            self.assertNotIn("source.py", error)
            self.assertIsNotNone(worker.run("context.files['a.c'] = 'z'")["error"])

    def test_many_files_are_found_in_any_order(self):
        index = index_of([(f"file{4999 - n}", n, 1) for n in range(5000)])
        with Worker(context=bytes(range(48, 58)) * 500, indexes=[index]) as worker:
            shown = worker.run(
                "print(len(context.files), list(context.files)[:2], context.files['file4999'],\n"
                "      context.files['file0'], 'file5000' in context.files, 3 in context.files,\n"
                "      [context.files[f'file{n}'] for n in range(20)])")["stdout"]
            self.assertEqual(shown, "5000 ['file4999', 'file4998'] 0 9 False False "
                             f"{[str(9 - n % 10) for n in range(20)]}\n")

    def test_input_that_cannot_be_read_is_told(self):
        with Worker(context=b"abc", indexes=[b"no index"]) as worker:
            self.assertRegex(worker.started["error"], "^ValueError: ")
            self.assertIs(worker.started["no_memory"], False)
            with self.assertRaises(Gone):
                worker.receive()


class Echo(Blocks):
    def test_last_expression_is_shown_as_a_repl_does(self):
        """ENG-9"""
        for code, shown in (
            ("'a\\n'", "'a\\n'\n"), ("None", ""), ("x = 3", ""), ("x = 3\nx", "3\n"),
            ("1;2", "2\n"), ("5\nif True: 6", ""), ("print('p')", "p\n"),
            ("print('p') or 7", "p\n7\n"), ("", ""), ("# nothing", ""), ("'''doc'''", "'doc'\n"),
        ):
            with self.subTest(code):
                self.assertEqual(self.out(code), shown)

    def test_underscore_is_the_last_value(self):
        self.out("6 * 7")
        self.assertEqual(self.out("_ + 1"), "43\n")

    def test_special_values(self):
        for code, shown in (
            ("float('nan')", "nan\n"), ("{1}", "{1}\n"), ("10**50", "1" + "0" * 50 + "\n"),
            ("'\\ud800'", "'\\ud800'\n"), ("print('\\ud800\\udcff')", "\\ud800\\udcff\n"),
            ("print('\\0\\x1b🙂')", "\0\x1b🙂\n"), ("b'\\xff'", "b'\\xff'\n"),
        ):
            with self.subTest(code):
                self.assertEqual(self.out(code), shown)

    def test_huge_int(self):
        """Where Python limits the digits it is an ordinary error."""
        self.worker.run("10**100000")
        self.worker.run("print(10**100000)")
        self.worker.run("FINAL(10**100000)")
        self.assert_goes_on()

    def test_evil_repr(self):
        for body in ("1/0", "return 5", "raise SystemExit", "raise KeyboardInterrupt",
                     "return self.__repr__()", "return 'x' * 10**6", "return '\\ud800'"):
            with self.subTest(body):
                self.run_block(f"class E:\n    def __repr__(self): {body}\n    __str__ = __repr__\n"
                               "    def __format__(self, f): return repr(self)\ne = E()\ne")
                self.run_block("print(e)")
                self.run_block("print(f'{e}')")
                self.worker.get("e")
                self.run_block("SHOW_VARS()")
                self.assert_goes_on()

    def test_echo_of_a_long_text_is_cut_before_it_is_made(self):
        self.worker.run("from resource import *\n"
                        "def peak(): return getrusage(RUSAGE_SELF).ru_maxrss\n"
                        "text = 'ab\\n' * 10**7\nbefore = peak()")
        for value, first, last in (
            ("text", "'ab\\nab", "nab\\n'\n"), ("b'b' * 10**7", "b'bbb", "bbb'\n"),
        ):
            with self.subTest(value):
                shown = self.out(value)
                self.assertTrue(
                    shown.startswith(first) and shown.endswith(last), (shown[:9], shown[-9:])
                )
                head, tail = re.split(r"\n\.\.\. \[\d+ characters omitted\] \.\.\.\n", shown)
                self.assertEqual((len(head), len(tail)), (25000, 25000))
        self.assertLess(int(self.out("peak() - before")), 20 << 10)


class Errors(Blocks):
    def test_output_before_an_exception_is_kept(self):
        done = self.run_block("print('before')\n1/0\nprint('after')")
        self.assertEqual(done["stdout"], "before\n")
        self.assertIn("ZeroDivisionError", done["error"])

    def test_traceback_shows_the_blocks_own_lines_and_only_those(self):
        self.run_block("def f(n):\n    return 1 // n")
        error = self.error("x = 1\n\nf(0)")
        self.assertRegex(
            error,
            r'^Traceback \(most recent call last\):\n  File "<block 2>", line 3, in <module>\n',
        )
        self.assertIn('  File "<block 1>", line 2, in f\n    return 1 // n\n', error)
        self.assertTrue(
            error.endswith("\nZeroDivisionError: integer division or modulo by zero\n"), error
        )
        self.assertEqual(error.count("File "), 2)

    def test_chained_exceptions_are_trimmed_too(self):
        error = self.error(
            "try:\n    llm_query(5)\nexcept TypeError as e:\n    raise ValueError('v') from e"
        )
        self.assertIn("direct cause", error)
        self.assertIn("    llm_query(5)\n", error)
        self.assertEqual(error.count("File "), 2, error)

    def test_syntax_error(self):
        error = self.error("x = 1\ny = = 2")
        self.assertRegex(error, r'^  File "<block 1>", line 2\n    y = = 2\n +\^\nSyntaxError: ')

    def test_a_syntax_error_runs_nothing(self):
        self.run_block("print('no')\nx = = 2")
        self.assertEqual(self.out("'x' in globals()"), "False\n")

    def test_code_that_cannot_be_compiled(self):
        for code in ("x = 'a\0b'", "'\ud800'", "(" * 300 + ")" * 300, "-" * 20000 + "1", "\x00",
                     "await x", "return 1", "yield"):
            with self.subTest(code[:10]):
                self.worker.send("exec", block=7, code=code.encode("utf-8", "replace").decode())
                self.worker.until("done")
                self.assert_goes_on()

    def test_warnings_show_the_line(self):
        done = self.run_block("x = 1\nx is 1")
        self.assertIn("<block 1>:2: SyntaxWarning", done["stderr"])

    def test_indented_block(self):
        self.assertEqual(
            self.out("    x = 1\n    if x:\n        print('in')\n\n    print('out')"), "in\nout\n"
        )
        self.assertIn("IndentationError", self.error("x = 1\n    y = 2"))
        self.assertEqual(self.out("t = '''\n  two\n'''\nt"), "'\\n  two\\n'\n")

    def test_crlf_source(self):
        self.assertIn('line 2, in <module>\n    1/0\n', self.error("x = 1\r\n1/0\r\n"))

    def test_source_lines_survive_a_cleared_line_cache(self):
        self.assertIn("    1/0\n", self.error("import linecache\nlinecache.clearcache()\n1/0"))

    def test_evil_exception(self):
        for body in ("raise ValueError", "return 5", "raise KeyboardInterrupt", "raise SystemExit"):
            with self.subTest(body):
                error = self.error(f"class E(Exception):\n    def __str__(self): {body}\nraise E()")
                self.assertIn("E", error)
                self.assert_goes_on()

    def test_bare_base_exceptions(self):
        for name in ("KeyboardInterrupt", "GeneratorExit", "BaseException"):
            with self.subTest(name):
                self.assertIn(name, self.error(f"raise {name}()"))
                self.assert_goes_on()

    def test_long_error_is_cut(self):
        error = self.error("raise ValueError('x' * 10**7)")
        self.assertIn("characters omitted", error)
        self.assertLess(len(error), 51000)

    def test_recursion(self):
        error = self.error("def f(n): return f(n + 1)\nf(0)")
        self.assertIn("RecursionError", error)
        self.assertLess(len(error), 5000)
        self.assert_goes_on()

    def test_memory_error(self):
        self.worker.run(
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20))"
        )
        self.assertIn("MemoryError", self.error("kept = 1\nx = bytearray(1 << 33)"))
        error = self.error("many = []\nwhile True: many.append(bytearray(1 << 20))")
        self.assertIn("MemoryError", error)
        self.assertEqual(self.out("many.clear()\nkept"), "1\n")

    def test_exception_groups(self):
        done = self.run_block("ExceptionGroup")
        if done["error"] is None:
            error = self.error("raise ExceptionGroup('g', [ValueError('v'), KeyError('k')])")
            self.assertIn("ValueError: v", error)


class Leaving(Blocks):
    def test_exit_ends_only_the_block(self):
        for code in ("import sys\nsys.exit()", "exit()", "quit(3)", "raise SystemExit('why')",
                     "exit(object())"):
            with self.subTest(code):
                done = self.run_block(f"print('before')\n{code}\nprint('after')")
                self.assertEqual(done["stdout"], "before\n")
                self.assertIsNone(done["error"])
                self.assertIn("ended this block only", done["stderr"])
                self.assert_goes_on()
        self.assertIn("why\n", self.run_block("exit('why')")["stderr"])

    def test_input_is_refused(self):
        for code in ("input('name? ')", "import sys\nsys.stdin.read()",
                     "import sys\nfor l in sys.stdin: pass"):
            with self.subTest(code):
                self.assertRegex(self.error(code), "EOFError: .*`context`")

    def test_os_exit_ends_the_worker(self):
        with self.assertRaises(Gone) as gone:
            self.run_block("import os\nos._exit(3)")
        self.assertEqual(gone.exception.args[0], 3)

    def test_exit_message_ends_the_worker(self):
        self.worker.send("exit")
        with self.assertRaises(Gone) as gone:
            self.worker.receive()
        self.assertEqual(gone.exception.args[0], 0)

    def test_does_not_hang_on_exit_handlers_and_threads(self):
        self.run_block("import atexit, threading, time\natexit.register(time.sleep, 1000)\n"
                       "threading.Thread(target=time.sleep, args=(1000,)).start()")
        self.worker.send("exit")
        with self.assertRaises(Gone):
            self.worker.receive()


class Answers(Blocks):
    def final(self, code):
        done = self.run_block(code)
        return done["final"], done["answer"]

    def test_final(self):
        """ENG-3: the value, converted with str; the source; the last call counts."""
        for code, source, answer in (
            ("FINAL('text')", "final_direct", "text"),
            ("FINAL(12.5)", "final_direct", "12.5"),
            ("FINAL('')", "final_direct", ""),
            ("FINAL(None)", "final_direct", "None"),
            ("x = [1]\nFINAL_VAR('x')", "final_var", "[1]"),
            ("x = 'v'\nFINAL_VAR(' \"x\" ')", "final_var", "v"),
            ("FINAL_VAR('not a name')", "final_var", "not a name"),
            ("FINAL_VAR({'a': 1})", "final_var", "{'a': 1}"),
            ("FINAL_VAR('north-' + 'east')", "final_var", "north-east"),
            ("FINAL_VAR('Berlin ' + '(Germany)')", "final_var", "Berlin (Germany)"),
            ("d = {'k': 'd[1]'}\nv = d['k']\nFINAL_VAR(v)", "final_var", "d[1]"),
            ("FINAL_VAR('4' + '2.5')", "final_var", "42.5"),
            ("FINAL(1)\nFINAL(2)", "final_direct", "2"),
            ("FINAL(1)\ny = 3\nFINAL_VAR('y')", "final_var", "3"),
            ("FINAL(1)\n1/0", "final_direct", "1"),
            ("FINAL('a')\nexit()", "final_direct", "a"),
            ("pass", None, None),
        ):
            with self.subTest(code):
                self.assertEqual(self.final(code), (source, answer))

    def test_an_expression_is_no_name(self):
        """ENG-3: its text is not taken for the answer; the model is told what to write."""
        self.run_block("d = {'k': 'found'}; rows = [1]")
        for text in ("d['k']", 'd["k"]', " d['k'] ", "e['k']", "rows[0]", "d.get('k')", "len(rows)",
                     "context[:3]", "rows + rows", "len(nothing)"):
            with self.subTest(text):
                done = self.run_block(f"FINAL_VAR({text!r})")
                self.assertIsNone(done["final"])
                self.assertIn("is an expression, no variable's name", done["error"])
                self.assertIn(f"Write FINAL({text.strip()})", done["error"])

    def test_unknown_variable_is_no_answer(self):
        self.run_block("report = totals = 1\nimport re")
        done = self.run_block("FINAL_VAR('reprot')")
        self.assertIsNone(done["final"])
        self.assertRegex(done["error"], "NameError: .*'reprot'.*: report, totals\\.")
        self.assertIsNone(self.run_block("FINAL_VAR('llm_query')")["final"])

    def test_answer_dict(self):
        self.assertEqual(self.final("answer['content'] = 'draft'"), (None, None))
        self.assertEqual(
            self.final("answer['content'] = 42\nanswer['ready'] = True"), ("final_direct", "42")
        )
        self.assertEqual(self.final("answer = {'content': 'n', 'ready': 1}"), ("final_direct", "n"))
        self.assertEqual(self.final("FINAL('f')"), ("final_direct", "f"))
        self.assertEqual(self.final("answer = 'ready'"), (None, None))
        self.assertEqual(self.final("del answer"), (None, None))

    def test_value_without_a_str(self):
        self.run_block("class E:\n    def __str__(self): 1/0")
        for code in ("FINAL(E())", "answer = {'content': E(), 'ready': True}"):
            done = self.run_block(code)
            self.assertIsNone(done["final"])
            self.assertIn("ZeroDivisionError", done["error"])

    def test_both_errors_are_told(self):
        error = self.error(
            "answer = {'ready': True, 'content': type('E', (), {'__str__': None})()}\n[][0]"
        )
        self.assertIn("IndexError", error)
        self.assertIn("TypeError", error)

    def test_large_answer(self):
        done = self.run_block("FINAL('é' * 3_000_000)")
        self.assertEqual(done["answer"], "é".encode() * 3_000_000)


class Variables(Blocks):
    def test_get(self):
        """LIB-14"""
        for value, text in (
            ("'a\\nb'", "a\nb"), ("[1, 'é', None]", '[1, "é", null]'),
            ("{'a': True}", '{"a": true}'),
            ("1.5", "1.5"), ("{1}", "{1}"), ("float('nan')", "nan"),
            ("None", "null"), ("b'x'", "b'x'"),
            ("type('S', (str,), {'__str__': None})('sub')", "sub"), ("(1, 2)", "[1, 2]"),
        ):
            with self.subTest(value):
                self.run_block(f"v = {value}")
                self.assertEqual(self.worker.get("v")["value"], text)

    def test_giant_values(self):
        """An answer has at most 16 MiB; more of it is refused, not sent, and the session goes on."""
        for code in ("v = 'x' * (1 << 24 | 1)\nFINAL(v)", "FINAL_VAR('v')",
                     "answer = {'content': 'é' * (1 << 24), 'ready': True}"):
            with self.subTest(code):
                done = self.worker.run(code)
                self.assertIn("ValueError: an answer has at most 16 MiB", done["error"])
                self.assertIsNone(done["answer"])
        told = self.worker.get("v")
        self.assertIsNone(told["value"])
        self.assertRegex(told["variables"], r"^v is too large to be told: 16777217 characters\nv, str")
        done = self.worker.run("del answer\nFINAL('x' * (1 << 24))")
        self.assertEqual(len(done["answer"]), 1 << 24)

    def test_get_of_what_does_not_exist(self):
        for name in ("none", "llm_query", "__builtins__", ""):
            self.assertIsNone(self.worker.get(name)["value"])

    def test_get_of_an_expression(self):
        """Of variables and functions that there are; a text that is Python all the same is none."""
        self.run_block("n, rows = 20, [1]")
        for text, is_one in (("str(n)", True), ("f'{n} lines'", True), ("rows[0]", True), ("n + 1", True),
                             ("n", False), ("north-east", False), ("Paris (France)", False), ("", False),
                             ("20", False), ("the value is n", False), ("(" * 250, False)):
            self.assertIs(self.worker.get(text)["expression"], is_one, text)

    def test_get_of_an_input(self):
        self.assertTrue(self.worker.get("context")["value"].startswith(b"Gr"))

    def test_get_of_a_cycle(self):
        self.run_block("v = []\nv.append(v)")
        self.assertEqual(self.worker.get("v")["value"], "[[...]]")

    def test_listing(self):
        """ENG-19: name, type, size, preview; the user's only."""
        self.assertEqual(self.worker.get()["variables"], "")
        self.run_block("import re\ntext = 'a\\nb' * 1000\nn = 5\nd = {'k': [1, 2]}\n_private = ()")
        lines = self.worker.get()["variables"].split("\n")
        self.assertTrue(lines[0].startswith("text, str, 3000 characters, 'a\\nb"), lines)
        self.assertEqual(lines[1:], ["n, int, 5", "d, dict, 1 items, {'k': [1, 2]}",
                                     "_private, tuple, 0 items, ()"])

    def test_listing_is_bounded(self):
        self.run_block("for i in range(500): globals()[f'v{i}'] = list(range(10**4))")
        self.run_block("w = {i: 'x' * 1000 for i in range(1000)}")
        lines = self.worker.get()["variables"].split("\n")
        self.assertEqual(len(lines), 100)
        self.assertEqual(lines[-1], "... and 403 more")
        self.assertLessEqual(max(map(len, lines)), 200)

    def test_listing_of_strange_values(self):
        self.run_block("class E:\n    __len__ = __repr__ = None\ne = E()\n"
                       "class D(dict):\n    def __iter__(self): 1/0\nd = D(a=1)\n"
                       "globals()['\\ud800'] = 1\nh = 10**100000")
        names = [line.split(",")[0] for line in self.worker.get()["variables"].split("\n")]
        self.assertEqual(names, ["E", "e", "D", "d", "\\ud800", "h"])

    def test_show_vars(self):
        self.run_block("mine = [1]")
        shown = self.out("SHOW_VARS()")
        self.assertIn("context, str, 17 characters", shown)
        self.assertIn("\nmine, list, 1 items, [1]\n", shown)
        self.assertEqual(self.out("print(SHOW_VARS())"), shown)


if __name__ == "__main__":
    unittest.main()

"""Output of blocks: cut to head and tail, bounded, and not lost when streams are replaced."""

import re
import unittest

from supervisor import Worker

NOTE = re.compile(r"\n\.\.\. \[(\d+) characters omitted\] \.\.\.\n")


class Output(unittest.TestCase):
    def start(self, **options):
        worker = Worker(**options)
        self.addCleanup(worker.__exit__)
        return worker

    def test_up_to_the_limit_nothing_is_cut(self):
        worker = self.start(max_output=101)
        self.assertEqual(worker.run("print('x' * 100)")["stdout"], "x" * 100 + "\n")

    def test_head_and_tail_are_kept(self):
        """LIB-13: with a note of how much was left out, wherever the pieces fall."""
        for code in ("print(text, end='')", "for c in text: print(c, end='')",
                     "for i in range(0, len(text), 777): print(text[i:i + 777], end='')",
                     "import sys\nsys.stdout.writelines([text[:5], text[5:]])",
                     "import sys\n_n = sys.stdout.buffer.write(text.encode())"):
            for limit in (0, 1, 2, 7, 1000):
                with self.subTest(code, limit=limit):
                    worker = self.start(max_output=limit)
                    worker.run("text = 'ä' + ''.join(map(str, range(2000)))")
                    text = "ä" + "".join(map(str, range(2000)))
                    head, omitted, tail = NOTE.split(worker.run(code)["stdout"])
                    self.assertEqual(len(head) + len(tail), limit)
                    self.assertEqual(int(omitted), len(text) - limit)
                    self.assertTrue(text.startswith(head) and text.endswith(tail))

    def test_each_block_starts_anew(self):
        worker = self.start(max_output=10)
        worker.run("print('x' * 1000)")
        self.assertEqual(worker.run("print('y')")["stdout"], "y\n")

    def test_stderr_likewise(self):
        worker = self.start(max_output=10)
        done = worker.run("import sys\nprint('x' * 1000, file=sys.stderr)\nprint('o')")
        self.assertRegex(done["stderr"], NOTE)
        self.assertEqual(done["stdout"], "o\n")

    def test_memory_is_bounded_however_much_is_printed(self):
        worker = self.start()
        worker.run(
            "import resource, threading\n"
            "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "def much():\n"
            "    for i in range(100000): print('%0200d' % i)\n"
            "before = peak()"
        )
        done = worker.run(
            "threads = [threading.Thread(target=much) for _ in range(4)]\n"
            "for t in threads: t.start()\n"
            "for t in threads: t.join()\n"
            "big = 'x' * (64 << 20)\nprint(big)\n"
            "del big"
        )
        self.assertEqual(int(NOTE.search(done["stdout"]).group(1)),
                         4 * 100000 * 201 + (64 << 20) + 1 - 50000)
        grown = int(worker.run("print(peak() - before)")["stdout"])
        self.assertLess(grown, (64 + 24) << 10)

    def test_lone_surrogates_are_escaped(self):
        done = self.start(
            ).run("import sys\nprint('a\\ud800\\udc80')\nprint('\\udfff', file=sys.stderr)"
        )
        self.assertEqual((done["stdout"], done["stderr"]), ("a\\ud800\\udc80\n", "\\udfff\n"))

    def test_replaced_stdout_is_restored_and_its_output_kept(self):
        for code in ("sys.stdout = io.StringIO()", "sys.stdout = None", "del sys.stdout",
                     "sys.stdout.close()", "sys.stdout = io.StringIO(); sys.stdout.close()",
                     "sys.stdout = 5", "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
                     "contextlib.redirect_stdout(io.StringIO()).__enter__()"):
            with self.subTest(code):
                worker = self.start()
                worker.run("import sys, io, contextlib")
                done = worker.run(
                    f"print('one')\n{code}\ntry: print('two')\nexcept Exception: pass"
                )
                self.assertTrue(done["stdout"].startswith("one\n"), done)
                if "StringIO()" in code and "close" not in code or "Wrapper" in code:
                    self.assertEqual(done["stdout"], "one\ntwo\n")
                self.assertEqual(worker.run("print('three')")["stdout"], "three\n")

    def test_deliberate_redirection_is_the_users(self):
        done = self.start().run(
            "import io, contextlib\nb = io.StringIO()\n"
            "with contextlib.redirect_stdout(b): print('in')\nprint('out', b.getvalue())"
        )
        self.assertEqual(done["stdout"], "out in\n\n")

    def test_the_streams_behave_like_files(self):
        done = self.start().run(
            "import sys, logging\n"
            "logging.basicConfig(format='%(message)s')\nlogging.warning('logged')\n"
            "print('x', flush=True)\nsys.stdout.reconfigure(encoding='utf-8')\n"
            "out = sys.stdout\nprint(out.isatty(), out.encoding, out.writable(), out.closed)\n"
            "try: sys.stdout.write(5)\nexcept TypeError as e: print(e)\n"
            "try: sys.stdout.fileno()\nexcept OSError as e: print('no file')\n"
        )
        self.assertIsNone(done["error"])
        self.assertEqual(done["stderr"], "logged\n")
        self.assertEqual(
            done["stdout"],
            "x\nFalse utf-8 True False\nwrite() argument must be str, not int\nno file\n",
        )

    def test_what_a_thread_prints_between_blocks_comes_with_the_next(self):
        worker = self.start()
        worker.run("import threading\ngo = threading.Event()\n"
                   "def later():\n    llm_query('x')\n    print('late')\n    llm_query('y')\n"
                   "t = threading.Thread(target=later)")
        worker.start_block("t.start()")
        calls = {message["type"]: message for message in (worker.receive(), worker.receive())}
        self.assertEqual(calls["done"]["stdout"], "")
        worker.reply(calls["llm_query"]["id"], ["r"])
        worker.serve(worker.receive())
        self.assertEqual(worker.run("t.join()")["stdout"], "late\n")


if __name__ == "__main__":
    unittest.main()

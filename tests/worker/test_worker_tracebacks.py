"""Tracebacks of blocks, and those that blocks print: the user's lines, and no path of a file."""

import unittest

from supervisor import Worker


class Tracebacks(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.__exit__)

    def error(self, code):
        return self.worker.run(code)["error"]

    def assert_only(self, error, *lines):
        """The lines of code that a traceback shows, and no path."""
        shown = [line.strip() for line in error.splitlines() if line.startswith("    ")]
        self.assertEqual([line for line in shown if line.strip("^~ ")], list(lines), error)
        self.assertNotIn("/", error)

    def test_frames_of_libraries_are_cut(self):
        self.assert_only(self.error("import json\njson.loads('{')"),
                         "json.loads('{')")
        self.error("def each(x):\n    return x.no")
        error = self.error(
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor() as pool:\n    list(pool.map(each, [0]))"
        )
        self.assert_only(error, "list(pool.map(each, [0]))", "return x.no")

    def test_of_causes_and_groups(self):
        error = self.error(
            "import json\ntry:\n    json.loads('{')\nexcept ValueError as e:\n"
            "    raise RuntimeError('no') from e"
        )
        self.assertIn("direct cause", error)
        self.assert_only(error, "json.loads('{')", "raise RuntimeError('no') from e")

    def test_modules_do_not_say_where_they_lie(self):
        self.assert_only(self.error("from json import nothing"),
                         "from json import nothing")
        self.assert_only(self.error("import ast\nast.parse('x = = 1')"),
                         "ast.parse('x = = 1')", "x = = 1")

    def test_what_user_code_prints_of_them(self):
        for printed in ("traceback.print_exc(file=sys.stdout)", "print(traceback.format_exc())",
                        "print(*traceback.format_tb(e.__traceback__))",
                        "logging.basicConfig(stream=sys.stdout); logging.exception('x')"):
            with self.subTest(printed):
                done = self.worker.run(
                    "import json, logging, sys, traceback\ntry:\n    json.loads('{')\n"
                    f"except ValueError as e:\n    {printed}"
                )
                self.assertIsNone(done["error"], done["error"])
                self.assertIn("json.loads('{')", done["stdout"])
                self.assertNotIn("/", done["stdout"])
        done = self.worker.run("import traceback\ntraceback.print_stack()")
        self.assertIn("traceback.print_stack()", done["stderr"])
        self.assertNotIn("/", done["stderr"])

    def test_of_a_thread(self):
        done = self.worker.run("import threading\ndef f(): [][1]\n"
                               "t = threading.Thread(target=f)\nt.start()\nt.join()")
        self.assertRegex(done["stderr"], "^Exception in thread Thread-1")
        self.assertIn("IndexError", done["stderr"])
        self.assertNotIn("/", done["stderr"])

    def test_of_what_nobody_can_catch(self):
        self.worker.run("import json\nclass D:\n    def __del__(self): json.loads('{')")
        done = self.worker.run("D() and None")
        self.assertRegex(done["stderr"], "^Exception ignored in: D.__del__\n")
        self.assert_only(done["stderr"], "def __del__(self): json.loads('{')")

    def test_of_an_interrupt_that_nobody_can_catch(self):
        self.worker.run("import signal\nclass D:\n    def __del__(self):\n"
                        "        signal.raise_signal(signal.SIGINT)")
        done = self.worker.run("D() and None")
        self.assertIn("its time was up", done["stderr"])
        self.assert_only(done["stderr"], "signal.raise_signal(signal.SIGINT)")

    def test_warnings_of_libraries_do_not_say_where_they_lie(self):
        done = self.worker.run(
            "import ast, warnings\nwarnings.simplefilter('always')\n"
            "warnings.warn_explicit('w', UserWarning, ast.__file__, 7)\n"
            "warnings.warn('mine')"
        )
        self.assertIn("ast.py:7: UserWarning: w\n", done["stderr"])
        self.assertIn("<block 1>:4: UserWarning: mine\n  warnings.warn('mine')", done["stderr"])
        self.assertNotIn("/", done["stderr"])


if __name__ == "__main__":
    unittest.main()

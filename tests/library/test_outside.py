"""Programs outside of the tree, built with pkg-config alone against what is installed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from public import BUILD, ROOT


class OutsideTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-outside-"))
        cls.addClassCleanup(shutil.rmtree, cls.room)
        subprocess.run([shutil.which("meson"), "install", "--no-rebuild", "--quiet", "--destdir",
                        str(cls.room), "-C", str(BUILD)], check=True)
        (configuration,) = cls.room.rglob("rlmd.pc")
        prefix = next(line for line in configuration.read_text().splitlines()
                      if line.startswith("prefix="))[len("prefix="):]
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(configuration.parent),
                           "OPENAI_API_KEY": "sk-of-a-test"}
        cls.flags = subprocess.run(
            ["pkg-config", f"--define-variable=prefix={cls.room}{prefix}", "--cflags", "--libs",
             "rlmd"], env=cls.environment, check=True, capture_output=True, text=True,
        ).stdout.split()
        (library,) = cls.room.rglob("librlmd.so")
        cls.environment["LD_LIBRARY_PATH"] = str(library.parent)

    def build(self, source):
        """The program, without warnings, from a copy of the source that knows no tree."""
        copy = self.room / source.name
        shutil.copy(source, copy)
        program = copy.with_suffix("")
        done = subprocess.run(
            [shutil.which("cc") or "gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra",
             "-Wpedantic", "-Werror", str(copy), "-o", str(program), *self.flags],
            capture_output=True, text=True, cwd=self.room)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return program

    def run_program(self, program, *arguments):
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True,
                              env=self.environment, cwd=self.room, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def setUp(self):
        if b"__asan_init" in (BUILD / "librlmd.so").read_bytes():
            self.skipTest("the library was built with a sanitizer, which programs must be, too")

    def test_inputs(self):
        program = self.build(ROOT / "examples/inputs.c")
        (self.room / "notes.md").write_text("# Seven\n")
        status, out, err = self.run_program(program, "notes.md")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "context: 8 characters of markdown, 0 files\n"
                              "code: print(len(context))\nanswer: seven\n")
        status, out, err = self.run_program(program, "nowhere")
        self.assertEqual((status, out), (8, ""))
        self.assertIn("nowhere", err)

    def test_manners(self):
        """No handler, no output, no change of the environment; two providers find one key."""
        program = self.build(ROOT / "tests/library/manners.c")
        self.assertEqual(self.run_program(program, str(ROOT / "examples")), (0, "", ""))


if __name__ == "__main__":
    unittest.main()

"""The files of `meson install`: those that users can use, and no others."""
import importlib.util
import json
import marshal
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import tree


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        meson = shutil.which("meson")
        if meson is None:
            raise unittest.SkipTest("meson is not in PATH")
        told = subprocess.run([meson, "introspect", "--installed", str(tree.BUILD)],
                              check=True, capture_output=True, text=True).stdout
        cls.places = sorted(json.loads(told).values())

    def those(self, pattern):
        return [place for place in self.places if re.search(pattern, place)]

    def test_the_program_and_its_files(self):
        for pattern in (r"/bin/rlmd$", r"/rlmd/prices\.json$", r"/rlmd/ci/review\.sh$", r"/rlmd/ci/comment\.py$", r"/rlmd/worker/repl\.py$", r"/rlmd/helper/rlmd-lister$",
                        r"/rlmd/worker/messages\.py$", r"/rlmd/worker/_rlmd\.abi3\.so$",
                        r"/librlmd\.so\.\d+\.\d+\.\d+$",
                        r"/bash-completion/completions/rlmd$", r"/zsh/site-functions/_rlmd$",
                        r"/fish/vendor_completions\.d/rlmd\.fish$"):
            with self.subTest(pattern):
                self.assertEqual(len(self.those(pattern)), 1, self.places)

    def test_the_session_is_compiled(self):
        """Each of its modules, in the build tree and where it is installed, and for the paths there."""
        with tempfile.TemporaryDirectory() as room:
            subprocess.run([shutil.which("meson"), "install", "--no-rebuild", "--quiet",
                            "--destdir", room, "-C", str(tree.BUILD)], check=True)
            (installed,) = pathlib.Path(room).rglob("rlmd/worker")
            for directory in (tree.BUILD / "worker", installed):
                modules = list(directory.glob("*.py"))
                self.assertGreater(len(modules), 20)
                for module in modules:
                    with self.subTest(module):
                        self.assert_compiled(module)

    def test_the_program_finds_its_library(self):
        """Where it is installed, wherever that whole tree is moved to, and by nothing around it."""
        with tempfile.TemporaryDirectory() as room:
            there = pathlib.Path(room, "there")
            subprocess.run([shutil.which("meson"), "install", "--no-rebuild", "--quiet",
                            "--destdir", there, "-C", str(tree.BUILD)], check=True)
            for _ in range(2):
                (program,) = there.rglob("bin/rlmd")
                (library,) = there.rglob("librlmd.so.0")
                told = subprocess.run([shutil.which("ldd"), str(program)], check=True,
                                      capture_output=True, text=True, cwd="/").stdout
                found = re.search(r"librlmd\.so\.0 => (\S+)", told)
                self.assertIsNotNone(found, told)
                for config in there.rglob("rlmd.pc"):
                    self.assertIn("prefix=${pcfiledir}/", config.read_text())
                self.assertTrue(os.path.samefile(found.group(1), library), told)
                version = subprocess.run([program, "--version"], check=True, capture_output=True,
                                         text=True, cwd="/", env={}).stdout
                self.assertRegex(version, r"^rlmd \S+ \(prices of \d{4}-")
                there = there.rename(there.with_name("elsewhere" + there.name))

    def assert_compiled(self, module):
        with open(importlib.util.cache_from_source(module), "rb") as file:
            header, code = file.read(16), marshal.load(file)
        status = os.stat(module)
        self.assertEqual(header[:4], importlib.util.MAGIC_NUMBER)
        self.assertEqual(struct.unpack("<3I", header[4:]), (0, int(status.st_mtime), status.st_size))
        self.assertTrue(os.path.isabs(code.co_filename), code.co_filename)

    def test_nothing_that_cannot_be_linked(self):
        """A header is of use with a library and the file that tells pkg-config of it, or not."""
        headers = self.those(r"/include/|\.h$")
        libraries = self.those(r"/librlmd\.(a|so)")
        configuration = self.those(r"/pkgconfig/.*\.pc$")
        self.assertEqual([bool(headers), bool(libraries), bool(configuration)],
                         [bool(libraries)] * 3, self.places)

    def test_packages_have_the_version_of_the_program(self):
        version = re.search(r"version: '([\d.]+)'", tree.read("meson.build"))[1]
        for file, pattern in (("python/pyproject.toml", r'^version = "(.*)"'),
                              ("python/runtime/pyproject.toml", r'^version = "(.*)"'),
                              ("packaging/debian/changelog", r"\Arlmd \((.*)-\d+\)")):
            with self.subTest(file):
                self.assertEqual(re.search(pattern, tree.read(file), re.MULTILINE)[1], version)

    def test_documents_promise_no_other_library(self):
        """The installed files are those that README.md and docs/plans.md name to C programs."""
        if self.those(r"/librlmd\."):
            return
        for document in ("README.md", "docs/plans.md", "docs/architecture.md"):
            text = " ".join(tree.read(document).split())
            with self.subTest(document):
                self.assertNotRegex(text, r"C programs (have|use|through|link)")
                self.assertNotRegex(text, r"all but plans|but for plans")


if __name__ == "__main__":
    unittest.main()

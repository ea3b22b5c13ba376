"""include/rlmd: what a C or C++ program includes."""

import re
import shutil
import subprocess
import tempfile
import unittest

from public import BUILD, HEADERS, ROOT, all_functions, functions, without_comments

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", f"-I{ROOT / 'include'}"]
COMPILERS = [
    (compiler, language, standard)
    for compiler, language, standards in (
        ("gcc", "c", ("c11", "c17")), ("clang", "c", ("c11", "c17")),
        ("g++", "c++", ("c++11", "c++17")), ("clang++", "c++", ("c++11", "c++17")),
    )
    for standard in standards
]


def compile_text(compiler, language, standard, text, *more):
    return subprocess.run(
        [compiler, f"-std={standard}", *FLAGS, "-x", language, "-", *more],
        input=text, capture_output=True, text=True)


class HeaderTest(unittest.TestCase):
    def test_each_compiles_alone(self):
        """Twice in one file too, in C and in C++, with all that a strict compiler says."""
        present = [row for row in COMPILERS if shutil.which(row[0])]
        self.assertTrue({"c", "c++"} <= {language for _, language, _ in present}, present)
        for header in HEADERS:
            line = f"#include <rlmd/{header.name}>\n"
            for compiler, language, standard in present:
                with self.subTest(header=header.name, compiler=compiler, standard=standard):
                    done = compile_text(compiler, language, standard, line * 2, "-fsyntax-only")
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_head(self):
        for header in HEADERS:
            with self.subTest(header=header.name):
                text = header.read_text()
                self.assertRegex(text, rf"^/\*\n \* rlmd/{re.escape(header.name)} - \S")
                self.assertEqual(text.count("#pragma once\n"), 1)

    def test_each_function_says_that_it_is_exported(self):
        self.assertGreater(len(all_functions()), 30)
        for header in HEADERS:
            for name, declaration in functions(header).items():
                with self.subTest(header=header.name, function=name):
                    self.assertTrue(declaration.startswith("RLMD_API "), declaration)

    def test_names_are_ours(self):
        """A program that includes all has no name of ours that does not say so."""
        for header in HEADERS:
            text = without_comments(header.read_text())
            with self.subTest(header=header.name):
                for kind, pattern in (("macro", r"#\s*define (\w+)"),
                                      ("type", r"\b(?:struct|enum|union) (\w+) \{")):
                    for name in re.findall(pattern, text):
                        self.assertRegex(name, r"^(RLMD_|rlmd_)", kind)

    def test_nothing_of_the_inside_is_included(self):
        for header in HEADERS:
            with self.subTest(header=header.name):
                self.assertEqual(re.findall(r'#include "', header.read_text()), [])
                for what in re.findall(r"#include <([^>]+)>", header.read_text()):
                    self.assertRegex(what, r"^(rlmd/\w+\.h|std(bool|def|int)\.h)$")

    def test_a_c_plus_plus_program_links(self):
        """Every function has the name that C gave it."""
        compiler = shutil.which("g++") or shutil.which("clang++")
        self.assertTrue(compiler, "there is no C++ compiler")
        names = sorted(all_functions())
        text = "".join(f"#include <rlmd/{header.name}>\n" for header in HEADERS)
        text += "typedef void (*any_function)();\nany_function all[] = {\n"
        text += "".join(f"  reinterpret_cast<any_function>(&{name}),\n" for name in names)
        text += "};\nint main() { return all[0] == all[1]; }\n"
        with tempfile.TemporaryDirectory() as room:
            done = compile_text(compiler, "c++", "c++17", text, "-o", f"{room}/all",
                                f"-L{BUILD}", "-lrlmd", f"-Wl,-rpath,{BUILD}",
                                "-Wl,--allow-shlib-undefined")
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

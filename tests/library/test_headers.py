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
NO_CXX = "no compiler of C++ is installed (tools/setup --all installs one)"


def compile_text(compiler, language, standard, text, *more):
    return subprocess.run(
        [compiler, f"-std={standard}", *FLAGS, "-x", language, "-", *more],
        input=text, capture_output=True, text=True)


class HeaderTest(unittest.TestCase):
    def test_each_compiles_alone(self):
        """Twice in one file too, in C and in C++, with all that a strict compiler says."""
        present = [row for row in COMPILERS if shutil.which(row[0])]
        self.assertIn("c", {language for _, language, _ in present})
        for header in HEADERS:
            line = f"#include <rlmd/{header.name}>\n"
            for compiler, language, standard in present:
                with self.subTest(header=header.name, compiler=compiler, standard=standard):
                    done = compile_text(compiler, language, standard, line * 2, "-fsyntax-only")
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
        if "c++" not in {language for _, language, _ in present}:
            self.skipTest(NO_CXX)

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

    def test_structs_may_grow(self):
        """Each begins with its size, or is one of those that will not grow."""
        final = {"rlmd_text", "rlmd_error", "rlmd_amount", "rlmd_message", "rlmd_log_field"}
        ours = set()  # filled by the library, which sets the size
        for header in HEADERS:
            text = without_comments(header.read_text())
            for name, first in re.findall(r"(?m)^struct (\w+) \{\s*([^;]+);", text):
                with self.subTest(header=header.name, struct=name):
                    if name not in final:
                        self.assertEqual(first.split(), ["size_t", "size"])
                        if f"(struct {name})" not in text:
                            ours.add(name)
        self.assertEqual(ours, {
            "rlmd_activity", "rlmd_code", "rlmd_iteration", "rlmd_log_record",
            "rlmd_model_request", "rlmd_output", "rlmd_plan_event", "rlmd_plan_usage",
            "rlmd_probe_result", "rlmd_repl_block", "rlmd_subcall"})

    def test_what_sets_the_size(self):
        """In C and in C++, without a warning."""
        text = "".join(f"#include <rlmd/{header.name}>\n" for header in HEADERS)
        count = 0
        text += "int main(void);\nint main(void)\n{\n\tint bad = 0;\n"
        for header in HEADERS:
            for macro, name in re.findall(r"#define (\w+) +RLMD_INIT\((struct \w+)\)",
                                          header.read_text()):
                count += 1
                text += f"\t{name} v{count} = {macro};\n"
                text += f"\tbad += v{count}.size != sizeof v{count};\n"
        text += "\treturn bad;\n}\n"
        self.assertGreater(count, 30)
        for compiler, language, standard in [row for row in COMPILERS if shutil.which(row[0])]:
            with self.subTest(compiler=compiler, standard=standard), \
                 tempfile.TemporaryDirectory() as room:
                done = compile_text(compiler, language, standard, text, "-o", f"{room}/sizes")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(subprocess.run([f"{room}/sizes"]).returncode, 0)

    def test_nothing_of_the_inside_is_included(self):
        for header in HEADERS:
            with self.subTest(header=header.name):
                self.assertEqual(re.findall(r'#include "', header.read_text()), [])
                for what in re.findall(r"#include <([^>]+)>", header.read_text()):
                    self.assertRegex(what, r"^(rlmd/\w+\.h|std(bool|def|int)\.h)$")

    def test_a_c_plus_plus_program_links(self):
        """Every function has the name that C gave it."""
        compiler = shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            self.skipTest(NO_CXX)
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

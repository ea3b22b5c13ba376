"""Which file may know which, and what a file looks like."""
import ast
import collections
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import tree

BELOW = {
    "base": set(),
    "wire": {"base"},
    "sandbox": {"base", "seccomp"},
    "pool": {"wire", "sandbox", "base"},
    "budget": {"base"},
    "llm": {"base"},
    "async": {"base"},
    "source": {"base"},
    "reply": {"base"},
}
BELOW["prompt"] = {*BELOW}
BELOW["review"] = {"base", "source", "prompt"}
BELOW["trace"] = {*BELOW} - {"review"}
BELOW["engine"] = {*BELOW} - {"review"}
BELOW["store"] = {"base"}
BELOW["batch"] = {"base", "store"}  # and the library, by its public headers alone: so is the next
BELOW["cli"] = {"base", "batch"}
# A library's header is seen on the floor that wraps it and nowhere else.
WRAPPED = {"curl/": "llm", "seccomp.h": "sandbox", "openssl/ssl.h": "llm", "ini.h": "cli",
           "sqlite3.h": "store", "libpq-fe.h": "store"}

BANNED = (
    "strcpy", "strcat", "sprintf", "vsprintf", "strtok", "atoi", "atol", "atof", "gets", "system",
    "popen", "alloca", "tmpnam", "mktemp",
)
KEYWORDS_OF_CXX = """
    alignas alignof and and_eq asm bitand bitor catch char8_t class co_await co_return co_yield
    compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit
    export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public reinterpret_cast requires static_assert static_cast template this
    thread_local throw try typeid typename using virtual wchar_t xor xor_eq
""".split()
UNFINISHED = re.compile(rf"\b({'|'.join(('TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'))})\b")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100


def includes(path):
    """(line, "<" or '"', what) for each #include of a file."""
    for number, line in enumerate(tree.read(path).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
        if match:
            yield number, match.group(1), match.group(2)


class Case(unittest.TestCase):
    def assertNone(self, complaints, what):
        if complaints:
            self.fail(f"{what}:\n  " + "\n  ".join(complaints))


class FloorTest(Case):
    def test_every_floor_has_its_rule(self):
        floors = {path.name for path in (tree.ROOT / "src").iterdir() if path.is_dir()}
        self.assertEqual(floors, set(BELOW))

    def test_includes_go_down(self):
        complaints = []
        for path in tree.files(".c", ".h", ".def", under=("src",)):
            floor = path.relative_to(tree.ROOT / "src").parts[0]
            for line, kind, what in includes(path):
                to = what.split("/")[0]
                if kind == '"' and "/" not in what:
                    complaints.append(f"{tree.name(path)}:{line}: \"{what}\" without its floor")
                elif kind == '"' and to != floor and to not in BELOW[floor]:
                    complaints.append(f"{tree.name(path)}:{line}: {floor} includes \"{what}\"")
        self.assertNone(complaints, "includes against the floor plan")

    def test_wrapped_libraries_stay_on_their_floor(self):
        complaints = []
        for path in tree.files(".c", ".h", under=("src",)):
            floor = path.relative_to(tree.ROOT / "src").parts[0]
            for line, _, what in includes(path):
                for prefix, owner in WRAPPED.items():
                    if what.startswith(prefix) and floor != owner:
                        complaints.append(f"{tree.name(path)}:{line}: <{what}> belongs to {owner}")
        self.assertNone(complaints, "libraries seen on a second floor")


class HeaderTest(Case):
    def test_head(self):
        """`#pragma once`, under a comment that opens with the file's name and what it is."""
        complaints = []
        for path in tree.files(".h", under=("src", "include", "bench", "worker")):
            text = tree.read(path)
            own = tree.name(path)
            own = re.sub("^(src|include)/", "", own)
            if not re.match(rf"/\*(?:\n \*)? {re.escape(own)} - \S", text):
                complaints.append(f"{tree.name(path)}: does not open with `/* {own} - what it is`")
            if text.count("#pragma once\n") != 1:
                complaints.append(f"{tree.name(path)}: wants one `#pragma once`")
        self.assertNone(complaints, "heads of headers")

    def test_every_header_compiles_alone(self):
        """One with a source of its own is what the build compiles first, in that source."""
        compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
        packages = ["libevent_core", "libcurl", "libseccomp", "jansson", "libcrypto", "inih",
                    "libpq"]
        flags = subprocess.run(
            ["pkg-config", "--cflags", *packages], check=True, capture_output=True, text=True
        ).stdout.split()
        complaints = []
        for path in tree.files(".h", under=("src", "include")):
            if path.with_suffix(".c").exists():
                continue
            command = [compiler, "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", *flags]
            command += ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
            command += [f"-I{tree.ROOT / folder}" for folder in ("src", "include", "")]
            command += ["-x", "c", "-include", str(path), "/dev/null"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                complaints.append(f"{tree.name(path)}: {done.stderr}")
        self.assertNone(complaints, "headers that need another one before them")

    def test_public_headers_are_cxx_too(self):
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            self.skipTest("no compiler of C++ is installed")
        complaints = []
        for path in tree.files(".h", under=("include",)):
            command = [compiler, "-std=c++11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic"]
            command += ["-Werror", f"-I{tree.ROOT / 'include'}", "-x", "c++"]
            command += ["-include", str(path), "/dev/null"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                complaints.append(f"{tree.name(path)}: {done.stderr}")
        self.assertNone(complaints, "public headers that C++ does not take")

    def test_no_keyword_of_cxx(self):
        """Whoever reads a header with a tool for C++, or wraps it, finds no name that is one."""
        keyword = re.compile(rf"\b({'|'.join(KEYWORDS_OF_CXX)})\b")
        complaints = []
        for path in tree.files(".h", under=("src", "include")):
            for number, line in enumerate(tree.without_comments(tree.read(path)).split("\n"), 1):
                match = None if "#include" in line else keyword.search(line)
                if match:
                    complaints.append(f"{tree.name(path)}:{number}: {match.group(1)}")
        self.assertNone(complaints, "keywords of C++ in headers")

    def test_own_header_comes_first(self):
        complaints = []
        for path in tree.files(".c", under=("src",)):
            own = path.with_suffix(".h")
            if own.exists():
                first = next((what for _, _, what in includes(path)), None)
                wanted = str(own.relative_to(tree.ROOT / "src"))
                if first != wanted:
                    complaints.append(f"{tree.name(path)}: includes {first} before \"{wanted}\"")
        self.assertNone(complaints, "sources whose header comes late")


class NameTest(Case):
    def test_a_struct_has_its_name_for_itself(self):
        """Whoever meets `struct call` in one file must not have learned another one before."""
        places, complaints = {}, []
        tag = re.compile(r"^(?:static )?(?:struct|union|enum) (\w+) \{$", flags=re.MULTILINE)
        for path in tree.files(".c", ".h", under=("src", "include")):
            for name in tag.findall(tree.without_comments(tree.read(path))):
                places.setdefault(name, []).append(tree.name(path))
        self.assertGreater(len(places), 100)
        for name, where in sorted(places.items()):
            if len(where) > 1:
                complaints.append(f"{name}: {', '.join(where)}")
        self.assertNone(complaints, "names that mean two things")


class SourceTest(Case):
    def test_no_banned_function(self):
        call = re.compile(rf"(?<![\w.>])({'|'.join(BANNED)})\s*\(")
        complaints = []
        for path in tree.files(".c", ".h", under=("src", "include", "worker", "bench")):
            for number, line in enumerate(tree.without_comments(tree.read(path)).split("\n"), 1):
                match = call.search(line)
                if match:
                    complaints.append(f"{tree.name(path)}:{number}: {match.group(1)}()")
        self.assertNone(complaints, "functions without a bound")

    def test_the_library_leaves_the_environment_as_it_is(self):
        call = re.compile(r"\b(setenv|unsetenv|putenv|clearenv)\s*\(")
        complaints = []
        for path in tree.files(".c", ".h", under=("src",)):
            if "cli" in path.relative_to(tree.ROOT / "src").parts:
                continue
            for number, line in enumerate(tree.without_comments(tree.read(path)).split("\n"), 1):
                if call.search(line):
                    complaints.append(f"{tree.name(path)}:{number}: {line.strip()}")
        self.assertNone(complaints, "changes of the environment below the command line")

    def test_nothing_is_marked_unfinished(self):
        complaints = []
        for path in tree.files(".c", ".h", ".def", ".py", ".build", ""):
            for number, line in enumerate(tree.read(path).split("\n"), 1):
                if UNFINISHED.search(line):
                    complaints.append(f"{tree.name(path)}:{number}: {line.strip()}")
        self.assertNone(complaints, "unfinished places")

    def test_files_are_short(self):
        complaints = []
        for path in tree.files(".c", ".h", ".py", under=("src", "include", "worker")):
            lines = tree.read(path).count("\n")
            if lines > FILE_LINES_MAX:
                complaints.append(f"{tree.name(path)}: {lines} lines")
        self.assertNone(complaints, f"files of more than {FILE_LINES_MAX} lines")

    def test_functions_are_short(self):
        complaints = []
        for path in tree.files(".c", ".h", under=("src", "worker")):
            for function, line, length, _ in tree.functions(tree.read(path)):
                if length > FUNCTION_LINES_MAX:
                    complaints.append(f"{tree.name(path)}:{line}: {function}() has {length} lines")
        for path in tree.files(".py", under=("worker",)):
            for node in ast.walk(ast.parse(tree.read(path))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    length = node.end_lineno - node.lineno + 1
                    if length > FUNCTION_LINES_MAX:
                        place = f"{tree.name(path)}:{node.lineno}"
                        complaints.append(f"{place}: {node.name}() has {length} lines")
        self.assertNone(complaints, f"functions of more than {FUNCTION_LINES_MAX} lines")

    def test_lines_are_short(self):
        """In tests, strings do not count: what goes over a wire stands better in one piece."""
        complaints = []
        for path in tree.files(".c", ".h", ".py", ""):
            for number, line in enumerate(tree.read(path).split("\n"), 1):
                if tree.name(path).startswith("tests/"):
                    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', "", line)
                if len(line.expandtabs(8)) > COLUMNS_MAX:
                    complaints.append(f"{tree.name(path)}:{number}")
        self.assertNone(complaints, f"lines of more than {COLUMNS_MAX} columns")

    def test_white_space(self):
        complaints = []
        for path in tree.files(".c", ".h", ".def", ".py", ".build", ""):
            text = tree.read(path)
            if text and not text.endswith("\n"):
                complaints.append(f"{tree.name(path)}: no newline at the end")
            for number, line in enumerate(text.split("\n"), 1):
                if line != line.rstrip():
                    complaints.append(f"{tree.name(path)}:{number}: white space at the end")
                if path.suffix == ".py" and "\t" in line[: len(line) - len(line.lstrip())]:
                    complaints.append(f"{tree.name(path)}:{number}: a tab in the indentation")
        self.assertNone(complaints, "white space")

    def test_clang_format_agrees(self):
        formatter = shutil.which("clang-format")
        if formatter is None:
            self.skipTest("clang-format is not installed (tools/setup --all installs it)")
        files = tree.files(".c", ".h", under=("src", "include", "worker", "bench", "tests"))
        command = [formatter, "--dry-run", *map(str, files)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        places = collections.Counter(re.findall(
            r"(?m)^(.*?):\d+:\d+: .*-Wclang-format-violations", done.stderr))
        complaints = [f"{tree.name(Path(path))}: {count} places" for path, count in places.items()]
        self.assertNone(complaints, "files that clang-format would change")


class ScriptTest(Case):
    def test_shell_scripts_parse(self):
        complaints = []
        for shell in ("sh", "bash"):
            for path in tree.scripts(shell):
                done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
                if done.returncode != 0:
                    complaints.append(f"{tree.name(path)}: {done.stderr}")
        self.assertNone(complaints, "scripts with errors")
        self.assertIn(tree.ROOT / "tools/test", tree.scripts("sh"))

    def test_python_parses(self):
        """With the syntax of Python 3.8, the oldest that a worker may run."""
        complaints = []
        for path in tree.files(".py") + tree.scripts("python3"):
            try:
                ast.parse(tree.read(path), filename=str(path), feature_version=(3, 8))
            except SyntaxError as error:
                complaints.append(f"{tree.name(path)}: {error}")
        self.assertNone(complaints, "Python with errors")


if __name__ == "__main__":
    unittest.main()

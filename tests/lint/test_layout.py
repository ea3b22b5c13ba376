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
    "net": {"base"},
    "llm": {"net", "base"},
    "async": {"base"},
    "source": {"sandbox", "base"},
    "reply": {"base"},
}
BELOW["prompt"] = {*BELOW}
BELOW["review"] = {"base", "source", "prompt"}
BELOW["trace"] = {*BELOW} - {"review"}
BELOW["engine"] = {*BELOW} - {"review"}
BELOW["lister"] = {"source", "sandbox", "base"}  # a program of its own
BELOW["store"] = {"base"}
BELOW["batch"] = {"base", "store"}  # and the library, by its public headers alone: so is the next
BELOW["cli"] = {"base", "batch"}
PROGRAM = ("store", "batch", "cli")  # the floors that are not the library's
# A library's header is seen on the floor that wraps it and nowhere else.
WRAPPED = {"curl/": "net", "seccomp.h": "sandbox", "openssl/ssl.h": "net", "ini.h": "cli",
           "event2/http.h": "cli",
           "git2.h": "lister", "git2/": "lister", "sqlite3.h": "store", "libpq-fe.h": "store"}

BANNED = (
    "strcpy", "strcat", "sprintf", "vsprintf", "strtok", "atoi", "atol", "atof", "gets", "system",
    "popen", "alloca", "tmpnam", "mktemp", "evbuffer_readln",
)
# Functions that allocate and say by a result, easily passed over, that they could not: the function
# of ours that takes its place, and the source that may call it. What libevent and jansson take
# themselves is checked in the program (alloc_install()), whose own floors are free to use the
# second half.
UNCHECKED = {
    **{f"evbuffer_{name}": ("buffer_" + ours, "src/base/buffer.c") for name, ours in (
        ("new", "new"), ("add", "add"), ("add_printf", "add_printf"),
        ("add_vprintf", "add_vprintf"), ("add_reference", "add_reference"),
        ("add_buffer", "add_buffer"), ("remove_buffer", "move"), ("expand", "expand"),
        ("reserve_space", "reserve"), ("pullup", "pullup"),
    )},
    **{name: (f"x{ours}", "src/base/alloc.c") for name, ours in (
        ("malloc", "reallocarray"), ("calloc", "calloc"), ("realloc", "reallocarray"),
        ("reallocarray", "reallocarray"), ("strdup", "strdup"), ("strndup", "strndup"),
        ("asprintf", "asprintf"), ("vasprintf", "asprintf"),
    )},
    "curl_easy_setopt": ("curl_set", "src/net/curl_check.h"),
    "event_new": ("loop_event", "src/base/loop.c"), "evsignal_new": ("loop_event", "src/base/loop.c"),
    "evtimer_new": ("timer_new", "src/base/timer.c"),
    "event_add": ("loop_add", "src/base/loop.c"), "evtimer_add": ("loop_add", "src/base/loop.c"),
}
UNCHECKED_IN_A_HOST = {
    **{f"json_{name}": ("json_" + ours, "src/base/json.c") for name, ours in (
        ("object", "make_object"), ("array", "make_array"), ("integer", "make_integer"),
        ("real", "make_real"), ("string", "make_string"), ("stringn", "from_text"),
        ("string_nocheck", "make_string"), ("sprintf", "make_string"), ("vsprintf", "make_string"),
        ("copy", "make_copy"), ("deep_copy", "make_copy"), ("pack", "make"), ("pack_ex", "make"),
        ("vpack_ex", "vmake"), ("dumps", "to_string"),
        ("object_set", "put"), ("object_set_new", "put"), ("object_set_nocheck", "put"),
        ("object_set_new_nocheck", "put"), ("object_setn_new", "put_at"),
        ("object_setn_new_nocheck", "put_at"), ("array_append", "append"),
        ("array_append_new", "append"), ("array_insert", "insert"),
        ("array_insert_new", "insert"), ("object_update", "update"),
        ("object_update_missing", "update_missing"), ("array_extend", "extend"),
        ("loads", "read"), ("loadb", "read"),
    )},
}
# Functions that give NULL without memory, and for no other reason: inside of xpresent().
PRESENT = ("curl_easy_init", "curl_share_init", "curl_slist_append", "curl_url", "tsearch",
           "EVP_MAC_CTX_new", "EVP_MAC_fetch", "EVP_MD_CTX_new", "X509_STORE_new")
# Calls of them that look at the result.
CHECKED = {("src/base/json_view.c", "json_loadb"), ("src/source/load.c", "event_add"),
           ("src/batch/jobs_file.c", "event_add"), ("src/cli/rpc.c", "event_add")}
KEYWORDS_OF_CXX = """
    alignas alignof and and_eq asm bitand bitor catch char8_t class co_await co_return co_yield
    compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit
    export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public reinterpret_cast requires static_assert static_cast template this
    thread_local throw try typeid typename using virtual wchar_t xor xor_eq
""".split()
UNFINISHED = re.compile(rf"\b({'|'.join(('TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'))})\b")
# The most modules of a floor that include each other in a circle, by the largest circle first. A
# module is x.c with x.h and x_private.h. These may fall, and the table with them.
CIRCLES = {
    "base": [2], "sandbox": [3, 2], "pool": [3], "llm": [3, 2, 2], "source": [3],
    "reply": [2], "trace": [2], "engine": [3], "lister": [2], "store": [2],
    "cli": [3],
}
# The most global functions of a floor without their file's prefix. These may fall, and the table
# with them; the three objects of async/scheduler.h are one module.
OTHER_PREFIXES = {
    "async": 11, "base": 16, "cli": 12, "prompt": 4, "reply": 2, "review": 5, "sandbox": 1,
}
# The parts of a floor, from the top: a module includes its own part and those below.
PARTS = {
    "engine": (
        "engine capacity group repl job job_options job_task job_plan job_session "
        "job_dry_run",  # the host's face
        "run run_words subcall operation",  # the recursion
        "ask admission answer_check caller function_call latency reserve",  # of a run or a call
        "scope activity hooks estimators function_set function_program inputs posts token_counter validation",
    ),
}
# Structs and enums of two floors whose names differ by a suffix only, or that bear the name of a
# floor they are not of. A name that goes takes its row with it; there are to be no new ones.
SUFFIXES = ("s", "er", "or", "ing")
ALIKE = {
    ("call", "caller"), ("context", "contexts"), ("estimator", "estimators"),
    ("record", "recording"), ("reply", "reply"),
    ("trace", "traces"), ("value", "values"),
}
PRODUCT = ("bench", "examples", "include", "src", "worker")
# The rules of the filter, which is compiled when rlmd is built; and a sandbox that is waited for,
# where a test has nothing else to do.
CALLED_BY_TESTS = {"filter_rules", "filter_newest_call", "sandbox_new"}
VAGUE = ("What", "Who", "Whoever", "Nobody", "Likewise")  # of which the noun comes later, or never
FILE_LINES_MAX = 900
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100


def includes(path):
    """(line, "<" or '"', what) for each #include of a file."""
    for number, line in enumerate(tree.read(path).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
        if match:
            yield number, match.group(1), match.group(2)


def modules():
    """The modules of src, each with those that its source or its headers include."""
    def module(file):
        return file.rsplit(".", 1)[0].removesuffix("_private")

    known = collections.defaultdict(set)
    for path in tree.files(".c", ".h", under=("src",)):
        own = module(str(path.relative_to(tree.ROOT / "src")))
        known[own] |= {module(what) for _, _, what in includes(path)} - {own}
    return known


def circles(known):
    """Sets of two and more modules of which each reaches all others, sorted by name."""
    def reach(start, edges):
        seen, left = {start}, [start]
        while left:
            for other in edges[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        return seen

    to = {name: others & known.keys() for name, others in known.items()}
    back = {name: {other for other in to if name in to[other]} for name in to}
    left = set(to)
    while left:
        start = min(left)
        circle = reach(start, to) & reach(start, back)
        left -= circle
        if len(circle) > 1:
            yield sorted(circle)


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

    def test_parts_of_a_floor_include_down(self):
        known = modules()
        for floor, parts in PARTS.items():
            height = {f"{floor}/{name}": -i for i, part in enumerate(parts) for name in part.split()}
            own = {name for name in known if name.startswith(floor + "/")}
            self.assertEqual(own, set(height))
            up = [f"{name} includes {other}" for name in sorted(own) for other in known[name] & own
                  if height[other] > height[name]]
            self.assertNone(up, "includes against the parts of a floor")

    def test_wrapped_libraries_stay_on_their_floor(self):
        complaints = []
        for path in tree.files(".c", ".h", under=("src",)):
            floor = path.relative_to(tree.ROOT / "src").parts[0]
            for line, _, what in includes(path):
                for prefix, owner in WRAPPED.items():
                    if what.startswith(prefix) and floor != owner:
                        complaints.append(f"{tree.name(path)}:{line}: <{what}> belongs to {owner}")
        self.assertNone(complaints, "libraries seen on a second floor")


class CircleTest(Case):
    def test_circles_of_modules(self):
        """As many and as large ones as CIRCLES says, no more and no fewer."""
        found = collections.defaultdict(list)
        for circle in circles(modules()):
            found[circle[0].split("/")[0]].append(circle)
        for floor, each in sorted(found.items()):
            for circle in sorted(each, key=len, reverse=True):
                print(f"# {floor}: {len(circle)} modules: {' '.join(circle)}")
        sizes = {floor: sorted(map(len, each), reverse=True) for floor, each in found.items()}
        self.assertEqual(sizes, CIRCLES)


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
        """A tool for C++ that reads or wraps a header finds no keyword among its names."""
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
    @classmethod
    def setUpClass(cls):
        tag = re.compile(r"^(?:static )?(?:struct|union|enum) (\w+) \{$", flags=re.MULTILINE)
        cls.places = {}
        for path in tree.files(".c", ".h", under=("src", "include")):
            for name in tag.findall(tree.without_comments(tree.read(path))):
                cls.places.setdefault(name, []).append(tree.name(path))

    def test_a_struct_has_its_name_for_itself(self):
        """A reader who meets `struct call` in one file has met no other one before."""
        complaints = []
        self.assertGreater(len(self.places), 100)
        for name, where in sorted(self.places.items()):
            if len(where) > 1:
                complaints.append(f"{name}: {', '.join(where)}")
        self.assertNone(complaints, "names that mean two things")

    def test_names_of_two_floors_differ_by_more_than_a_suffix(self):
        floors = {name: where[0].split("/")[1] for name, where in self.places.items()}
        known = {*floors.items(), *((floor, floor) for floor in BELOW)}
        found = {(stem, name) for stem, floor in known for name in floors
                 if floors[name] != floor and name in (stem, *(stem + end for end in SUFFIXES))}
        self.assertEqual(found, ALIKE)

    @staticmethod
    def global_functions():
        """(path, name) of each that a source defines."""
        function = re.compile(
            r"^(?!static\b|#|typedef\b)[a-z][^;={}()]*?[ *](\w+)\([^;]*?\)\n\{", re.MULTILINE)
        for path in tree.files(".c", under=("src",)):
            for name in function.findall(tree.without_comments(tree.read(path))):
                yield path, name

    def test_functions_bear_the_name_of_their_file(self):
        others = collections.defaultdict(list)
        for path, name in self.global_functions():
            if not re.fullmatch(rf"({path.stem}(_\w+)?|rlmd_\w+|main)", name):
                others[path.parts[-2]].append(f"{tree.name(path)}: {name}")
        for floor, found in others.items():
            with self.subTest(floor):
                if len(found) > OTHER_PREFIXES.get(floor, 0):
                    self.assertNone(found, "functions with another file's prefix")

    def test_functions_are_called(self):
        """By the program or the library, and not by tests alone."""
        words, joined = collections.Counter(), {"rlmd_", "main$"}
        declared = re.compile(r"^[a-z][\w *]*[ *](\w+)\([^;{]*\);", re.MULTILINE)
        for path in tree.files(".c", ".h", ".def", under=("src", "worker")):
            text = tree.without_comments(tree.read(path))
            used = declared.sub("", text) if path.suffix == ".h" else text
            words.update(re.findall(r"\w+", used))
            joined.update(re.findall(r"(\w+_)##", text))
        idle = {name for _, name in self.global_functions()
                if words[name] < 2 and not re.match("|".join(joined), name)}
        self.assertEqual(idle, CALLED_BY_TESTS)


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

    def test_what_allocates_is_checked(self):
        bare = re.compile(rf"(?<!\w)(?<!xpresent\()({'|'.join(PRESENT)})\s*\(")
        complaints = []
        for path in tree.files(".c", ".h", under=("src",)):
            floor = path.relative_to(tree.ROOT / "src").parts[0]
            refused = UNCHECKED if floor in PROGRAM else {**UNCHECKED, **UNCHECKED_IN_A_HOST}
            call = re.compile(rf"(?<![\w.>])({'|'.join(refused)})\s*\(")
            for number, line in enumerate(tree.without_comments(tree.read(path)).split("\n"), 1):
                for name in call.findall(line):
                    ours, owner = refused[name]
                    if tree.name(path) != owner and (tree.name(path), name) not in CHECKED:
                        complaints.append(f"{tree.name(path)}:{number}: {name}(), not {ours}()")
                for name in bare.findall(line):
                    complaints.append(f"{tree.name(path)}:{number}: {name}() outside of xpresent()")
        self.assertNone(complaints, "functions that may find no memory and are not asked")

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

    def test_comments_name_their_subject(self):
        """A reader in a hurry looks for the noun, not for "what is left of ..."."""
        begin = re.compile(r"""(?:/\*[\s*<]*|(?<![^\n])[ \t]*#[ \t]*|\"{3})(\w+).*""")
        complaints = []
        for path in tree.files(".c", ".h", ".def", ".py", ".build", under=(*PRODUCT, "tests")):
            text = re.sub(r"(\n[ \t]*#.*)(?:\n[ \t]*#.*)+", r"\1", "\n" + tree.read(path))
            complaints += [f"{tree.name(path)}: {found.group().strip()}"
                           for found in begin.finditer(text) if found.group(1) in VAGUE]
        self.assertNone(complaints, "comments that do not begin with their subject")

    def test_sentences_name_their_subject(self):
        comment = {True: re.compile(r"\"{3}.*?\"{3}|(?:^[ \t]*#.*\n)+", re.DOTALL | re.MULTILINE),
                   False: re.compile(r"/\*.*?\*/", re.DOTALL)}
        vague = re.compile(rf"[.!?a-z)] +(?<=[.!?] |  )({'|'.join(VAGUE)})\b.*?(?=[.:;]|$)")
        complaints = []
        for path in tree.files(".c", ".h", ".def", ".py", under=PRODUCT):
            for found in comment[path.suffix == ".py"].findall(tree.read(path)):
                text = re.sub(r"\n[ \t]*[*#]?[ \t]*", " ", found)
                complaints += [f"{tree.name(path)}: {one.group()[2:].lstrip()}" for one in vague.finditer(text)]
        self.assertNone(complaints, "sentences that do not begin with their subject")

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
        version = subprocess.run([formatter, "--version"], check=True, capture_output=True, text=True)
        if " version 14." not in version.stdout:
            self.skipTest("version 14 decides, for each lays out a little else: "
                          + version.stdout.strip())
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

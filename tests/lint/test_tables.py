"""Each fact has one table; what people read about it must say the same."""
import builtins
import fnmatch
import json
import keyword
import re
import subprocess
import unicodedata
import unittest
from pathlib import Path

import tree

MANUAL = "docs/man"
PROTOCOL = "docs/protocol.md"
CONFORMANCE = "docs/conformance.md"


def manual_page(page):
    return tree.read(f"{MANUAL}/{page}.scd")


def manual_section(page, title):
    found = re.search(rf"(?ms)^# {title}\n(.*?)(?=^# |\Z)", manual_page(page))
    if not found:
        raise AssertionError(f"{page} has no {title}")
    return found.group(1)


class MessagesTest(unittest.TestCase):
    """wire/messages.def against docs/protocol.md."""

    def setUp(self):
        self.fields, names = {}, {}
        for macro, row_name, *rest in tree.rows("src/wire/messages.def", "MESSAGE", "FIELD"):
            if macro == "MESSAGE":
                wire = tree.unquoted(rest[0])
                self.fields[wire] = []
                names[row_name] = wire
            else:
                self.fields[names[row_name]].append(rest[0])

    def test_what_a_worker_says_has_bounds(self):
        """Of its texts only contexts are as long as frames may be: they go into memory files."""
        sender, unbounded = None, []
        for macro, name, *rest in tree.rows("src/wire/messages.def", "MESSAGE", "FIELD"):
            if macro == "MESSAGE":
                sender = rest[1]
            elif sender == "WORKER" and rest[1].startswith("TEXT") and rest[2] == "FRAME":
                unbounded.append((name, rest[0]))
        self.assertEqual(unbounded, [("RLM_QUERY", "contexts")])

    def section(self, message):
        """The part of the document under the heading of a message."""
        text = tree.read(PROTOCOL)
        head = re.search(rf"^(#+) .*`{message}`.*$", text, flags=re.MULTILINE)
        self.assertIsNotNone(head, f"{PROTOCOL} has no heading with `{message}`")
        rest = text[head.end() :]
        end = re.search(rf"^#{{1,{len(head.group(1))}}} ", rest, flags=re.MULTILINE)
        return rest[: end.start()] if end else rest

    def test_every_message_and_field_is_explained(self):
        self.assertGreater(len(self.fields), 5)
        for message, fields in self.fields.items():
            section = self.section(message)
            for field in fields:
                with self.subTest(message=message, field=field):
                    self.assertIn(f"`{field}`", section)


class RulesTest(unittest.TestCase):
    """review/rules.def against docs/ci.md."""

    def test_every_usual_rule_is_listed(self):
        rows = [(tree.unquoted(name), number.strip(), tree.unquoted(what))
                for _, name, number, what in tree.rows("src/review/rules.def", "RULE")]
        shown = re.findall(r"(?m)^\| `([\w-]+)` \| (\d*) \| (.*) \|$", tree.read("docs/ci.md"))
        self.assertEqual([(name, number or "0", what) for name, number, what in shown], rows)


class SentencesTest(unittest.TestCase):
    """A host has no command line: the library names a setting as rlmd.conf does."""

    PROGRAM = ("cli", "batch", "store")
    FOREIGN = {"diff --git", "git config --global --add", "git fetch --unshallow",
               "git refs migrate --ref-format",
               "git sparse-checkout reapply --no-sparse-index",
               "git update-index --no-split-index", "systemd-run --scope", "with --user for a user"}

    def test_the_library_names_no_options(self):
        floors = [path for path in tree.files(".c", ".h", ".def", under=("src",))
                  if tree.name(path).split("/")[1] not in self.PROGRAM]
        self.assertGreater(len(floors), 300)
        for path in floors:
            source = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
            source = re.sub(r'"\s*\n\s*"', "", source)
            for text in re.findall(r'"((?:\\.|[^"\\\n])*)"', source):
                for foreign in self.FOREIGN:
                    text = text.replace(foreign, "")
                with self.subTest(path=tree.name(path)):
                    self.assertNotRegex(text, r"--[a-z]")


class CoverTest(unittest.TestCase):
    """tests/README.md against src/ and tests/: each source has a test, or a row that names one."""

    ROW = re.compile(r"^\| `(\w+/[\w*]+)\.c` \| (.*) \|$", flags=re.MULTILINE)

    def setUp(self):
        self.rows = dict(self.ROW.findall(tree.read("tests/README.md")))
        self.sources = {
            str(path.relative_to(tree.ROOT / "src").with_suffix(""))
            for path in tree.files(".c", under=("src",))
        }

    def test_every_source_is_covered(self):
        self.assertGreater(len(self.sources), 100)
        named = {source for row in self.rows for source in fnmatch.filter(self.sources, row)}
        for source in sorted(self.sources - named):
            floor, name = source.split("/")
            own = [tree.ROOT / "tests" / floor / f"test_{name}.{end}" for end in ("c", "py")]
            with self.subTest(source=source):
                self.assertTrue(
                    any(path.exists() for path in own),
                    f"neither tests/{floor}/test_{name}.c or .py, nor a row in tests/README.md",
                )

    def test_rows_are_few(self):
        """A module that decides something is tested by itself; these are what is left."""
        rows = self.ROW.findall(tree.read("tests/README.md"))
        self.assertEqual(len(rows), len(self.rows), "a source with two rows")
        self.assertLessEqual(len(rows), 60)

    def test_rows_are_true(self):
        for source, cell in self.rows.items():
            self.assertTrue(fnmatch.filter(self.sources, source), f"{source} is not there")
            own = Path(source).parent / f"test_{Path(source).stem}.c"
            self.assertFalse((tree.ROOT / "tests" / own).exists(), f"{own} is there: no row is needed")
            cited = re.findall(r"`([^`]+)`", cell)
            self.assertTrue(cited, source)
            for name in cited:
                with self.subTest(source=source, test=name):
                    self.assertTrue((tree.ROOT / "tests" / name).is_file(), "no such test")


class GlossaryTest(unittest.TestCase):
    """The glossary of docs/architecture.md against the tree."""

    def test_terms_stand_in_order_and_have_a_place(self):
        glossary = tree.read("docs/architecture.md").partition("## Glossary")[2]
        rows = re.findall(r"^\| ([\w -]+) \| (.+) \| `(\w+/\w+)` \|$", glossary, flags=re.MULTILINE)
        self.assertGreater(len(rows), 20)
        self.assertLessEqual(len(rows), 40)
        self.assertEqual(len(rows), glossary.count("\n| ") - 1, "rows of another form")
        terms = [term for term, _, _ in rows]
        self.assertEqual(terms, sorted(set(terms)))
        for term, _, place in rows:
            with self.subTest(term=term):
                found = list((tree.ROOT / "src").glob(place + ".*"))
                self.assertTrue(found, f"there is no src/{place}")


class VersionTest(unittest.TestCase):
    """rlmd/rlmd.h against meson.build."""

    def test_macros(self):
        wanted = re.search(r"version: '([\d.]+)'", tree.read("meson.build")).group(1)
        header = tree.read("include/rlmd/rlmd.h")
        parts = [
            re.search(rf"#define RLMD_VERSION_{part}\s+(\d+)", header).group(1)
            for part in ("MAJOR", "MINOR", "PATCH")
        ]
        self.assertEqual(".".join(parts), wanted)
        self.assertRegex(header, rf'#define RLMD_VERSION\s+"{re.escape(wanted)}"')


class UnseenTest(unittest.TestCase):
    """base/unseen.def against the Unicode Character Database, as Python and Perl have it."""

    # Prepended_Concatenation_Mark (PropList.txt): of category Cf, and drawn
    DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}

    def setUp(self):
        rows = [(int(first, 0), int(last, 0)) for _, first, last, _ in tree.rows("src/base/unseen.def", "UNSEEN")]
        self.assertEqual(rows, sorted(rows))
        self.points = {point for first, last in rows for point in range(first, last + 1)}

    def test_categories(self):
        wanted = {point for point in range(0x110000)
                  if unicodedata.category(chr(point)) in ("Cc", "Cf", "Zl", "Zp")
                  or point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF} - self.DRAWN
        self.assertEqual(sorted(map(hex, wanted - self.points)), [])
        for point in self.points - wanted:
            with self.subTest(hex(point)):
                self.assertIn(unicodedata.category(chr(point)), ("Mn", "Lo", "Cn"))

    def test_ignorable(self):
        code = (r'for my $c (0..0xd7ff, 0xe000..0x10ffff) '
                r'{ print("$c\n") if chr($c) =~ /\p{Default_Ignorable_Code_Point}/ }')
        try:
            perl = subprocess.run(["perl", "-e", code], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no Perl that knows the property: {error}")
        ignorable = set(map(int, perl.stdout.split()))
        self.assertGreater(len(ignorable), 4000)
        self.assertEqual(sorted(map(hex, ignorable - self.points)), [])


class NamesTest(unittest.TestCase):
    """source/names.def against this Python, and against the worker's table."""

    def test_every_name_is_reserved(self):
        table = tree.read("src/source/names.def")
        taken = {kind: set(re.findall(rf'{kind}\("(\w+)"\)', table))
                 for kind in ("KEYWORD", "HELPER", "BUILTIN")}
        builtin = {name for name in dir(builtins) if not name.startswith("_")}
        self.assertEqual(set(keyword.kwlist) - taken["KEYWORD"], set())
        self.assertEqual(builtin - taken["BUILTIN"] - taken["KEYWORD"], set())
        helpers = tree.read("worker/helpers.py")
        functions = re.search(r"(?s) functions = \(.*?\n        \)\n", helpers).group()
        others = re.search(r"(?s)table\.update\(\n.*?\n        \)\n", helpers).group()
        ours = set(re.findall(r"\.(\w+),", functions)) | set(re.findall(r"(\w+)=", others))
        self.assertGreater(len(ours), 15)
        self.assertEqual(ours | {"answer"}, taken["HELPER"])


class OptionsTest(unittest.TestCase):
    """cli/options.def and cli/commands.def against the manual page and --help."""

    # commands whose pages introduce all of their options
    ALONE = {"EXEC", "RESULTS", "STATUS", "MERGE", "TRACE", "TOP", "DOCTOR"}
    # command -> the one whose options its page tells the differences from
    OTHERS = {"PLAN": "EXEC", "REVIEW": "EXEC", "BATCH": "EXEC", "WORK": "BATCH", "SERVE": "EXEC"}

    def setUp(self):
        self.commands = {row[2]: row[1] for row in tree.rows("src/cli/commands.def", "COMMAND")}
        self.options = []
        for _, *row in tree.rows("src/cli/options.def", "OPTION"):
            _, _, _, commands, letter, name, argument, _, _, _, _, _, text = row
            letter = letter.strip("'") if letter != "0" else None
            commands = set(self.commands) if commands == "ALL" else set(commands.split(" | "))
            self.options.append((commands, letter, *map(tree.unquoted, (name, argument, text))))
        self.assertGreater(len(self.options), 20)

    def of(self, *commands):
        """The options that one of the commands has."""
        return [option for option in self.options if option[0] & set(commands)]

    def names(self, command):
        return {name for _, _, name, _, _ in self.of(command)}

    def options_of_page(self, command):
        return manual_section(f"rlmd-{self.commands[command]}.1", "OPTIONS")

    def manual_entries(self, command):
        """Long option -> the lines of its page that introduce it: a tabulator follows."""
        found = {}
        for lines in re.findall(r"(?m)^((?:\*-.*\n)+)\t", self.options_of_page(command)):
            for name in re.findall(r"--([a-z-]+)", lines):
                found[name] = lines
        return found

    def test_commands_are_known(self):
        for commands, _, name, _, _ in self.options:
            with self.subTest(option=name):
                self.assertTrue(commands)
                self.assertLessEqual(commands, set(self.commands))

    def test_manual_has_every_option(self):
        for command in self.ALONE:
            entries = self.manual_entries(command)
            self.assertEqual(set(entries), self.names(command), command)
            for _, letter, name, argument, _ in self.of(command):
                as_elsewhere = command != "EXEC" and entries[name].count("--") > 1
                with self.subTest(command=command, option=name):
                    if letter and not as_elsewhere:
                        self.assertRegex(entries[name], rf"-{letter}\b")
                    if argument and not as_elsewhere and command == "EXEC":
                        self.assertIn(argument.replace("|", ""), re.sub(r"[\\|_*]", "", entries[name]))

    def test_manual_tells_how_others_differ(self):
        self.assertEqual({*self.commands}, {*self.OTHERS, *self.ALONE})
        for command, like in self.OTHERS.items():
            with self.subTest(command=command):
                self.check_difference(command, like)

    def check_difference(self, command, like):
        section = self.options_of_page(command)
        told = re.search(rf"(?s)The options are those of \*rlmd-{like.lower()}\*\(1\), without (.*?), and\s+these\.",
                         section)
        without = set(re.findall(r"\*--([a-z-]+)\*", told.group(1)))
        self.assertEqual(without, self.names(like) - self.names(command))
        entries = self.manual_entries(command)
        beside = {option[2]: option for option in self.of(command) if like not in option[0]}
        self.assertEqual(set(entries), set(beside))
        for name, (_, _, _, argument, _) in beside.items():
            self.assertIn(argument or "", entries[name].replace("_", ""))

    def test_help_has_every_option(self):
        for command, word in self.commands.items():
            run = [str(tree.BUILD / "rlmd"), word, "--help-all"]
            done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
            shown = " ".join(done.stdout.split())
            heads = re.findall(r"(?m)^  (?:-\w, |    )--([a-z-]+)", done.stdout)
            self.assertEqual(sorted(heads), sorted(self.names(command)))
            for _, letter, name, _, text in self.of(command):
                with self.subTest(command=word, option=name):
                    self.assertIn(" ".join(text.split()), shown)
                    if letter:
                        self.assertIn(f"-{letter}, --{name}", shown)

    def test_manual_names_every_command(self):
        commands = manual_section("rlmd.1", "COMMANDS")
        for word in self.commands.values():
            self.assertRegex(commands, rf"(?m)^\*rlmd {word}\*\n(\t.*\n)*\t.*\*rlmd-{word}\*\(1\)$")
            self.assertIn(f"*rlmd {word}*", manual_section(f"rlmd-{word}.1", "SYNOPSIS"))

    def test_settings_page_has_every_setting(self):
        page = manual_page("rlmd.conf.5")
        section = re.search(r"(?ms)^# SETTINGS\n(.*?)(?=^# )", page).group(1)
        told = set(re.findall(r"\*([a-z-]+)\*", re.sub(r"(?m)^\t.*", "", section)))
        settings = {tree.unquoted(row[6]) for row in tree.rows("src/cli/options.def", "OPTION")
                    if row[3] == "SETTING"}
        self.assertEqual(settings - told, set())

    def test_settings_page_has_what_tenants_have(self):
        page = manual_page("rlmd.conf.5")
        section = re.search(r"(?ms)^# TENANTS\n(.*?)(?=^# )", page).group(1)
        told = {name for line in section.split("\n") if line.startswith("*")
                for name in re.findall(r"\*([a-z-]+)\*", line)}
        rows = tree.rows("src/batch/tenants.def", "SETTING")
        self.assertEqual({tree.unquoted(row[3]) for row in rows}, told)


class PagesTest(unittest.TestCase):
    """docs/man: which pages there are, and that each reference leads to a page and a section."""

    REFERENCE = re.compile(r"(?:\*([A-Z][A-Z ]+)\* of )?\*(rlmd[\w.-]*|librlmd)\*\((\d)\)")
    SECTION = re.compile(r"(?:[Ss]ee|under) \*([A-Z][A-Z ]+)\*(?! of)")

    def setUp(self):
        self.pages = {path.name[:-4] for path in (tree.ROOT / MANUAL).iterdir()}

    def test_each_is_built(self):
        built = tree.read("docs/meson.build")
        for page in self.pages:
            name, _, section = page.rpartition(".")
            names = re.search(rf"'{section}': \[(.*?)\]", built, flags=re.DOTALL).group(1)
            self.assertIn(f"'{name}'", names)
            self.assertTrue(manual_page(page).startswith(f"{name}({section}) "))
            self.assertIn(f"\n\n{name} - ", manual_page(page))

    def test_references_lead_somewhere(self):
        for page in sorted(self.pages):
            text = re.sub(r"```.*?```", "", manual_page(page), flags=re.DOTALL)
            for title, name, section in self.REFERENCE.findall(text):
                with self.subTest(page=page, to=f"{name}({section}) {title}"):
                    self.assertIn(f"{name}.{section}", self.pages)
                    if title:
                        manual_section(f"{name}.{section}", title)
            for title in set(self.SECTION.findall(text)):
                with self.subTest(page=page, section=title):
                    manual_section(page, title)
            self.assertIn("# SEE ALSO\n", text)

    def test_the_overview_names_each(self):
        for page in self.pages - {"rlmd.1"}:
            name, _, section = page.rpartition(".")
            self.assertIn(f"*{name}*({section})", manual_section("rlmd.1", "SEE ALSO"))

    def test_the_trace_page_has_each_event_and_member(self):
        schema = json.loads(tree.read("share/trace.schema.json"))
        entries = dict(re.findall(r"(?ms)^\*(\w+)\*\n(\t.*?)\n(?=\n)", manual_section("rlmd-trace.5", "EVENTS")))
        entries["winner"] += entries["operation_end"]
        for event in schema["properties"]["event"]["enum"]:
            members = schema["$defs"][event]["properties"] if event != "result" else {}
            with self.subTest(event=event):
                told = set(re.findall(r"_(\w+)_(?!\w)", entries[event]))
                self.assertEqual(set(members) - told, {"run"} & set(members))
        for member in schema["properties"]:
            self.assertIn(f"*{member}*", manual_section("rlmd-trace.5", "EVENTS"))

    def test_the_library_page_has_each_function(self):
        entries = re.findall(r"(?m)^_rlmd/(\w+)\.h_: .*\n((?:\t.*\n)*)", manual_section("librlmd.3", "FUNCTIONS"))
        told = {name: re.findall(r"\*(\w+)\*\(\)", text) for name, text in entries}
        headers = {path.stem: re.findall(r"RLMD_API[^;]*?\b(rlmd_\w+)\(", path.read_text())
                   for path in (tree.ROOT / "include" / "rlmd").glob("*.h")}
        self.assertGreater(sum(map(len, headers.values())), 100)
        self.assertEqual(told, headers)

    def test_the_library_page_has_a_program_that_the_tests_run(self):
        shown = re.search(r"(?s)```\n(.*?)```", manual_section("librlmd.3", "EXAMPLES")).group(1)
        self.assertEqual(shown.replace("\\\\", "\\"), tree.read("examples/basic.c"))


class ProvidersTest(unittest.TestCase):
    """llm/adapters.def against all that a provider has."""

    def test_each_is_whole(self):
        names = [row[1] for row in tree.rows("src/llm/adapters.def", "ADAPTER")]
        self.assertIn("openai", names)
        manual = manual_page("rlmd-exec.1").partition("*-p*, *--provider*")[2][:600]
        help_text = [row[-1] for row in tree.rows("src/cli/options.def", "OPTION")
                     if '"provider"' in row]
        self.assertEqual(len(help_text), 1)
        for name in names:
            for path in (f"src/llm/{name}.c", f"tests/llm/test_{name}.c",
                         f"tests/fuzz/fuzz_{name}.c"):
                with self.subTest(path=path):
                    self.assertTrue((tree.ROOT / path).is_file())
            with self.subTest(provider=name):
                self.assertIn(f"*{name}*", manual)
                self.assertIn(name, help_text[0])


class FirstChangeTest(unittest.TestCase):
    """docs/contributing/first-change.md: each list has an example, which stands in all its files."""

    def test_examples_stand_in_their_files(self):
        told = tree.read("docs/contributing/first-change.md")
        kinds = told.split("\n### ")[1:]
        self.assertEqual(len(kinds), 5)
        for kind in kinds:
            word = re.search(r"^Example: `(\w+)`$", kind, re.M).group(1)
            files = re.findall(r"^\| `([\w./]+)` \|", kind, re.M)
            self.assertGreater(len(files), 4, kind)
            for file in files:
                with self.subTest(word, file=file):
                    self.assertIn(word, tree.read(file).lower())

    def test_named_files_are_there(self):
        told = tree.read("docs/contributing/first-change.md")
        for file in set(re.findall(r"`([a-z][\w.]*/[\w./]*\w)`", told)):
            if "FLOOR" not in file:
                with self.subTest(file):
                    places = tree.ROOT / file, tree.BUILD / file
                    self.assertTrue(any(place.exists() for place in places))


class PromptsTest(unittest.TestCase):
    """prompt/prompts.def against docs/prompts.md, the shipped profiles and what sets the values."""

    DOCUMENT = "docs/prompts.md"

    def setUp(self):
        self.prompts, self.placeholders = {}, {}
        for macro, name, values, what in tree.rows("src/prompt/prompts.def", "PROMPT", "PLACEHOLDER"):
            kinds = ", ".join(values.split(" | "))
            rows = self.prompts if macro == "PROMPT" else self.placeholders
            rows[name] = (kinds, tree.unquoted(what))
        self.assertGreater(len(self.prompts), 15)
        self.profiles = {}
        for path in (tree.ROOT / "share/prompts").glob("*/*"):
            self.assertEqual(path.suffix, ".txt", path)
            self.profiles.setdefault(path.parent.name, {})[path.stem] = path.read_text("utf-8")

    def test_the_document_has_these_rows(self):
        told = tree.read(self.DOCUMENT)
        rows = [f"| `{name}.txt` | {what} | {'none' if kinds == 'NONE' else kinds} |"
                for name, (kinds, what) in self.prompts.items()]
        rows += [f"| `{{{{{name}}}}}` | {kind} | {what} |"
                 for name, (kind, what) in self.placeholders.items()]
        self.assertEqual(re.findall(r"(?m)^\| `.*", told), rows)

    def test_the_default_profile_has_every_prompt(self):
        self.assertEqual(set(self.profiles["default"]), set(self.prompts))
        for profile, texts in self.profiles.items():
            self.assertLessEqual(set(texts), set(self.prompts), profile)

    def test_placeholders_are_known(self):
        """As --prompt DIR would check them: the shipped ones are compiled in unchecked."""
        for profile, texts in self.profiles.items():
            for name, text in texts.items():
                kinds = set(self.prompts[name][0].split(", "))
                for used in re.findall(r"\{\{(.*?)\}\}", text):
                    with self.subTest(profile=profile, prompt=name, placeholder=used):
                        self.assertIn(self.placeholders[used][0], kinds)
                self.assertEqual(text.count("{{"), text.count("}}"))

    def test_each_has_a_value(self):
        """A value that no code sets would be empty everywhere."""
        source = tree.read("src/prompt/brief.c") + tree.read("src/review/review.c")
        kinds = "text|number|money|duration|estimate|text_left|number_left|money_left"
        given = set(re.findall(rf'prompt_(?:{kinds})\(&?values, "(\w+)"', source))
        self.assertEqual(given, set(self.placeholders))


class TraceTest(unittest.TestCase):
    """trace/events.def against docs/trace.md, and docs/plans.md for those of plans."""

    def test_each_is_documented(self):
        names = [tree.unquoted(name) for _, _, name in tree.rows("src/trace/events.def", "TRACE_EVENT")]
        self.assertGreater(len(names), 10)
        trace, plans = (self.named_in(path) for path in ("docs/trace.md", "docs/plans.md"))
        self.assertEqual(set(names) - trace - plans, set())
        self.assertEqual(trace - set(names), set())

    def named_in(self, path):
        """The names in the first column of its tables."""
        cells = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+)", tree.read(path))
        return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


class WayTest(unittest.TestCase):
    """The way of one question through engine and async, as docs/architecture.md counts it.

    Each function calls the next; where it is one of another row, it calls it, or hands it to what
    calls it from the loop.
    """

    WAY = """
        engine/run on_worker
        engine/subcall subcall_start start_questions
        engine/operation operation_set_start
        async/execution rlmd_execution_start
        async/execution on_tell catch_up begin
        async/dispatch dispatch_line_up
        async/scheduler permit_ask
        async/scheduler on_start start_next
        async/dispatch on_turn
        engine/operation start ask send_call start_ask
        engine/ask ask_start
        engine/ask on_permit
    """

    def test_each_function_calls_the_next(self):
        counts = {}
        for row in filter(None, map(str.split, self.WAY.split("\n"))):
            source = tree.without_comments(tree.read(f"src/{row[0]}.c"))
            bodies = {name: body for name, _, _, body in tree.functions(source)}
            for name, following in zip(row[1:], row[2:] + [None]):
                self.assertIn(name, bodies, row[0])
                if following:
                    self.assertRegex(bodies[name], rf"\b{following}\(", row[0])
            counts[row[0]] = counts.get(row[0], 0) + len(row) - 1
        told = re.search(r"(\d+) functions in (\d+) files of this floor", tree.read("docs/architecture.md"))
        self.assertEqual((int(told[1]), int(told[2])), (sum(counts.values()), len(counts)))


class PlansTest(unittest.TestCase):
    """The JSON Schema of docs/plans.md against rlmd/plan.h, src/async and worker/plans.py."""

    def setUp(self):
        text = tree.read("docs/plans.md").split("As JSON Schema:\n\n", 1)[1]
        plan = json.loads(re.match(r"(?:    .*\n)+", text).group())["properties"]
        self.operations = plan["operations"]
        self.members = {**plan, **self.operations["items"]["properties"]}

    def test_figures(self):
        figures = re.findall(r"RLMD_PLAN_(\w+)_MAX (?:= |INT64_C\()(\d+)\b(?! <<)",
                             tree.read("include/rlmd/plan.h"))
        limits = {name: int(figure) for name, figure in figures}
        self.assertEqual(self.operations["maxItems"], limits["OPERATIONS"])
        self.assertEqual(self.members["priority"]["minimum"], -limits["PRIORITY"])
        for member, name in (("maxParallel", "PARALLEL"), ("priority", "PRIORITY"),
                             ("timeout", "TIMEOUT"), ("timeoutPerOp", "TIMEOUT")):
            self.assertEqual(self.members[member]["maximum"], limits[name], member)

    def test_words(self):
        """Of C a switch or a table has them, of Python a tuple."""
        source = tree.read("src/async/metrics.c") + tree.read("src/async/plan_file.c")
        worker = tree.read("worker/plans.py")
        for member, name in (("strategy", "STRATEGIES"), ("partialFailure", "FAILURES"),
                             ("type", "TYPES"), ("mode", "MODES")):
            words = set(self.members[member]["enum"])
            own = re.search(rf"(?m)^{name} = \((.*)\)$", worker).group(1)
            self.assertEqual(set(re.findall(r'"(\w+)"', own)), words)
            self.assertEqual({word for word in words if f'"{word}"' not in source}, set())


class LogTest(unittest.TestCase):
    """base/log.def against docs/log.md, the source, and what every JSON line has."""

    def setUp(self):
        self.events = {}
        for _, name, level, _, event, when in tree.rows("src/base/log.def", "LOG_EVENT"):
            self.events[name] = (tree.unquoted(event), level.lower(), tree.unquoted(when))
        self.assertGreater(len(self.events), 10)

    def test_the_document_has_these_rows(self):
        rows = [f"| `{event}` | {level} | {when} |" for event, level, when in self.events.values()]
        section = tree.read("docs/log.md").split("## What is logged")[1]
        self.assertEqual(re.findall(r"(?m)^\| `.*", section), rows)

    def test_each_is_written(self):
        """With the fields that the table names."""
        sources = [path.read_text("utf-8") for path in tree.files(".c") if "src" in path.parts]
        for name, (event, _, when) in self.events.items():
            with self.subTest(event=event):
                self.assertTrue(any(re.search(rf"\bLOG_{name}\b", source) for source in sources))
                for field in re.findall(r"`(\w+)`", when):
                    self.assertTrue(any(f'"{field}"' in source for source in sources), field)
                    self.assertNotIn(field, ("time", "level", "subject", "event", "message"))


class MetricsTest(unittest.TestCase):
    """batch/metrics.def against docs/batch.md, and the rules of Prometheus."""

    def setUp(self):
        self.rows = [[tree.unquoted(name), kind.lower(), tree.unquoted(labels), tree.unquoted(said)]
                     for _, _, name, kind, labels, said in
                     tree.rows("src/batch/metrics.def", "METRIC")]
        self.assertGreater(len(self.rows), 10)

    def test_the_document_has_these_rows(self):
        rows = [f"| `{name}` | {kind} | {labels} | {said} |"
                for name, kind, labels, said in self.rows]
        self.assertEqual(re.findall(r"(?m)^\| `rlmd_.*", tree.read("docs/batch.md")), rows)

    def test_names(self):
        for name, kind, _, said in self.rows:
            with self.subTest(name):
                self.assertRegex(name, r"^rlmd_[a-z_]+$")
                self.assertEqual(name.endswith("_total"), kind == "counter")
                self.assertIn(kind, ("gauge", "counter", "histogram"))
                self.assertNotIn("\\", said)


class ErrorsTest(unittest.TestCase):
    """base/errors.def against the manual page and the public header."""

    def test_public_header_is_the_table(self):
        told = re.findall(r"\bRLMD_ERROR_(\w+),\s*/\* (.*?) \*/", tree.read("include/rlmd/rlmd.h"))
        rows = [(kind, tree.unquoted(meaning))
                for _, kind, _, _, _, meaning in tree.rows("src/base/errors.def", "ERROR")]
        self.assertEqual(told, rows)

    def test_manual_lists_every_exit_status(self):
        section = manual_section("rlmd.1", "EXIT STATUS")
        rows = tree.rows("src/base/errors.def", "ERROR")
        self.assertGreater(len(rows), 10)
        for _, kind, name, status, _, _ in rows:
            with self.subTest(kind=kind):
                self.assertRegex(section, rf"\b{status}\b")
                self.assertIn(tree.unquoted(name), section, "the name that results show")

    def test_manual_lists_every_stop_reason(self):
        section = manual_section("rlmd-exec.1", "RESULT").partition("*stopReason*")[2].partition(")\n")[0]
        rows = tree.rows("src/base/stops.def", "STOP")
        names = [tree.unquoted(row[2]) for row in rows]
        never = {"max_depth", "max_subruns"}  # of a run that is not begun
        self.assertEqual([name for name in names if f"_{name}_" not in section], sorted(never))


class ConformanceTest(unittest.TestCase):
    """docs/conformance.md: rows `| ENG-1 | what it requires | tests/path::name, or text |`."""

    def setUp(self):
        self.text = tree.read(CONFORMANCE)
        self.known = tree.read("tests/lint/requirements.txt").split()

    def test_ids_exist(self):
        cited = set(re.findall(r"\b(?:ENG|ASY|LIB)-\d+\b", self.text))
        self.assertGreater(len(cited), 30)
        self.assertEqual(cited - set(self.known), set())

    def test_no_id_has_two_rows(self):
        rows = re.findall(r"^\|\s*((?:ENG|ASY|LIB)-\d+)\s*\|", self.text, flags=re.MULTILINE)
        self.assertEqual(sorted({row for row in rows if rows.count(row) > 1}), [])

    def test_rows_say_what_they_require(self):
        """In a sentence, before what shows it; and text in a file of prompts shows nothing."""
        rows = re.findall(r"^\| ((?:ENG|ASY|LIB)-\d+|G\d+) \|(.*)\|$", self.text, flags=re.MULTILINE)
        self.assertGreater(len(rows), 100)
        for name, cells in rows:
            with self.subTest(row=name):
                required, shown = cells.split(" | ", 1)
                self.assertGreater(len(required.split()), 2)
                self.assertNotRegex(required, r"tests?/")
                self.assertNotIn("tests/prompt/test_prompts.py", shown)

    def test_cited_tests_exist(self):
        cited = re.findall(r"\btests?/[\w./-]*\w(?:::[\w.]+)?", self.text)
        self.assertGreater(len(cited), 10)
        for place in cited:
            path, _, names = place.partition("::")
            with self.subTest(test=place):
                self.assertTrue((tree.ROOT / path).exists(), "no such file")
                for name in filter(None, names.split(".")):
                    self.assertRegex(tree.read(path), rf"\b{name}\b")


if __name__ == "__main__":
    unittest.main()

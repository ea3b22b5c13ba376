"""The scripts in tools/ before anything is built: they are tried with stand-ins."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import patience
import tree

DEBIAN_12 = {"meson": "1.0.1-5", "libevent-dev": "2.1.12-stable-8",
             "libcurl4-openssl-dev": "7.88.1-10", "libseccomp-dev": "2.5.4-1",
             "libjansson-dev": "2.14-2", "libcmocka-dev": "1.1.7-3"}


class SetupTest(unittest.TestCase):
    """tools/setup on a system where nothing is installed yet."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rlmd-test-")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.script("dpkg-query", "exit 1")
        self.script("apt-get", f'echo "$*" >>{self.directory}/called')
        self.script("sudo", 'exec "$@"')

    def script(self, name, body):
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def on(self, release, versions=None):
        """The exit status, what was said, and what apt-get was told to do."""
        (self.directory / "os-release").write_text(release)
        cases = "".join(f'{name}) echo "  Candidate: {version}" ;;\n'
                        for name, version in {**DEBIAN_12, **(versions or {})}.items())
        self.script("apt-cache", f'case "$2" in\n{cases}esac')
        environment = {"PATH": f"{self.directory}:/usr/bin:/bin",
                       "OS_RELEASE": str(self.directory / "os-release")}
        done = subprocess.run([str(tree.ROOT / "tools/setup")], env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=patience.hung())
        called = self.directory / "called"
        return done.returncode, done.stderr, called.read_text() if called.exists() else ""

    def test_too_old(self):
        """By its name, in one sentence, and before any server is asked."""
        for release, name in (('ID=debian\nVERSION_ID="11"\n', "Debian 11"),
                              ('ID=debian\nVERSION_ID="9"\n', "Debian 9"),
                              ('ID=ubuntu\nVERSION_ID="22.04"\n', "Ubuntu 22.04")):
            with self.subTest(name):
                status, said, called = self.on(release)
                self.assertEqual((status, called), (1, ""))
                self.assertRegex(said, rf"^tools/setup: {name} is too old .*\n$")
                self.assertEqual(said.count("\n"), 1)

    def test_new_enough(self):
        for release in ('ID=debian\nVERSION_ID="12"\n', 'ID=debian\nVERSION_ID="13"\n',
                        "ID=debian\n", 'ID=ubuntu\nVERSION_ID="24.04"\n', 'ID=mint\nVERSION_ID="1"\n', ""):
            with self.subTest(release):
                status, said, called = self.on(release)
                self.assertEqual(status, 0, said)
                self.assertRegex(called, r" install -y .*meson ninja-build gcc ")

    def test_a_package_is_too_old(self):
        """Of a system that is not known: what its packages are is asked for before they are there."""
        for name, version in (("meson", "0.63.2-1"), ("libcurl4-openssl-dev", "7.81.0-1"),
                              ("libseccomp-dev", "2.4.9-1")):
            with self.subTest(name):
                status, said, called = self.on("ID=mint\nVERSION_ID=21\n", {name: version})
                self.assertEqual(status, 1)
                self.assertRegex(said, rf"has {name} {re.escape(version)}, and [\d.]+ is needed")
                self.assertNotIn("install", called)
                (self.directory / "called").unlink()


# Programs that a build or a test can do without, with the Debian package that has each.
OPTIONAL = {"bwrap": "bubblewrap", "chromium": "chromium", "clang": "clang", "clang++": "clang", "clang-format": "clang-format",
            "ctags": "universal-ctags", "fish": "fish", "g++": "g++", "lxml": "python3-lxml", "mandoc": "mandoc", "mkdocs": "mkdocs", "mypy": "mypy", "node": "nodejs", "parallel": "parallel",
            "shellcheck": "shellcheck", "strace": "strace", "systemd-analyze": "systemd", "yaml": "python3-yaml", "zsh": "zsh"}
# And what every system has on which rlmd can be built, and what rlmd itself uses.
THERE = {"cc", "gcc", "git", "grep", "jsonschema", "ldd", "meson", "nm", "python3", "scdoc", "setpriv"}


class OptionalTest(unittest.TestCase):
    """.ci/run has everything in one stage, and in another only what rlmd cannot do without."""

    def test_each_is_in_one_stage_and_not_in_the_other(self):
        looked_for = set()
        for path in tree.files(".py", ".c", ".build", "", under=("bench", "tests", "tools")):
            if path != Path(__file__) and not tree.name(path).startswith(
                    ("tests/real/", "tools/real-servers")):
                text = tree.read(path)
                for pattern in (r'which\("([^"]+)"\)', r"find_program\('([^']+)'", r'BUBBLEWRAP "([^"]+)"',
                                r"try:\n *(?:import|from) (\w+)[^\n]*\n *except ImportError"):
                    looked_for |= set(re.findall(pattern, text))
        self.assertEqual(looked_for - THERE, set(OPTIONAL))
        base, more = re.findall(r'packages="([^"]*)"', tree.read("tools/setup"))[:2]
        for name, package in OPTIONAL.items():
            with self.subTest(name):
                self.assertIn(package, more.split())
                self.assertNotIn(package, base.split())


class ConfigureTest(unittest.TestCase):
    """A build is configured whatever else is installed, and whatever is not."""

    def optional(self):
        texts = [tree.read(path) for path in (*tree.files(".build"), "docs/meson.build", "meson.build")]
        found = re.findall(r"find_program\('([^']+)'[^)]*required: false", "\n".join(texts))
        self.assertEqual(re.findall(r"dependency\('[^)]*required: false", "\n".join(texts)), [])
        return sorted(set(found))

    def configure(self, room, path):
        environment = {**os.environ, "PATH": str(path), "CC": "gcc"}
        done = subprocess.run(["meson", "setup", "--wrap-mode=nofallback", "-Dtests=enabled",
                               room / "build", tree.ROOT], env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=patience.hung())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def programs(self, room, names):
        """A directory of all that /usr/bin has but `names`."""
        directory = room / "bin"
        directory.mkdir()
        for file in os.scandir("/usr/bin"):
            if file.name not in names:
                (directory / file.name).symlink_to(file.path)
        return directory

    def test_with_and_without_what_is_optional(self):
        names = self.optional()
        self.assertTrue(names)
        for there in (True, False):
            with self.subTest(there=there), tempfile.TemporaryDirectory() as directory:
                room = Path(directory)
                path = self.programs(room, names)
                for name in names if there else ():
                    (path / name).write_text("#!/bin/sh\n")
                    (path / name).chmod(0o755)
                told = self.configure(room, path)
                for name in names:
                    self.assertRegex(told, f"Program {name} found: {'YES' if there else 'NO'}")


class DemoBuildTest(unittest.TestCase):
    def test_it_builds_what_it_needs(self):
        """The program with its files: no test, no benchmark."""
        self.assertRegex(tree.read("tools/demo"), r"TARGETS=program tools/build")
        done = subprocess.run(["ninja", "-C", str(tree.BUILD), "-t", "inputs", "program"],
                              check=True, capture_output=True, text=True)
        inputs = done.stdout.splitlines()
        wanted = {"rlmd.p/src_cli_main.c.o", "../worker/repl.py", "../share/prices.json",
                  "worker/_rlmd.abi3.so.p/_rlmd.c.o"}
        self.assertEqual(wanted - set(inputs), set())
        self.assertEqual([each for each in inputs if re.match(r"(tests|bench)/", each)], [])


class SuitesTest(unittest.TestCase):
    def introspect(self, what):
        done = subprocess.run(["meson", "introspect", what, str(tree.BUILD)], check=True,
                              capture_output=True, text=True)
        return json.loads(done.stdout)

    def test_each_file_of_tests_is_run(self):
        """By a test of the build, itself or as the program that it is compiled to."""
        run = {os.path.realpath(Path(tree.BUILD, word)) for test in self.introspect("--tests")
               for word in test["cmd"]}
        run.update(source for target in self.introspect("--targets")
                   if run.intersection(map(os.path.realpath, target["filename"]))
                   for group in target["target_sources"] for source in group.get("sources", ()))
        sanitize, = (option["value"] for option in self.introspect("--buildoptions")
                     if option["name"] == "b_sanitize")
        left_out = {tree.ROOT / "tests/system/test_starved.py"} if sanitize != "none" else set()
        files = {path for path in tree.files(".c", ".py", under=("tests",))
                 if path.name.startswith("test_")} - left_out
        self.assertGreater(len(files), 300)
        self.assertEqual([tree.name(path) for path in sorted(files)
                          if os.path.realpath(path) not in run], [])


class RealServersTest(unittest.TestCase):
    """The optional suite of real servers, where they are not."""

    def test_what_cannot_be_installed_is_said(self):
        """By its name; and nothing half made is left, nor a test run."""
        with tempfile.TemporaryDirectory(prefix="rlmd-test-") as directory:
            environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "TMPDIR": directory,
                           "XDG_CACHE_HOME": directory, "PIP_INDEX_URL": "http://127.0.0.1:9/",
                           "PIP_RETRIES": "0"}
            done = subprocess.run([tree.ROOT / "tools/real-servers"], env=environment, text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=patience.hung())
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"(?m)^tools/real-servers: xllamacpp could not be "
                                          r"installed: \S.*$")
            self.assertEqual(list(Path(directory, "rlmd").iterdir()), [])

    def test_it_is_named_when_it_is_not_run(self):
        environment = {name: value for name, value in os.environ.items()
                       if name != "RLMD_REAL_SERVERS"}
        files = sorted((tree.ROOT / "tests/real").glob("test_*.py"))
        self.assertGreater(len(files), 1)
        for file in files:
            with self.subTest(file=file.name):
                done = subprocess.run([sys.executable, tree.ROOT / "tests/tap.py", file], text=True,
                                      env=environment, capture_output=True,
                                      timeout=patience.hung())
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?m)^ok 1 - .* # SKIP `tools/test --suite real` ")
                self.assertRegex(done.stdout, r"(?m)^1\.\.1$")


class PatienceTest(unittest.TestCase):
    """The machine's slowness, as tests measure it."""

    def slowness(self, *looks):
        loads = iter(looks)
        with mock.patch.multiple(patience, _look_at_the_load=lambda: next(loads),
                                 _start_an_interpreter=lambda: patience.START,
                                 _measured={"at": float("-inf"), "slowness": 1.0}):
            return patience.slowness() * len(os.sched_getaffinity(0))

    def test_who_only_wants_to_end_is_no_load(self):
        self.assertEqual(self.slowness((0, 2000), (0, 64)), 64)
        self.assertEqual(self.slowness((0, 64), (0, 2000)), 64)
        self.assertEqual(self.slowness((0, 100), (0, 100)), 100)
        self.assertEqual(self.slowness((200, 100), (200, 100)), 200)


class DemoTest(unittest.TestCase):
    def test_each_floor_has_an_answer(self):
        """Of the largest ones the demonstration asks what they are for."""
        answers = json.loads(tree.read("examples/demo/answers.json"))
        patterns = [each["match"].get("pattern") for each in answers
                    if each["match"]["kind"] == "llm_query"]
        floors = re.findall(r"(?m)^subdir\('(\w+)'\)", tree.read("src/meson.build"))
        self.assertIn("base", floors)
        for floor in floors:
            with self.subTest(floor=floor):
                self.assertTrue(any(pattern and re.search(pattern, f'the floor "{floor}" for?')
                                    for pattern in patterns))


class TallyTest(unittest.TestCase):
    def test_what_a_failed_test_says_is_no_obstacle(self):
        """Meson writes it as it is into the XML, an ESC or a NUL too."""
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            with open(log + ".json", "w") as file:
                for name, result in (("s / a", "OK"), ("s / b", "FAIL")):
                    print(json.dumps({"name": name, "result": result, "returncode": 1}), file=file)
            with open(log + ".junit.xml", "w") as file:
                file.write("<?xml version='1.0' encoding='utf-8'?><testsuites><testsuite name='p.s / b'>"
                           "<testcase classname='p.s / b' name='1'><failure>\x1b[31m \0</failure>"
                           "</testcase></testsuite></testsuites>")
            done = subprocess.run([tree.ROOT / "tools/tally", log], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")

    def test_those_that_skipped_something(self):
        """By the names that `meson test` takes."""
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            with open(log + ".json", "w") as file:
                for name, result in (("p:s / a", "OK"), ("p:s+t / b", "SKIP"), ("p:s / c", "OK")):
                    print(json.dumps({"name": name, "result": result, "returncode": 0}), file=file)
            case = "<testcase classname='p.p:s / {0}' name='1'>{1}</testcase>"
            Path(log + ".junit.xml").write_text("<testsuites>" + "".join(
                f"<testsuite name='p.p:s / {name}'>{case.format(name, more)}</testsuite>"
                for name, more in (("a", ""), ("c", "<skipped/>"))) + "</testsuites>")
            done = subprocess.run([tree.ROOT / "tools/tally", "--with-skips", log],
                                  stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["b", "c"]))

    def test_programs_that_skip_all_of_themselves(self):
        """The reason is the last thing that they say; one without a reason has failed."""
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            with open(log + ".json", "w") as file:
                for more in ({"stderr": "first\nfor want of bwrap\n"}, {}):
                    print(json.dumps({"name": "s / a", "result": "SKIP", "returncode": 77, **more}),
                          file=file)
            Path(log + ".junit.xml").write_text("<testsuites/>")
            done = subprocess.run([tree.ROOT / "tools/tally", log], stdout=subprocess.PIPE, text=True)
        self.assertIn("skipped: s / a: for want of bwrap", done.stdout.splitlines())
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed, 1 skipped")

    def test_what_is_no_test(self):
        """It is told and counted, whatever the tests did."""
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            Path(log + ".json").write_text('{"name": "s / a", "result": "OK", "returncode": 0}\n')
            Path(log + ".junit.xml").write_text("<testsuites/>")
            for more, status, last in (
                    ([], 0, "1 passed, 0 failed"),
                    (["--skipped", "b: too late"], 0, "1 passed, 0 failed, 1 skipped"),
                    (["--passed", "b", "--passed", "c"], 0, "3 passed, 0 failed"),
                    (["--skipped", "b: too late", "--failed", "c"], 1,
                     "1 passed, 1 failed, 1 skipped")):
                with self.subTest(more=more):
                    done = subprocess.run([tree.ROOT / "tools/tally", log, *more],
                                          stdout=subprocess.PIPE, text=True)
                    self.assertEqual(done.returncode, status)
                    self.assertEqual(done.stdout.splitlines()[-1], last)

    def test_what_failed_is_told_last(self):
        """With the end of what it said: of a long log often only the end is kept."""
        with tempfile.TemporaryDirectory() as directory:
            logs = [os.path.join(directory, name) for name in ("a", "b")]
            for log, more in zip(logs, ({"result": "FAIL", "returncode": 1, "stderr": "why"},
                                        {"result": "SKIP", "returncode": 77, "stderr": "no bwrap"})):
                Path(log + ".json").write_text(json.dumps({"name": "s / t", **more}))
                Path(log + ".junit.xml").write_text("<testsuites/>")
            done = subprocess.run([tree.ROOT / "tools/tally", *logs, "--failed", "c"],
                                  stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout.splitlines(), [
            f"skipped: {logs[1]}: s / t: no bwrap", "", "--- s / t", "    why", "", "failed: c",
            f"failed: {logs[0]}: s / t: FAIL, exit status 1", "0 passed, 2 failed, 1 skipped"])


if __name__ == "__main__":
    unittest.main()

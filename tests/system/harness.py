"""How system tests start the real program: real workers, real HTTP or a script of answers.

The program is the one in the build directory that Meson names, or $RLMD. Every run gets an
environment of its own, so that no key or configuration of whoever runs the tests leaks in.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import leaks
import patience
import trace_schema

BUILD = os.environ.get("RLMD_BUILD_ROOT", pathlib.Path(__file__).resolve().parents[2] / "build")
RLMD = os.environ.get("RLMD") or os.path.join(BUILD, "rlmd")


def turn(text, turn=None, depth=None, **more):
    """A script's entry for a run's step; `text` may be a list of lines."""
    match = {"kind": "turn"}
    if turn is not None:
        match["turn"] = turn
    if depth is not None:
        match["depth"] = depth
    response = {"text": text}
    response.update(more)
    return {"match": match, "response": response}


def query(text, pattern=None, repeat=True, kind="llm_query"):
    """A script's entry for a call out of a block."""
    match = {"kind": kind}
    if pattern is not None:
        match["pattern"] = pattern
    return {"match": match, "response": {"text": text}, "repeat": repeat}


def block(*lines):
    """A response that is one code block."""
    return "```repl\n%s\n```" % "\n".join(lines)


class Outcome:
    """The remains of one run of the program: its status and both streams."""

    def __init__(self, process, out, err):
        self.status = process.returncode
        self.out = out.decode("utf-8", "replace")
        self.raw = out
        self.err = err.decode("utf-8", "replace")

    @property
    def result(self):
        return json.loads(self.out)

    @property
    def events(self):
        events = [json.loads(line) for line in self.out.splitlines()]
        trace_schema.check(event for event in events if "seq" in event)
        return events

    def executions(self):
        """Every code execution of the root, in order, of a --json result."""
        return [
            execution
            for iteration in self.result["trace"]["iterations"]
            for execution in iteration["codeExecutions"]
        ]


class SystemTest(unittest.TestCase):
    """A scratch directory, and ways to run the program in it."""

    maxDiff = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(trace_schema.check_files, self.dir)

    def environment(self, **more):
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.dir),
            "TMPDIR": str(self.dir),
            "LANG": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "GCOV_PREFIX",
                     "XDG_CACHE_HOME"):
            if name in os.environ:
                env[name] = os.environ[name]
        env.update(more)
        return env

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return str(path)

    def script(self, *entries):
        """A directory of answers for --replay."""
        directory = tempfile.mkdtemp(prefix="script-", dir=self.dir)
        pathlib.Path(directory, "answers.json").write_text(json.dumps(entries), encoding="utf-8")
        return directory

    def program_for_others(self):
        """A copy where any user can start it: what was built may be in a closed directory."""
        room = pathlib.Path(tempfile.mkdtemp(prefix="program-", dir=self.dir))
        for part in ("rlmd", "librlmd.so.0"):
            shutil.copy(pathlib.Path(RLMD).with_name(part), room)
        for part in ("helper", "worker", "share"):
            shutil.copytree(os.path.join(os.path.dirname(RLMD), part), room / part,
                            ignore=shutil.ignore_patterns("*.p"))
        os.chmod(room, 0o755)
        os.chmod(self.dir, 0o755)
        return str(room / "rlmd")

    def start(self, *arguments, env=None, program=RLMD, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        more.setdefault("cwd", self.dir)
        process = subprocess.Popen(
            [program, *map(str, arguments)],
            env=self.environment() if env is None else env,
            **more,
        )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def rlmd(self, *arguments, env=None, input=None, timeout=None, **more):
        """Runs to the end; `input` is given on standard input."""
        more.setdefault("stdin", subprocess.DEVNULL if input is None else subprocess.PIPE)
        process = self.start(*arguments, env=env, **more)
        out, err = process.communicate(input, timeout=timeout or patience.hung())
        return Outcome(process, out or b"", err or b"")

    def replay(self, entries, *arguments, context=None, task="the task", **more):
        """`rlmd exec` over a script of answers; a str or bytes `context` is given as a file."""
        options = ["--provider", "replay", "--replay", self.script(*entries)]
        if context is not None:
            options += ["-c", self.write("context.txt", context)]
        return self.rlmd("exec", *options, *arguments, "--", task, **more)

    def blocks(self, *blocks, arguments=(), **more):
        """Runs each block in a turn of its own, then ends; gives the executions and the outcome."""
        entries = [turn(block(text), turn=i) for i, text in enumerate(blocks)]
        entries.append(turn("FINAL(done)", turn=len(blocks)))
        extra = more.pop("entries", [])
        outcome = self.replay(entries + extra, "--json", "-q", *arguments, **more)
        self.assertEqual(outcome.status, 0, outcome.err + outcome.out[:2000])
        return outcome.executions(), outcome

    def cgroup_of_memory(self, limit):
        """A cgroup with so many bytes of memory; the function by which a process joins it."""
        own = dict(line.strip().split(":", 2)[1:] for line in open("/proc/self/cgroup"))
        unified = "memory" not in own
        root = pathlib.Path("/sys/fs/cgroup", "" if unified else "memory")
        group = root / own.get("memory", own.get("", "/")).strip("/") / f"test{os.getpid()}"
        try:
            group.mkdir()
            self.addCleanup(group.rmdir)
            (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(limit))
        except OSError as error:
            self.skipTest(f"no cgroup can be made here: {error}")
        return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


class GuardedTest(leaks.LeakGuard, SystemTest):
    """A SystemTest that fails when something is left behind: LIB-15."""

    def setUp(self):
        super().setUp()
        self.variables = {name: str(self.scratch) for name in leaks.PLACES}
        del self.environment  # the guard's copy of ours, which hides the method

    def environment(self, **more):
        return super().environment(**{**self.variables, **more})

"""Runs all attempts through the real program in one mode, and tells how each ended.

A mode is a user, and what the machine gives him. All attempts of a group are blocks of one run: a
worker that survives an attempt gets the next one, a worker that does not is replaced.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import errno
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import apart
import attempts
import patience

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("RLMD_BUILD_ROOT", HERE.parents[1] / "build"))
RLMD = pathlib.Path(os.environ.get("RLMD", BUILD / "rlmd"))
USER = 65534
LONG = 150           # seconds of an idle machine that a run may take
AT_ONCE = 3          # runs of attempts at the same time
LARGE = "." * 100_000  # makes a context one that workers map and share, in the place of decoding it
SUPERVISOR_MAX = 256 << 20  # bytes that a supervisor may ever need
WORKERS_MAX = 300    # that it may ever have at once

YOUNG = {"quotactl_fd": 443, "landlock_create_ruleset": 444, "landlock_add_rule": 445,
         "landlock_restrict_self": 446, "memfd_secret": 447, "process_mrelease": 448,
         "futex_waitv": 449, "set_mempolicy_home_node": 450, "epoll_pwait2": 441,
         "mount_setattr": 442, "process_madvise": 440, "faccessat2": 439, "openat2": 437,
         "pidfd_getfd": 438, "close_range": 436, "clone3": 435}


class Unavailable(Exception):
    """Why a mode cannot be tried on this machine."""


def numbers_of(codes):
    """The system calls of this architecture among all words of the attempts."""
    library = ctypes.CDLL("libseccomp.so.2")
    words = set(re.findall(r"[a-z_][a-z0-9_]+", " ".join(codes)))
    found = {word: library.seccomp_syscall_resolve_name(word.encode()) for word in words}
    found = {word: number for word, number in found.items() if number >= 0}
    found.update(YOUNG)
    if platform.machine() == "x86_64":
        found["x32"] = 0x40000000
    return found


def without_itself(text):
    """A pattern that finds a text, and not itself."""
    return f"[{text[0]}]{re.escape(text[1:])}"


# Modes


@dataclasses.dataclass
class Mode:
    name: str
    user: int
    prefix: list   # of commands that end in the program's own
    deprived: bool = False


def reachable_python():
    """An interpreter that another user can start too; ours may be in a home directory."""
    for python in (shutil.which("python3"), "/usr/bin/python3", sys.executable):
        if python and run_as_user([python, "-c", "import ctypes"]) == 0:
            return python
    raise Unavailable("no python3 that another user can start")


def run_as_user(command):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run([*as_user(), *command], cwd="/", **quiet).returncode


def as_user():
    """The program that it names is started by `env`: setpriv itself can still reach what the user cannot."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Unavailable("no setpriv to become another user with")
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env"]


def mode(name):
    """One of root, container, user, bare; or Unavailable, with the reason."""
    root = os.getuid() == 0
    if name in ("root", "container") and not root:
        raise Unavailable("these tests do not run as root")
    if name == "root":
        return Mode(name, 0, [])
    if name == "container":
        if not shutil.which("setpriv"):
            raise Unavailable("no setpriv to give capabilities away with")
        return Mode(name, 0, ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"], True)
    return Mode(name, USER if root else os.getuid(), as_user(), name == "bare")


class Stage:
    """The files and baits of one mode, the program where its user can start it, and the results."""

    def __init__(self, which):
        self.mode = mode(which)
        apart.own_namespaces()
        self.slowness = patience.slowness()  # all limits of time are scaled by it
        self.long = round(LONG * self.slowness)
        self.stack = contextlib.ExitStack()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-escape-"))
        self.stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.groups = attempts.load()
        self.outcomes, self.problems, self.notes = {}, [], []
        self.peak = self.children = 0
        self.sandbox, self.honest_runs = None, 0
        try:
            self.install()
            self.lay_baits()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.stack.close()

    # The surroundings

    def install(self):
        os.chmod(self.dir, 0o755)
        self.python = reachable_python()
        self.home = self.dir / "home"
        self.home.mkdir()
        self.own(self.home)
        shutil.copy(HERE / "deprive.py", self.dir)
        self.program = RLMD
        if self.mode.user != os.getuid():
            self.program = self.dir / "rlmd"
            for part in ("rlmd", "librlmd.so.0"):
                shutil.copy(RLMD.with_name(part), self.dir)
            for part in ("helper", "worker", "share"):
                ignored = shutil.ignore_patterns("*.p")
                shutil.copytree(RLMD.parent / part, self.dir / part, ignore=ignored)
        deprived = [self.python, "-I", str(self.dir / "deprive.py")] if self.mode.deprived else []
        self.command = [*self.mode.prefix, *deprived, str(self.program)]
        done = subprocess.run([*self.command, "--version"], cwd="/", env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=patience.hung())
        if done.returncode != 0:
            raise AssertionError(f"the program does not start: {done.stdout.decode()[-300:]}")

    def own(self, path):
        if os.getuid() == 0:
            os.chown(path, self.mode.user, self.mode.user)

    def write(self, name, content):
        path = self.dir / name
        path.write_text(content, encoding="utf-8")
        return str(path)

    def lay_baits(self):
        """Things that an escape would find or change, as open to everybody as they can be."""
        self.salt = os.urandom(8).hex()
        self.baits = self.dir / "baits"
        self.baits.mkdir()
        (self.baits / "file").write_text("bait\n")
        (self.baits / "bait_module.py").write_text("")
        import _ctypes
        shutil.copy(_ctypes.__file__, self.baits / "bait.so")
        for path in (self.baits, *self.baits.iterdir()):
            os.chmod(path, 0o777)
        self.listeners = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX),
                          socket.socket(socket.AF_UNIX)]
        for listener in self.listeners:
            self.stack.callback(listener.close)
        self.listeners[1].bind(str(self.baits / "socket"))
        self.listeners[2].bind("\0rlmd-escape-" + self.salt)
        for listener in self.listeners:
            listener.listen(8)
            listener.setblocking(False)
        os.chmod(self.baits / "socket", 0o777)
        self.laid = sorted(path.name for path in self.baits.iterdir())
        self.segments = apart.interprocess_objects()
        self.bystander = subprocess.Popen([*self.mode.prefix, "sleep", "infinity"], cwd="/")
        self.stack.callback(self.bystander.wait)
        self.stack.callback(self.bystander.kill)
        self.secrets = {"OPENAI_API_KEY": f"sk-planted-{self.salt}-environment",
                        "ESCAPE_SECRET": f"other-planted-{self.salt}-variable"}
        self.key = f"sk-planted-{self.salt}-file"
        self.key_file = self.write("key", self.key)
        os.chmod(self.key_file, 0o600)
        self.own(self.key_file)

    def facts(self):
        codes = [each.code for group in self.groups for each in group.attempts.values()]
        codes.append(pathlib.Path(self.tools).read_text())
        secrets = [*self.secrets.values(), self.key]
        return json.dumps({
            "numbers": numbers_of(codes),
            "salt": self.salt,
            "file": str(self.baits / "file"),
            "directory": str(self.baits),
            "socket": str(self.baits / "socket"),
            "abstract": "rlmd-escape-" + self.salt,
            "port": self.listeners[0].getsockname()[1],
            "bystander": self.bystander.pid,
            "canary": without_itself(f"canary-{self.salt}-in-the-context"),
            "neighbours": [without_itself(f"neighbour-{self.salt}-context")],
            "secrets": [without_itself(secret) for secret in secrets],
        })

    def environment(self):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.home),
               "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        return env

    # Runs

    def start(self, script, *arguments):
        directory = tempfile.mkdtemp(prefix="script-", dir=self.dir)
        pathlib.Path(directory, "answers.json").write_text(json.dumps(script), encoding="utf-8")
        os.chmod(directory, 0o755)
        command = [*self.command, "exec", "-p", "replay", "--replay", directory, "--json", "-q",
                   "--python", self.python if self.mode.user != os.getuid() else "python3",
                   *arguments, "--", "the task"]
        return subprocess.Popen(command, cwd="/", env={**self.environment(), **self.secrets},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        """The status, the result, and the most memory that the program itself ever had."""
        watch = Watch(process.pid)
        try:
            out, err = process.communicate(timeout=self.long + patience.hung())
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError("a run hung: " + err.decode("utf-8", "replace")[-500:])
        finally:
            peak, children = watch.end()
            self.peak, self.children = max(self.peak, peak), max(self.children, children)
        if not out:
            raise AssertionError(f"exit status {process.returncode}: {err.decode()[-1000:]}")
        return json.loads(out)

    def scaled(self, argument):
        """A limit of time as this machine needs it; anything else as it is."""
        duration = re.fullmatch(r"(\d+)(ms|s)", argument)
        return f"{float(duration[1]) * self.slowness:.0f}{duration[2]}" if duration else argument

    def run_group(self, group):
        listed = list(group.attempts.values())
        process = self.start(
            script_of(group, self.facts()),
            "-c", self.write(f"context-{group.name}", f"canary-{self.salt}-in-the-context{LARGE}"),
            "-c", "tools=" + self.tools,
            "-c", "facts=" + self.write(f"facts-{group.name}", self.facts()),
            "--key-file", self.key_file, "--max-iterations", "1000", "--max-calls", "1000000000",
            "--max-tokens", "100000000000",
            "--max-time", str(self.long), *map(self.scaled, group.arguments))
        started = time.monotonic()
        result = self.finish(process)
        self.notes.append(f"{group.name}: {time.monotonic() - started:.1f} s")
        self.sandbox = result.get("sandbox") or self.sandbox
        iterations = result.get("trace", {}).get("iterations", [])
        for attempt, iteration in zip(listed, iterations):
            if not iteration["codeExecutions"]:
                break  # the run ended before it, and says why
            execution = iteration["codeExecutions"][0]
            if execution["duration"] > 3000:
                self.notes.append(f"{attempt.name}: {execution['duration']} ms")
            self.outcomes[group.name, attempt.name] = (word_of(execution), execution)
        if result["output"] != "the end":
            raise AssertionError(f"it ended with {result['output']!r}, {result.get('error')}")

    def run(self):
        """Everything, with an honest run going on beside it all the time."""
        self.tools = self.write("tools", (HERE / "toolbox.py").read_text())
        stop = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE + 1) as pool:
            neighbour = pool.submit(self.neighbour, stop)
            slow_first = sorted(self.groups, key=lambda group: group.name != "time")
            running = {pool.submit(self.run_group, group): group for group in slow_first}
            for future in concurrent.futures.as_completed(running):
                if future.exception():
                    self.problems.append(f"{running[future].name}: {future.exception()}")
            stop.set()
            if neighbour.exception():
                self.problems.append(f"an honest run beside them: {neighbour.exception()}")
            else:
                self.honest_runs = neighbour.result()

    def neighbour(self, stop):
        context = self.write("context", f"neighbour-{self.salt}-context{LARGE}")
        count = 0
        while not stop.is_set():
            code = "import time; time.sleep(0.3); total = globals().get('total', 0) + len(llm_query('quick'))"
            script = [turn(i, code) for i in range(10)]
            script += [turn(10, "FINAL(f'{total} {len(context)}')"), *ANSWERS]
            result = self.finish(self.start(script, "-c", context))
            wanted = f"{10 * len('quick answer')} {len(f'neighbour-{self.salt}-context{LARGE}')}"
            if result["output"] != wanted or len(result["trace"]["iterations"]) != 11:
                raise AssertionError(f"{result['output']!r}, not {wanted!r}: {result.get('error')}")
            count += 1
        return count

    # Traces that an escape would have left

    def traces(self):
        """Changes outside that no worker should be able to make."""
        found = []
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                found.append(f"a connection to {listener.getsockname()}")
        if self.bystander.poll() is not None:
            found.append(f"the bystander ended: {self.bystander.returncode}")
        now = sorted(path.name for path in self.baits.iterdir())
        if now != self.laid or (self.baits / "file").read_text() != "bait\n":
            found.append(f"the baits have changed: {now}")
        if apart.interprocess_objects() != self.segments:
            found.append("System V objects")
        return found


class Watch:
    """The peak of a process's own memory, looked at while it runs."""

    def __init__(self, pid):
        self.pid, self.peak, self.children, self.over = pid, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.over.wait(0.05):
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
                found = re.search(r"VmHWM:\s+(\d+) kB", status)
                self.peak = max(self.peak, int(found.group(1)) << 10 if found else 0)
                children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
                self.children = max(self.children, len(children.split()))

    def end(self):
        self.over.set()
        self.thread.join()
        return self.peak, self.children


# Scripts and outcomes


def turn(index, code, depth=0, pattern=None, repeat=False):
    match = {"kind": "turn", "depth": depth, "turn": index}
    if pattern:
        match["pattern"] = pattern
    return {"match": match, "response": {"text": f"```repl\n{code}\n```"}, "repeat": repeat}


def answer(pattern, text, **more):
    match = {"kind": "llm_query", "pattern": pattern}
    return {"match": match, "response": {"text": text, **more}, "repeat": True}


ANSWERS = [answer("^slow", "late", delay=3000), answer("^brisk", "soon", delay=20),
           answer("^quick", "quick answer")]


def block_of(attempt):
    """In a function, so that what an attempt took is given back when it fails."""
    code = textwrap.indent(attempt.code, "    ")
    return f"if 'FACTS' not in globals(): exec(tools)\ndef attempt():\n{code}\nattempt()"


def script_of(group, facts):
    listed = list(group.attempts.values())
    script = [turn(i, block_of(attempt)) for i, attempt in enumerate(listed)]
    script.append(turn(len(listed), "FINAL('the end')"))
    tools = f"facts = {facts!r}\n" + (HERE / "toolbox.py").read_text()
    script += sub_runs(tools)
    script.append({"match": {"kind": "llm_query", "pattern": "^fails"}, "repeat": True,
                   "error": {"kind": "bad_request", "message": "refused", "http_status": 400}})
    return script + ANSWERS


def sub_runs(tools):
    """The sub-runs of attempt_others.py."""
    search = tools + """
own, other = ("one", "two") if "one" in context else ("two", "one")
found, _ = search(*[f"[s]ibling-{name}-{FACTS['salt']}" for name in (own, other)])
mine, others = found.values()
FINAL(f"mine {mine > 0} other {others > 0}")"""
    lie = "import os, time\nos.write(4, b'\\0\\0\\0\\1x')\ntime.sleep(3600)"
    script = [turn(0, code, 1, f"task-{name}", True) for name, code in (
        ("search", search),
        ("context", "FINAL(context[:6])"),
        ("die", "import os; os._exit(3)"),
        ("live", "import time; time.sleep(0.3); FINAL('alive')"),
        ("lie", lie),
        ("sleep", "import time; time.sleep(1); FINAL('slept')"),
        ("overwrite", "mine = 2; FINAL('overwritten')"),
        ("random", "import random, uuid; FINAL(f'{random.random()} {uuid.uuid4()}')"))]
    return script + [turn(1, f"FINAL('{text}')", 1, pattern, True) for text, pattern in (
        ("died once", "exit status 3"), ("lied once", "broke the protocol"))]


def word_of(execution):
    """How an attempt ended, in one of the words of attempts.py."""
    error = execution["error"]
    if error is None:
        return "held" if execution["stdout"].strip() == "held" else "returned"
    if "(SIGSYS)" in error:
        return "SIGSYS"
    if "broke the protocol" in error:
        return "violation"
    if "no interrupt ended the code" in error or "this block was interrupted" in error:
        return "time"
    lines = [line for line in error.splitlines() if re.match(r"(?!Hint:)[A-Za-z_][\w.]*(:|$)", line)]
    last = lines[-1] if lines else ""
    if "Traceback" not in error and "Error" not in last:
        return "died"
    number = re.search(r"\[Errno (\d+)\]", last)
    if number and int(number.group(1)) in errno.errorcode:
        return errno.errorcode[int(number.group(1))]
    return last.split(":")[0].split(".")[-1] or "a traceback without its exception"

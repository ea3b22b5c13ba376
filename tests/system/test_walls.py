"""Acts that a block may not do, tried from inside through the whole program; and what still works.

Each attempt has its outcome: an exception that the model reads, or a worker that is killed and
replaced. After every one of them the run goes on and gives its answer.
"""

import platform
import subprocess
import unittest

import patience
from harness import GuardedTest, block, query, turn

# Some of the kernel's refusals are told in the words of worker/places.py.
REFUSED = r"PermissionError: \[Errno 1\] (Operation not permitted|there is no network|memory cannot)"
KILLED = r"made a system call that the sandbox forbids \(SIGSYS\)"
SECRET = "sk-secret-of-the-supervisor"

# Numbers of calls that Python has no function for: x86-64, aarch64.
TABLE = """
    add_key 248 217                bpf 321 280                    capset 126 91
    clone 56 220                   clone3 435 435                 execveat 322 281
    fsopen 430 430                 init_module 175 105            io_uring_enter 426 426
    io_uring_setup 425 425         kcmp 312 272                   kexec_load 246 104
    keyctl 250 219                 landlock_create_ruleset 444 444
    memfd_secret 447 447           mount 165 40                   of_tomorrow 600 600
    open_by_handle_at 304 265      openat2 437 437                perf_event_open 298 241
    personality 135 92             pidfd_getfd 438 438            pidfd_open 434 434
    pidfd_send_signal 424 424      pkey_mprotect 329 288          prctl 157 167
    process_vm_readv 310 270       process_vm_writev 311 271      ptrace 101 117
    reboot 169 142                 request_key 249 218            rt_sigqueueinfo 129 138
    sched_setattr 314 274          seccomp 317 277                setns 308 268
    shmget 29 194                  tgkill 234 131                 timer_create 222 107
    unshare 272 97                 userfaultfd 323 282            vmsplice 278 75
    """.split()
COLUMN = {"x86_64": 1, "aarch64": 2}[platform.machine()]
NUMBERS = dict(zip(TABLE[::3], TABLE[COLUMN::3]))
IMPORTS = """
import asyncio, ctypes, errno, fcntl, glob, json, mmap, os, pathlib, pty, resource, signal
import socket, sqlite3, subprocess, sys, tempfile, threading, time, urllib.request
import multiprocessing, multiprocessing.pool, multiprocessing.shared_memory
import _io, builtins, io, posix
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
fork = multiprocessing.get_context("fork")
# The walls are tried, not the session's courtesy (worker/places.py): the real functions back.
builtins.open = io.open = open = _io.open
mmap.mmap = mmap.mmap.__base__
for name in dir(posix):
    if not name.startswith("__") and name != "environ":
        setattr(os, name, getattr(posix, name))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = libc.mmap.restype = ctypes.c_long
libc.mmap.argtypes = [ctypes.c_long] * 6
libc.mprotect.argtypes = [ctypes.c_long] * 3
def told(result):
    return result if result != -1 else errno.errorcode.get(ctypes.get_errno())
def call(number, *arguments):
    return told(libc.syscall(*map(ctypes.c_long, (number, *arguments))))
def pages(protection, flags):
    return libc.mmap(0, 4096, protection, flags, -1, 0)
def code_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value & ~4095
"""


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


class WallsTest(GuardedTest):
    def attempt(self, codes, **more):
        """(code, execution) of each, in blocks of one run, which must come to its answer."""
        arguments = ["--max-iterations", "1000", "--max-tokens", "1000000000"]
        arguments += more.pop("arguments", [])
        # A block that was killed has lost what was imported.
        blocks = [f"if 'libc' not in globals():\n    exec({IMPORTS!r})\n{code}" for code in codes]
        executions, outcome = self.blocks(*blocks, arguments=arguments, **more)
        self.assertEqual(outcome.result["output"], "done")
        self.assertEqual(len(executions), len(codes))
        return zip(codes, executions)

    def fails(self, expected, codes, **more):
        """Each raises, or ends its worker, with a text that the regular expression describes."""
        for code, execution in self.attempt(codes, **more):
            with self.subTest(code):
                self.assertRegex(execution["error"] or "no error", expected)

    def gives(self, attempts, **more):
        """Each line is an expression, two spaces at least, and what a REPL shows of its value."""
        pairs = [line.rsplit("  ", 1) for line in lines(attempts)]
        executions = self.attempt([code.strip() for code, _ in pairs], **more)
        for (_, shown), (code, execution) in zip(pairs, executions):
            with self.subTest(code):
                self.assertEqual((execution["stdout"], execution["error"]), (shown + "\n", None))

    def calls(self, attempts):
        """Each line is a call and its arguments, two spaces at least, and the errno."""
        pairs = [line.rsplit("  ", 1) for line in lines(attempts)]
        codes = []
        for attempt, error in pairs:
            name, *arguments = attempt.split()
            codes.append(f"call({', '.join([NUMBERS[name], *arguments])})  {error!r}")
        self.gives("\n".join(codes))

    def kills(self, names, *arguments):
        """Each of these calls, whatever its arguments."""
        arguments = arguments or (0, 0, 0, 0, 0)
        numbers = [NUMBERS[name] for name in names.split()]
        told = ", ".join(map(str, arguments))
        self.fails(KILLED, [f"call({number}, {told})" for number in numbers])


class Refused(WallsTest):
    def test_files(self):
        """G1, G2: not read, listed, looked at, written, made or removed."""
        self.fails(REFUSED, lines("""
            open('/etc/passwd')
            open('/proc/self/mem', 'rb')
            open('/proc/1/environ')
            pathlib.Path('/etc/hostname').read_text()
            os.open('/', os.O_PATH)
            os.stat('/')
            os.lstat('/tmp')
            os.statvfs('/')
            os.getxattr('/', 'user.x')
            os.listdir('/')
            os.scandir('/proc')
            os.readlink('/proc/self/exe')
            os.chdir('/tmp')
            os.chroot('/')
            open('/tmp/rlmd-escape', 'w')
            os.mkdir('/tmp/rlmd-escape')
            os.mkfifo('/tmp/rlmd-escape')
            os.symlink('/', '/tmp/rlmd-escape')
            os.unlink('/tmp/rlmd-escape')
            os.rename('/tmp/x', '/tmp/y')
            os.truncate('/tmp/x', 0)
            os.ftruncate(4, 0)
            os.chmod('/tmp', 0)
            os.utime('/tmp')
            os.pipe()
            os.memfd_create('x')
            multiprocessing.shared_memory.SharedMemory('x', True, 10)
        """))
        self.fails("OperationalError: unable to open|FileNotFoundError|PermissionError", lines("""
            sqlite3.connect('/tmp/rlmd-escape.db').execute('create table x (y)')
            tempfile.TemporaryFile()
        """))
        self.gives("""
            os.path.exists('/etc/passwd')   False
            os.access('/', os.R_OK)         False
            glob.glob('/*')                 []
            os.getcwd()                     '/'
        """)
        self.calls("openat2 -100 0 0 0  EPERM")
        self.kills("open_by_handle_at")

    def test_network(self):
        """G3: no socket of any family but a pair that leads nowhere; no names."""
        kinds = ("AF_INET, 1", "AF_INET, 2", "AF_INET, 3", "AF_INET6, 1", "AF_UNIX, 1")
        kinds += ("AF_NETLINK, 3", "AF_PACKET, 3", "AF_VSOCK, 1", "AF_ALG, 5", "AF_CAN, 3")
        self.fails(REFUSED, [f"socket.socket(socket.{kind})" for kind in kinds])
        self.fails("URLError|gaierror|PermissionError", lines("""
            socket.getaddrinfo('localhost', 80)
            socket.create_connection(('127.0.0.1', 1))
            urllib.request.urlopen('http://127.0.0.1:1/')
            asyncio.run(asyncio.open_connection('127.0.0.1', 1))
        """))
        self.fails(REFUSED, lines("""
            socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            socket.socketpair()[0].connect('/run/x')
            socket.socketpair()[0].bind('/tmp/rlmd-escape')
            socket.socketpair()[0].listen()
            socket.socketpair()[0].sendmsg([b'x'])
            socket.socketpair()[0].send(b'x', socket.MSG_OOB)
            socket.socketpair()[0].setsockopt(1, 2, 3)
        """))
        self.gives("[(a.send(b'x'), b.recv(9)) for a, b in [socket.socketpair()]]  [(1, b'x')]")

    def test_programs(self):
        """G4: no process is started, whatever way."""
        self.fails("PermissionError|OSError", lines("""
            os.fork()
            os.execv('/bin/true', ['true'])
            os.posix_spawn('/bin/true', ['true'], {})
            os.popen('true')
            pty.fork()
            subprocess.run(['true'])
            asyncio.run(asyncio.create_subprocess_exec('true'))
            fork.Process(target=print).start()
            fork.Pool(2)
            ProcessPoolExecutor(2).submit(abs, -1).result()
        """))
        self.gives("""
            libc.vfork()            -1
            os.system('true') != 0  True
        """)
        self.calls("""
            clone 17 0 0 0 0           EPERM
            clone 0x4111 0 0 0 0       EPERM
            clone3 0 0                 ENOSYS
            execveat 3 0 0 0 0x1000    EPERM
        """)

    def test_processes(self):
        """G5: none is seen, signalled, traced or waited for, itself not stopped."""
        self.fails(REFUSED, lines("""
            os.kill(os.getppid(), 9)
            os.kill(os.getppid(), 0)
            os.kill(-1, 9)
            os.kill(1, 0)
            os.killpg(0, 9)
            os.kill(os.getpid(), signal.SIGSTOP)
            signal.raise_signal(signal.SIGSTOP)
            os.wait()
            os.getsid(os.getppid())
            os.getpriority(os.PRIO_PROCESS, os.getppid())
            os.sched_setaffinity(os.getppid(), [0])
            os.setsid()
            resource.prlimit(os.getppid() or 2, resource.RLIMIT_NOFILE)
            fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())
            fcntl.fcntl(4, fcntl.F_SETFL, os.O_ASYNC if hasattr(os, 'O_ASYNC') else 0o20000)
            fcntl.fcntl(4, 1031, 1 << 20)
            fcntl.ioctl(0, 0x5412, b'x')
            fcntl.ioctl(3, 0x8901, b'xxxx')
            fcntl.flock(3, fcntl.LOCK_SH)
        """))
        self.calls("""
            pidfd_open os.getppid() 0               EPERM
            pidfd_send_signal 3 9 0 0               EPERM
            tgkill os.getppid() os.getppid() 9      EPERM
            tgkill os.getpid() os.getpid() 19       EPERM
            rt_sigqueueinfo os.getppid() 9 0        EPERM
            timer_create 0 0 0                      EPERM
        """)
        others = "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd"
        self.kills(others, "os.getppid()", 0, 0)

    def test_powers(self):
        """G7: what no honest program calls ends the worker; the rest is refused."""
        self.kills("""
            io_uring_setup io_uring_enter bpf keyctl add_key request_key unshare setns userfaultfd
            perf_event_open personality seccomp mount fsopen reboot init_module kexec_load vmsplice
        """)
        self.fails(REFUSED, lines("""
            os.setuid(12345)
            os.setresuid(0, 0, 0)
            os.setgroups([0])
            os.nice(-1)
            os.sched_setscheduler(0, 1, os.sched_param(1))
            os.dup2(3, 9)
            time.clock_settime(0, 0)
            socket.sethostname('x')
        """))
        self.calls("""
            prctl 4 1 0 0 0                 EPERM
            prctl 1 0 0 0 0                 EPERM
            prctl 22 0 0 0 0                EPERM
            capset 0 0                      EPERM
            shmget 0 4096 0o600             EPERM
            sched_setattr 0 0 0             EPERM
            memfd_secret 0                  EPERM
            landlock_create_ruleset 0 0 1   EPERM
            of_tomorrow 0                   ENOSYS
        """)

    def test_memory_that_can_be_executed_or_shared(self):
        """G7: neither made nor turned into; callbacks of ctypes, which need it, fail cleanly."""
        self.gives("""
            told(pages(7, 0x22))                                'EPERM'
            told(pages(5, 0x22))                                'EPERM'
            told(pages(3, 0x21))                                'EPERM'
            told(libc.mprotect(pages(3, 0x22), 4096, 5))        'EPERM'
            told(libc.mprotect(code_of(libc.mmap), 4096, 7))    'EPERM'
        """)
        self.calls("pkey_mprotect 0 4096 5 0  EPERM")
        self.fails("MemoryError|PermissionError", lines("""
            mmap.mmap(-1, 4096)
            ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
        """))


class Limits(WallsTest):
    def test_they_cannot_be_raised(self):
        """G8."""
        self.fails("ValueError|PermissionError", lines("""
            resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
            resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))
            resource.prlimit(0, resource.RLIMIT_NOFILE, (9999, 9999))
        """))

    def test_they_are_reached(self):
        """G8: descriptors, threads, memory: an exception, or a worker less."""
        short = "|signal (6|9|11)"  # Python does not always survive it
        copies = "[fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, 0) for _ in range(99)]"
        for expected, code in (
            ("Too many open files", copies),
            ("MemoryError" + short, "x = []\nwhile True: x.append(bytearray(1 << 24))"),
            # A thread without memory for its first step is waited for until the block's time is up.
            ("RuntimeError: can't start new thread|MemoryError|its time was up" + short,
             "hold = threading.Event()\n"
             "while True: threading.Thread(target=hold.wait, daemon=True).start()"),
        ):
            self.fails(expected, [code], arguments=["--worker-memory", "128M"])

    def test_a_worker_that_ends_itself(self):
        """G9, G10: it is replaced, and the model told how it ended.

        The first process of a namespace gets no signal that it has no handler for: there
        abort() goes on to its second way out, which is an address that faults, and an alarm
        that nobody waits for does nothing.
        """
        alarm = "signal.setitimer(0, 0.01); time.sleep(0.3); raise TimeoutError('it lived on')"
        in_a_thread = "threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(3600)"
        for expected, code in (
            (r"signal 6 \(SIGABRT\)|signal 11 \(SIGSEGV\).* or called abort\(\)", "os.abort()"),
            (r"killed by signal 14 \(SIGALRM\)|it lived on", alarm),
            (r"killed by signal 11 \(SIGSEGV\)", "ctypes.string_at(1)"),
            ("exit status 0", "os._exit(0)"),
            ("exit status 5", in_a_thread),
        ):
            self.fails(expected, [code])


class Secrets(WallsTest):
    KEYS = {"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET, "MY_OWN": SECRET}

    def test_nothing_is_inherited(self):
        """G6: not the environment, arguments, descriptors or directory of the supervisor."""
        opened = "def is_open(fd):\n    try: return fcntl.fcntl(fd, fcntl.F_GETFD) >= 0\n" \
                 "    except OSError: return False\n[fd for fd in range(999) if is_open(fd)]"
        shown = ["sys.argv, libc.getenv(b'MY_OWN')", "sorted(os.environ)", "dict(os.environ)"]
        with open("/dev/null") as inherited:
            more = {"env": self.environment(**self.KEYS), "pass_fds": [inherited.fileno()]}
            executions = [e for _, e in self.attempt([opened, *shown], context="text", **more)]
        fds, arguments, names, values = (execution["stdout"] for execution in executions)
        self.assertEqual((fds, arguments), ("[0, 1, 2, 3, 4]\n", "([''], 0)\n"))
        ours = "LANG|LC_ALL|PATH|GLIBC_TUNABLES|[A-Z]+_NUM_THREADS|USER|LOGNAME|HOME"
        self.assertRegex(names, rf"^\[('({ours})'(, )?)+\]$")
        self.assertNotIn(SECRET, values)

    def test_what_a_run_leaves_behind(self):
        """G6: a key stands in no trace, result or log."""
        trace = self.dir / "trace"
        outcome = self.replay([turn("FINAL(x)")], "--json", "--trace", trace, "-vv",
                              env=self.environment(**self.KEYS))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertNotIn(SECRET, outcome.out + outcome.err + trace.read_text())


class StillWorks(WallsTest):
    # Of no use behind the walls: tests, installers, windows, terminals, files of databases.
    NOT_THERE = {
        "antigravity", "curses", "ensurepip", "idlelib", "lib2to3", "nis", "ossaudiodev",
        "readline", "test", "this", "tkinter", "turtle", "turtledemo",
    }

    def test_the_standard_library(self):
        """Modules that a plain Python can import are there when a block first asks for it."""
        listing = "import sys; print(*getattr(sys, 'stdlib_module_names', ['asyncio', 'xmlrpc']))"
        every = set(self.plain_python(listing).split())
        names = sorted(n for n in every - self.NOT_THERE if not n.startswith("_"))
        program = "import importlib, warnings\nwarnings.simplefilter('ignore')\nmissing = []\n" \
                  f"for name in {names}:\n    try: importlib.import_module(name)\n" \
                  "    except ImportError: missing.append(name)\nprint(missing)"
        ((_, execution),) = self.attempt([program])
        self.assertEqual(execution["error"], None)
        self.assertEqual(execution["stdout"], self.plain_python(program))

    @staticmethod
    def plain_python(program):
        command = ["python3", "-I", "-c", program]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()

    def test_concurrency(self):
        """asyncio, threads, queues, timers, databases in memory."""
        loop = "async def f(n):\n    await asyncio.sleep(0.01)\n    return n\n" \
               "async def main():\n    call = asyncio.get_running_loop().run_in_executor\n" \
               "    return await asyncio.gather(f(5), call(None, llm_query, 'q'))\n" \
               "asyncio.run(main())"
        timer = "import queue\nq = queue.Queue()\n" \
                "threading.Timer(0.01, q.put, [5]).start()\nq.get()"
        pool = "with ThreadPoolExecutor(16) as p: print(sum(p.map(abs, range(99))))"
        database = "sqlite3.connect(':memory:').execute('select 6 * 7').fetchone()"
        executions = self.attempt([loop, timer, pool, database], entries=[query("a")])
        for expected, (code, execution) in zip(("[5, 'a']", "5", "4851", "(42,)"), executions):
            with self.subTest(code):
                self.assertEqual((execution["stdout"], execution["error"]), (expected + "\n", None))


FRAME = """import json, os, time
def say(text, **fields):
    frame = (json.dumps({"type": text, **fields}) if fields else text).encode()
    os.write(4, len(frame).to_bytes(4, "big") + frame)
def done(**more):
    say("done", stdout="forged", stderr="", error=None,
        **{"block": 1, "missing": None, "final": None, "answer": None, **more})
def ask(*prompts, **more):
    say("llm_query", **{"id": 7, "prompts": prompts, "turns": [], "model": None, "system": None,
                        "max_tokens": None, "temperature": None, **more})
"""


class Liars(WallsTest):
    """G10: a lie costs its own worker; its run goes on, and one beside it hears nothing of it."""

    LIES = {
        "half a frame, then the end": "os.write(4, b'\\0\\0\\0\\x50{'); os._exit(0)",
        "half a frame, then nothing": "os.write(4, b'\\0\\0\\0\\x50{'); time.sleep(3600)",
        "a length of 4 GB": "os.write(4, b'\\xff\\xff\\xff\\xff')",
        "no JSON": "say('hello')",
        "deep JSON": "say('[' * 100000)",
        "invalid UTF-8": "os.write(4, b'\\0\\0\\0\\2\\xff\\xff')",
        "an unknown message": "say('shutdown', now=True)",
        "a message of the supervisor's": "say('reply', id=1, values=[], errors=[], messages=[])",
        "a message out of turn": "say('ready', python='3', layers=[])",
        "fields that nobody asked for": "done(depth=0)",
        "an answer without its source": "done(answer='x')",
        "a forged end": "done()",
        "two forged ends": "done(); done()",
        "the end of the next block": "done(block=2)",
        "this end and the next": "done(); done(block=2)",
        "a forged end, while the block goes on": "done(); time.sleep(3600)",
        "a call in another run's name": "say('budget', id=1, depth=0)",
        "the same call twice": "ask('slow'); ask('slow')",
        "an attachment that does not exist": "ask(3)",
        "an attachment of a terabyte": "ask(0, attachments=[1 << 40])",
        "its pipe closed": "os.close(4); time.sleep(3600)",
        "its commands closed": "os.close(3)",
        "another file in the pipe's place":
            "os.close(4); import fcntl; fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 4)",
        "calls without end": "i = 0\nwhile True: say('budget', id=i); i += 1",
        "bytes without end": "while True: os.write(4, b'x' * 65536)",
    }

    def test_lies(self):
        for name, code in self.LIES.items():
            with self.subTest(name):
                self.lie(code)

    def lie(self, code):
        def sub(task, number, text):
            match = {"kind": "turn", "depth": 1, "pattern": f"TASK: {task}"}
            if number is not None:
                match["turn"] = number
            return {"match": match, "response": {"text": text}, "repeat": number is None}

        outcome = self.replay(
            [
                turn(block("x = 1", "print(batch_rlm_query(['lie', 'honest']), x)"), 0, depth=0),
                turn("FINAL(done)", 1, depth=0),
                sub("lie", 0, block(FRAME, code)),
                sub("lie", 1, block("print('again')")),
                sub("lie", None, block("FINAL('went on with ' + context)")),
                sub("honest", 0, block("import time; time.sleep(0.2); y = llm_query('q')")),
                sub("honest", 1, block("FINAL(y + context)")),
                query("x", pattern="slow"),
                query("a"),
            ],
            "--json", "--block-timeout", patience.duration(2), context="b",
        )
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(outcome.executions()[0]["stdout"], "['went on with b', 'ab'] 1\n")


if __name__ == "__main__":
    unittest.main()

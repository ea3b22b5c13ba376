"""Does once in the template, before workers are forked, the work that every worker begins with.

A session is begun, blocks are run, a batch is asked and answered. Python then has specialised the
bytecode that this runs and has found the attributes that it looks up. A worker that had to do so
itself would write into pages that it now shares with all others: 110 of 710, and a sixth of the
processor time of a short life. Code that ran is moved together before that: a count of references
is written wherever code is called, and was on a page of its own for most.

The session that did it is dropped, and what it left in modules put back. It met nothing of any
run, and no worker can see that it was there: tests/worker/test_worker_warm.py looks everywhere.
"""

import _signal
import gc
import json
import posix
import signal
import sys
import types

import tracebacks
from output import GATHER

STARTS = 10  # of each as many as save something: Python specialises what runs the eighth time
ROUNDS = 4
PARTS = 8
BLOCKS = (
    "y = 1 + 1\nprint(y)",
    f"answers = batch_llm_query([f'part {{i}}' for i in range({PARTS})])\nlen(answers)",
)
START = {"names": [], "forms": [], "sizes": [], "starts": [], "indexes": [], "task": "",
         "max_output": GATHER, "functions": "[]"}


def warm_up(make_session):
    """make_session(read_fd, write_fd): a new Session."""
    before = Snapshot()
    to_read, answering = posix.pipe()
    told, to_write = posix.pipe()
    try:
        supervisor = Supervisor(answering, told)
        put_together(codes_of(lambda: use(make_session(to_read, to_write), supervisor, 1, 1)))
        use(make_session(to_read, to_write), supervisor, STARTS, ROUNDS)
    finally:
        before.restore()
        for fd in (to_read, answering, told, to_write):
            posix.close(fd)
        gc.collect()


def codes_of(action):
    """The code objects that run in it, in their order."""
    codes = {}

    def note(frame, event, _argument):
        if event == "call":
            codes[frame.f_code] = None

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return codes


def put_together(codes):
    """Functions get copies of their code, which lie beside each other: 20 pages less of 305."""
    functions = {}
    for each in gc.get_objects():
        if type(each) is types.FunctionType and each.__code__ in codes:
            functions.setdefault(each.__code__, []).append(each)
    for code in codes:
        for function in functions.get(code, ()):
            function.__code__ = code.replace()


def use(session, supervisor, starts, rounds):
    for _ in range(starts):
        supervisor.say("start", START)
        session.start([], [], None)
        supervisor.hear()
    numbers = iter(range(1, rounds + 1))
    for block in BLOCKS * rounds:
        supervisor.say("exec", {"block": 0, "code": block})
        if "query" in block:
            nothing = [None] * PARTS
            supervisor.say("reply", {"id": next(numbers), "values": ["an answer"] * PARTS,
                                     "errors": nothing, "messages": nothing, "degraded": nothing})
        session.serve_one()
        supervisor.hear()


class Supervisor:
    """The other side, as far as it says the same to every worker."""

    def __init__(self, write_fd, read_fd):
        self._out, self._in = write_fd, read_fd

    def say(self, kind, fields):
        body = json.dumps({"type": kind, **fields}).encode()
        posix.write(self._out, len(body).to_bytes(4, "big") + body)

    def hear(self):
        """So that the pipe is never full; what it was does not matter."""
        posix.read(self._in, 1 << 16)


class Snapshot:
    """The contents of all modules, to be put back."""

    def __init__(self):
        self._modules = dict(sys.modules)
        seen = {id(module): module for module in (*self._modules.values(), tracebacks)}
        self._names = [
            (vars(module), dict(vars(module)))
            for module in seen.values() if isinstance(module, types.ModuleType)
        ]
        # As signal.signal() of C takes it: the enum of Python's own is no SIG_IGN there.
        self._handler = _signal.getsignal(signal.SIGINT)

    def restore(self):
        for name in sys.modules.keys() - self._modules.keys():
            del sys.modules[name]
        sys.modules.update(self._modules)
        for now, before in self._names:
            for name in now.keys() - before.keys():
                del now[name]
            now.update(before)
        if self._handler is not None:  # None: it was installed by C, and Python cannot do so again
            _signal.signal(signal.SIGINT, self._handler)
        tracebacks.forget()

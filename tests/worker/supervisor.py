"""A supervisor of a few lines: starts worker/repl.py in a plain python3, without walls."""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import unittest

import patience

ROOT = os.environ["RLMD_BUILD_ROOT"]
PYTHON = os.environ.get("RLMD_TEST_PYTHON", sys.executable)

BOOT = """
import sys, os
sys.path.insert(0, sys.argv[1])
import _rlmd, repl
warmth, *fds = sys.argv[2:]
fds = [int(fd) for fd in fds]
if warmth == "warm":  # as worker/template.py does it: before there is a session
    repl.warm_up()
session = repl.Session(fds[0], fds[1])
session.main(fds[2:], ["fake"], _rlmd)
"""


WIDTHS = {"ascii": 1, "latin-1": 1, "ucs-2": 2, "ucs-4": 4}


def size_of(data, form):
    """Bytes of a text as a worker has it."""
    if form not in WIDTHS:
        return len(data)
    return len(data.decode("utf-8", "surrogateescape")) * WIDTHS[form]


class Gone(Exception):
    """The worker ended."""


class Worker:
    def __init__(self, context=b"the context", more=(), forms=None, indexes=None, max_output=50000,
                 python=PYTHON, task="the task", functions=(), warm=False):
        inputs = [("context", context), *more] if context is not None else list(more)
        indexes = indexes or [b""] * len(inputs)
        forms = forms or ["utf-8"] * len(inputs)
        self.files = [memory_file(data) for _name, data in inputs]
        self.files += [memory_file(index) for index in indexes if index]
        read, self.out = os.pipe()
        self.into, write = os.pipe()
        fds = [read, write, *self.files]
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-E", "-B", "-c", BOOT, os.path.join(ROOT, "worker"),
             "warm" if warm else "cold",
             *map(str, fds)],
            pass_fds=fds, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(read)
        os.close(write)
        for fd in self.files:
            os.close(fd)
        self.unread = b""
        self.block = 0
        self.calls = []           # what the worker asked and was answered by `answer`
        self.answer = lambda call: [f"<{text}>" for text in call.get("prompts", call.get("tasks"))]
        self.ready = self.receive()
        self.send("start", names=[name for name, _data in inputs],
                  forms=forms,
                  sizes=[size_of(data, form) for (_name, data), form in zip(inputs, forms)],
                  starts=[0] * len(inputs),
                  indexes=[len(index) for index in indexes], task=task, max_output=max_output,
                  functions=json.dumps(functions))
        self.started = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_about):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.out)
        os.close(self.into)

    # Frames

    def send(self, kind, attached=(), **fields):
        self.write(frame(kind, attached, **fields))

    def write(self, data):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.out, rest):]

    def receive(self):
        """The next message, its texts in place; what may be any bytes is bytes if attached."""
        size, = struct.unpack(">I", self.take(4))
        message = json.loads(self.take(size).decode("utf-8"), parse_constant=refuse)
        attached = [self.take(size) for size in message.pop("attachments", [])]
        used = []

        def text(value):
            if type(value) is int:
                used.append(value)
                return attached[value]
            assert value is None or type(value) is str and value.encode() is not None
            return value

        for key in ("stdout", "stderr", "error", "answer", "value", "variables", "plan",
                    "system"):
            if key in message:
                message[key] = text(message[key])
        for key in ("stdout", "stderr", "error", "variables", "plan"):
            if isinstance(message.get(key), bytes):
                message[key] = message[key].decode("utf-8")
        for key in ("prompts", "tasks", "contexts"):
            if key in message:
                message[key] = [text(value) for value in message[key]]
        assert sorted(used) == list(range(len(attached))), "attachments used once each"
        return message

    def take(self, size):
        deadline = time.monotonic() + patience.hung()
        parts, missing = [self.unread], size - len(self.unread)
        while missing > 0:
            if not select.select([self.into], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the worker says nothing")
            data = os.read(self.into, 65536)
            if not data:
                raise Gone(self.process.wait(patience.hung()), self.process.stderr.read())
            parts.append(data)
            missing -= len(data)
        data = b"".join(parts)
        self.unread = data[size:]
        return data[:size]

    # Dialogue

    def start_block(self, code):
        self.block += 1
        self.send("exec", block=self.block, code=code)

    def run(self, code):
        """Runs a block, answers its calls, returns `done`."""
        self.start_block(code)
        return self.until("done")

    def get(self, name=""):
        self.send("get", name=name)
        return self.until("value")

    def until(self, kind):
        while True:
            message = self.receive()
            if message["type"] == kind:
                return message
            self.serve(message)

    def serve(self, call):
        self.calls.append(call)
        if call["type"] == "budget":
            slots = ['{"cost": 1.5, "depth": 2}']
        else:
            slots = self.answer(call)
        self.reply(call["id"], slots)

    def reply(self, number, slots):
        self.write(reply_frame(number, slots))

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)


class WorkerTest(unittest.TestCase):
    """The output of a block of `self.worker`."""

    def assert_shows(self, code, shown):
        done = self.worker.run(code)
        self.assertIsNone(done["error"], done["error"])
        self.assertEqual(done["stdout"], shown + "\n")


def frame(kind, attached=(), **fields):
    message = {"type": kind, **fields}
    if attached:
        message["attachments"] = [len(data) for data in attached]
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body + b"".join(attached)


def reply_frame(number, slots):
    """A slot: a str, bytes to be attached, (kind of error, message), or [text, why degraded]."""
    values, errors, messages, degraded, attached = [], [], [], [], []
    for slot in slots:
        reason = None
        if type(slot) is list:
            slot, reason = slot
        degraded.append(reason)
        failed = type(slot) is tuple
        if type(slot) is bytes:
            attached.append(slot)
            slot = len(attached) - 1
        values.append(None if failed else slot)
        errors.append(slot[0] if failed else None)
        messages.append(slot[1] if failed else None)
    return frame("reply", attached, id=number, values=values, errors=errors, messages=messages,
                 degraded=degraded)


def index_of(entries, changes="", text=None):
    """The index of files as src/source/file_index.c writes it: of (path, first, characters).

    text: where it is not ASCII.
    """
    records, paths = b"", b""
    for path, first, characters in entries:
        name, byte, size = path.encode(), first, characters
        if text is not None:
            byte = len(text[:first].encode("utf-8", "surrogateescape"))
            size = len(text[first:first + characters].encode("utf-8", "surrogateescape"))
        records += struct.pack("10Q", first, characters, byte, size, len(paths), len(name),
                               characters // 3, 0, 0x7F, 0)
        paths += name + b"\0"
    order = sorted(range(len(entries)), key=lambda place: entries[place][0].encode())
    changes = changes.encode()
    return (struct.pack("3Q", len(entries), len(paths), len(changes)) + records
            + struct.pack(f"{len(order)}I", *order) + paths + changes)


def memory_file(data):
    fd = os.memfd_create("input")
    os.write(fd, data)
    return fd


def refuse(constant):
    raise ValueError("not JSON: " + constant)

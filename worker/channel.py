"""Frames and calls over the two pipes to the supervisor: docs/protocol.md.

There is no thread that only reads. Of the threads that wait for an answer one
holds the lead: it reads frames and hands them to whom they concern; when its
own has come it gives up the lead and wakes another. Frames are written whole,
under a lock. Both happen in sections (interrupts.py), so that no exception
can strike between two bytes of a frame.

A text that is not valid Unicode travels as an attachment, as the bytes that
Python's `surrogateescape` made it from.
"""

import itertools
import posix
import select
import threading
from _thread import get_ident

from _rlmd import ProtocolError, encode, message, place

BATCH_MAX = 4000            # of a call: room for a task and a context each
SLICE = 64 << 10            # characters encoded at once
READ_SIZE = 64 << 10        # what a pipe holds
READ_AHEAD = 4 << 10        # a small frame comes with one read
WRITE_SIZE = 64 << 10       # bytes that are gathered for one write
HEADER = 4                  # bytes of a frame's length

EXIT_VIOLATION = 70


class Attachment:
    """A text's UTF-8, made in slices, so that a large text is never copied whole."""

    def __init__(self, text):
        self._text = text
        self._errors = "strict"
        if text.isascii():
            self.size = len(text)
            return
        try:
            self._errors = "surrogateescape"
            self.size = sum(map(len, self.slices()))
        except UnicodeEncodeError:
            self._errors = "replace"
            self.size = sum(map(len, self.slices()))

    def slices(self):
        if len(self._text) <= SLICE:
            return [self._text.encode("utf-8", self._errors)]
        return self._cut()

    def _cut(self):
        for start in range(0, len(self._text), SLICE):
            yield self._text[start:start + SLICE].encode("utf-8", self._errors)


def exceeds(text, limit):
    """Whether `text` takes more than `limit` bytes."""
    if len(text) > limit:
        return True
    return not text.isascii() and len(text) * 4 > limit and Attachment(text).size > limit


class Waiter:
    """A thread that waits for one message."""

    __slots__ = ("message", "_alarm", "wait")

    def __init__(self):
        self.message = None
        self._alarm = threading.Lock()
        self._alarm.acquire()
        self.wait = self._alarm.acquire  # until wake(), also where that came first

    def wake(self):
        try:
            self._alarm.release()
        except RuntimeError:
            pass  # is awake already


COMMANDS = None  # in `_waiters`: who waits for what is no reply


class Channel:
    def __init__(self, read_fd, write_fd, interrupts):
        self._in = read_fd
        self._out = write_fd
        self._interrupts = interrupts
        self._unread = b""
        poll = select.poll()
        poll.register(read_fd, select.POLLIN)
        self._poll = poll.poll
        self._lead = threading.Lock()
        self._writing = threading.Lock()
        self._waiters = {}
        self._commands = []
        self._numbers = itertools.count(1)
        self._inside = set()  # threads in a section of ours

    def send(self, name, fields):
        frame, attached = encode(name, fields, Attachment)
        section = self._enter()
        try:
            self._write(frame, attached)
        finally:
            self._leave(section)

    def call(self, name, fields):
        """Sends a call and waits for its reply."""
        fields["id"] = number = next(self._numbers)
        frame, attached = encode(name, fields, Attachment)
        section = self._enter()
        try:
            # The lead before the question: no other thread can take the answer then.
            if self._lead.acquire(False):
                return self._lead_until(number, frame, attached)
            waiter = self._waiters[number] = Waiter()
            self._write(frame, attached)
            self._await(waiter)
            return waiter.message
        finally:
            self._waiters.pop(number, None)
            self._leave(section)

    def command(self):
        """Waits for the next message that is no reply; for the main thread, outside blocks."""
        if self._lead.acquire(False):
            if not self._commands:
                return self._lead_until(COMMANDS)
            self._resign()
        waiter = self._waiters[COMMANDS] = Waiter()
        if not self._commands:
            self._await(waiter)
        self._waiters.pop(COMMANDS, None)
        return self._commands.pop(0)

    def _lead_until(self, number, frame=None, attached=()):
        """With the lead, which is given up: sends a frame, and waits for what answers it."""
        try:
            if frame:
                self._write(frame, attached)
            while True:
                message = self._read()
                if (message["id"] if message["type"] == "reply" else COMMANDS) == number:
                    return message
                self._hand_over(message)
        finally:
            self._resign()

    def _resign(self):
        self._lead.release()
        if self._waiters:
            self._appoint(None)

    def _enter(self):
        # A destructor or a signal handler that struck in one of our own sections.
        thread = get_ident()
        if thread in self._inside:
            raise RuntimeError("this call came in the midst of another one of the same thread")
        section = self._interrupts.enter()
        self._inside.add(thread)
        return section

    def _leave(self, section):
        self._inside.discard(get_ident())
        self._interrupts.leave(section)

    def _await(self, waiter):
        try:
            while waiter.message is None:
                if not self._lead.acquire(False):
                    self._interrupts.wait(waiter.wait)
                    continue
                try:
                    while waiter.message is None:
                        self._hand_over(self._read())
                finally:
                    self._lead.release()
                    self._appoint(waiter)
        except BaseException:
            self._appoint(waiter)  # we may have been woken to take the lead
            raise

    def _appoint(self, leaving):
        """Wakes a thread to take the lead; if another one has it already, no harm is done."""
        for waiter in list(self._waiters.values()):
            if waiter is not leaving:
                waiter.wake()
                break

    def _hand_over(self, message):
        if message["type"] == "reply":
            # None: the call was interrupted, nobody waits any more.
            waiter = self._waiters.pop(message["id"], None)
        else:
            self._commands.append(message)
            waiter = self._waiters.pop(COMMANDS, None)
        if waiter is not None:
            waiter.message = message
            waiter.wake()

    def _read(self):
        """The next message. Can be interrupted only while there is nothing of it yet."""
        unread = self._unread
        if not unread and self._interrupts.can_strike():
            self._interrupts.wait(self._poll)
        try:
            if not unread:
                unread = posix.read(self._in, READ_AHEAD) or end(0)
            found = message(unread)
            while not found:
                unread += self._more(int.from_bytes(unread[:HEADER], "big") - len(unread))
                found = message(unread)
            fields, sizes, size = found
            self._unread = unread[size:]
            if sizes is None:
                return fields
            texts = [self._take(size).decode("utf-8", "surrogateescape") for size in sizes]
            return place(fields, texts)
        except BaseException as error:  # what follows cannot be understood
            end(EXIT_VIOLATION, f"cannot read from the supervisor: {error!r}")

    def _more(self, wanted):
        part = posix.read(self._in, min(READ_SIZE, max(READ_AHEAD, wanted)))
        return part or end(0)

    def _take(self, size):
        data = self._unread
        if len(data) < size:
            parts, missing = [data], size - len(data)
            while missing > 0:
                part = self._more(missing)
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
        self._unread = data[size:]
        return data[:size]

    def _write(self, frame, attached):
        with self._writing:
            try:
                if not attached:
                    self._write_all(frame)
                    return
                parts, size = [frame], len(frame)
                for attachment in attached:
                    for part in attachment.slices():
                        parts.append(part)
                        size += len(part)
                        if size >= WRITE_SIZE:
                            self._write_all(b"".join(parts))
                            parts, size = [], 0
                self._write_all(b"".join(parts))
            except BaseException as error:  # half a frame: nothing can follow it
                end(EXIT_VIOLATION, f"cannot write to the supervisor: {error!r}")

    def _write_all(self, data):
        written = posix.write(self._out, data)
        while written < len(data):
            written += posix.write(self._out, memoryview(data)[written:])


def end(status, message=None):
    """Ends the process at once: the supervisor went away, or nothing can be understood."""
    if message:
        try:
            posix.write(2, message.encode("utf-8", "replace") + b"\n")
        except OSError:
            pass
    posix._exit(status)

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
import json
import os
import select
import threading

from messages import (
    ATTACHED_MAX, ATTACHMENT_WEIGHT, ATTACHMENTS_MAX, ELEMENTS_MAX, FRAME_MAX, INTEGER_MAX,
    MESSAGES, STRING_MAX, TEXT_INLINE_MAX,
)

BATCH_MAX = 4000            # of a call: room for a task and a context each
INLINE_TOTAL = FRAME_MAX // 4  # bytes of JSON that the texts of one array may take
SLICE = 64 << 10            # characters encoded at once
READ_SIZE = 64 << 10        # what a pipe holds
READ_AHEAD = 4 << 10        # a small frame comes with one read

EXIT_VIOLATION = 70

quote = json.encoder.encode_basestring_ascii
parse = json.JSONDecoder().raw_decode


class ProtocolError(ValueError):
    """A message that is not in the table, or not as it stands there."""


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
        for start in range(0, len(self._text), SLICE):
            yield self._text[start:start + SLICE].encode("utf-8", self._errors)


def exceeds(text, limit):
    """Whether `text` takes more than `limit` bytes."""
    if len(text) > limit:
        return True
    return not text.isascii() and len(text) * 4 > limit and Attachment(text).size > limit


# Each of these makes JSON of a field's value, or raises; `attached` is added to.


def encode_integer(value, _attached):
    if type(value) is not int or not 0 <= value <= INTEGER_MAX:
        raise ProtocolError("not an integer that may be sent")
    return str(value)


def encode_string(value, _attached):
    if type(value) is not str or len(value.encode()) > STRING_MAX:
        raise ProtocolError("not a string that may be sent")
    return quote(value)


def encode_attached(value, attached):
    attached.append(Attachment(value))
    return str(len(attached) - 1)


def encode_text(value, attached):
    if type(value) is not str:
        raise ProtocolError("not a text")
    if len(value) <= TEXT_INLINE_MAX:
        if value.isascii():
            return quote(value)
        try:
            if len(value.encode()) <= TEXT_INLINE_MAX:
                return quote(value)
        except UnicodeEncodeError:
            pass
    return encode_attached(value, attached)


def encode_texts(values, attached):
    room, items = INLINE_TOTAL, []
    for value in values:
        if value is None:
            item = "null"
        elif room > 0:
            item = encode_text(value, attached)
        else:
            item = encode_attached(value, attached)
        room -= len(item)
        items.append(item)
    return encode_items(items)


def encode_raw(values, attached):
    """Contexts: whatever their size, their bytes count."""
    return encode_items(
        ["null" if value is None else encode_attached(value, attached) for value in values]
    )


def encode_boolean(value, attached):
    if type(value) is not bool:
        raise ProtocolError("neither true nor false")
    return "true" if value else "false"


def encode_strings(values, attached):
    return encode_items([encode_string(value, attached) for value in values])


def encode_integers(values, attached):
    return encode_items([encode_integer(value, attached) for value in values])


def encode_strings_null(values, attached):
    return encode_items(
        ["null" if value is None else encode_string(value, attached) for value in values]
    )


def encode_items(items):
    if len(items) > ELEMENTS_MAX:
        raise ProtocolError("too many in one message")
    return "[" + ",".join(items) + "]"


def or_null(encode):
    return lambda value, attached: "null" if value is None else encode(value, attached)


ENCODERS = {
    "BOOLEAN": encode_boolean,
    "INTEGER": encode_integer,
    "INTEGER_NULL": or_null(encode_integer),
    "INTEGERS": encode_integers,
    "STRING": encode_string,
    "STRING_NULL": or_null(encode_string),
    "STRINGS": encode_strings,
    "STRINGS_NULL": encode_strings_null,
    "TEXT": encode_text,
    "TEXT_NULL": or_null(encode_text),
    "TEXTS": encode_texts,
}

# Each of these gives what a field of a message means, or raises; `attached` are texts.


def decode_integer(value, _attached):
    if type(value) is not int or not 0 <= value <= INTEGER_MAX:
        raise ProtocolError("not an integer")
    return value


def decode_string(value, _attached):
    if type(value) is not str:
        raise ProtocolError("not a string")
    return value


def decode_text(value, attached):
    if type(value) is str:
        return value
    if type(value) is int and 0 <= value < len(attached):
        return attached[value]
    raise ProtocolError("not a text")


def nullable(decode):
    return lambda value, attached: None if value is None else decode(value, attached)


def list_of(decode):
    def decode_list(values, attached):
        if type(values) is not list:
            raise ProtocolError("not an array")
        return [decode(value, attached) for value in values]

    return decode_list


decode_sizes = list_of(decode_integer)

DECODERS = {
    "INTEGER": decode_integer,
    "INTEGERS": decode_sizes,
    "STRING": decode_string,
    "STRINGS": list_of(decode_string),
    "STRINGS_NULL": list_of(nullable(decode_string)),
    "TEXT": decode_text,
    "TEXTS": list_of(nullable(decode_text)),
}

SENT = {
    name: [
        (f',"{key}":', key, encode_raw if key == "contexts" else ENCODERS[kind])
        for key, kind in fields.items()
    ]
    for name, (sender, fields) in MESSAGES.items()
    if sender == "worker"
}
RECEIVED = {
    name: [(key, DECODERS[kind]) for key, kind in fields.items()]
    for name, (sender, fields) in MESSAGES.items()
    if sender == "supervisor"
}


def encode(name, fields):
    """The frame, and the attachments that follow it."""
    attached = []
    if len(fields) != len(SENT[name]):
        raise ProtocolError("not the fields of " + name)
    parts = ['{"type":"', name, '"']
    for prefix, key, encode_field in SENT[name]:
        parts.append(prefix)
        parts.append(encode_field(fields[key], attached))
    if attached:
        if len(attached) > ATTACHMENTS_MAX:
            raise ProtocolError("too many attachments")
        if sum(a.size + ATTACHMENT_WEIGHT for a in attached) > ATTACHED_MAX:
            raise ProtocolError(f"more than {ATTACHED_MAX >> 20} MiB of text in one call")
        parts.append(f',"attachments":[{",".join(str(a.size) for a in attached)}]')
    parts.append("}")
    body = "".join(parts).encode("ascii")
    if len(body) > FRAME_MAX:
        raise ProtocolError("frame too large")
    return len(body).to_bytes(4, "big") + body, attached


def check(message, attached):
    """The message with its texts in place, if the supervisor may say it."""
    fields = RECEIVED.get(message.get("type"))
    if fields is None or len(message) != len(fields) + 1:
        raise ProtocolError("no such message, or not its fields")
    for key, decode in fields:
        message[key] = decode(message[key], attached)
    return message


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
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)
        self._lead = threading.Lock()
        self._writing = threading.Lock()
        self._waiters = {}
        self._commands = []
        self._numbers = itertools.count(1)
        self._inside = set()  # threads in a section of ours

    def send(self, name, fields):
        frame, attached = encode(name, fields)
        section = self._enter()
        try:
            self._write(frame, attached)
        finally:
            self._leave(section)

    def call(self, name, fields):
        """Sends a call and waits for its reply."""
        fields["id"] = number = next(self._numbers)
        frame, attached = encode(name, fields)
        waiter = Waiter()
        section = self._enter()
        try:
            self._waiters[number] = waiter
            self._write(frame, attached)
            self._await(waiter)
        finally:
            self._waiters.pop(number, None)
            self._leave(section)
        return waiter.message

    def command(self):
        """Waits for the next message that is no reply; for the main thread, outside blocks."""
        waiter = Waiter()
        self._waiters[COMMANDS] = waiter
        if not self._commands:
            self._await(waiter)
        self._waiters.pop(COMMANDS, None)
        return self._commands.pop(0)

    def _enter(self):
        # A destructor or a signal handler that struck in one of our own sections.
        if threading.get_ident() in self._inside:
            raise RuntimeError("this call came in the midst of another one of the same thread")
        section = self._interrupts.enter()
        self._inside.add(threading.get_ident())
        return section

    def _leave(self, section):
        self._inside.discard(threading.get_ident())
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
        if not self._unread:
            self._interrupts.wait(self._poll.poll)
        try:
            size = int.from_bytes(self._take(4), "big")
            if size > FRAME_MAX:
                raise ProtocolError("frame too large")
            message, _end = parse(self._take(size).decode("utf-8"))
            sizes = decode_sizes(message.pop("attachments", []), ())
            attached = [self._take(size).decode("utf-8", "surrogateescape") for size in sizes]
            return check(message, attached)
        except BaseException as error:  # what follows cannot be understood
            end(EXIT_VIOLATION, f"cannot read from the supervisor: {error!r}")

    def _take(self, size):
        data = self._unread
        if len(data) < size:
            parts, missing = [data], size - len(data)
            while missing > 0:
                part = os.read(self._in, min(READ_SIZE, max(READ_AHEAD, missing)))
                if not part:
                    end(0)
                parts.append(part)
                missing -= len(part)
            data = b"".join(parts)
        self._unread = data[size:]
        return data[:size]

    def _write(self, frame, attached):
        with self._writing:
            try:
                self._write_all(frame)
                for attachment in attached:
                    for part in attachment.slices():
                        self._write_all(part)
            except BaseException as error:  # half a frame: nothing can follow it
                end(EXIT_VIOLATION, f"cannot write to the supervisor: {error!r}")

    def _write_all(self, data):
        written = os.write(self._out, data)
        while written < len(data):
            written += os.write(self._out, memoryview(data)[written:])


def end(status, message=None):
    """Ends the process at once: the supervisor went away, or nothing can be understood."""
    if message:
        try:
            os.write(2, message.encode("utf-8", "replace") + b"\n")
        except OSError:
            pass
    os._exit(status)

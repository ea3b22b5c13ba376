"""sys.stdout, sys.stderr and sys.stdin of user code.

An Output is one object for the whole life of a worker, so what threads and
logging handlers hold on to stays good. It keeps the first and the last
characters of what a block printed; memory stays bounded however much that is.
"""

import codecs
import io
import threading

GATHER = 256 << 10   # roughly the bytes that wait before they are folded into head and tail
PART_COST = 64       # of one waiting string, beside its characters
PART_LONG = 16 << 10
LIVE_PIECE = 64 << 10  # characters: as JSON they are less than a call's arguments may have


def clean(text):
    """`text` with lone surrogates escaped: it can be UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def omission(count):
    return f"\n... [{count} characters omitted] ...\n"


def cut(text, limit):
    """Head and tail of `text`, together `limit` characters, and a note between them."""
    kept = HeadAndTail(limit)
    kept.add(text)
    return kept.text()


class HeadAndTail:
    def __init__(self, limit):
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head = self._tail = ""
        self._omitted = 0

    def add(self, text):
        taken = min(len(text), self._head_room - len(self._head))
        if taken:
            self._head += text[:taken]
        rest = len(text) - taken
        if rest >= self._tail_room:
            self._omitted += len(self._tail) + rest - self._tail_room
            self._tail = text[len(text) - self._tail_room:]
        elif rest:
            tail = self._tail + text[taken:]
            surplus = max(0, len(tail) - self._tail_room)
            self._omitted += surplus
            self._tail = tail[surplus:]

    def skip(self, count):
        self._omitted += count

    def text(self):
        return self._head + (omission(self._omitted) if self._omitted else "") + self._tail


class Output(io.TextIOBase):
    encoding = "utf-8"
    errors = "backslashreplace"
    mode = "w"

    def __init__(self, name, interrupts):
        super().__init__()
        self.name = name
        self.buffer = Bytes(self)
        self._interrupts = interrupts
        self._folding = threading.Lock()
        self._parts = []
        self._folded = False  # something that is in no part was printed since take()
        self._room = GATHER
        self._limit = 0
        self._kept = None  # the HeadAndTail of what was folded, where something was
        self._live = None  # told of lines as they come: a Live

    def set_limit(self, limit):
        self._limit = limit

    def write(self, text):
        if type(text) is not str:
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            text = str.__str__(text)
        self._parts.append(text)
        # Threads may lose each other's subtractions; that only folds later.
        self._room -= len(text) + PART_COST
        if self._room < 0:
            self._fold(blocking=False)
        if self._live:
            self._live.add(text)
        return len(text)

    def go_live(self, tell):
        """From now on tell() is called with what is printed, a line at a time."""
        self._live = Live(tell, self._limit, self._interrupts)

    def flush(self):
        if self._live:
            self._live.tell_all()

    def skip(self, count):
        """Counts characters as left out; at least as many as are kept stand on both sides."""
        self._fold(blocking=True)
        self._kept.skip(count)

    def take(self):
        """The output since the last call, cut."""
        if self._live:
            self._live.begin()
        if not self._parts and not self._folded:
            return ""
        with self._folding:
            parts = self._take_parts()
            if self._folded:
                self._keep(parts)
                kept, self._kept, self._folded = self._kept, None, False
                return clean(kept.text())
        text = "".join(parts)
        return clean(text if len(text) <= self._limit else cut(text, self._limit))

    def _take_parts(self):
        self._room = GATHER
        parts = self._parts[:]
        del self._parts[:len(parts)]
        return parts

    def _fold(self, blocking):
        section = self._interrupts.enter()
        try:
            if self._folding.acquire(blocking):
                try:
                    self._folded = True
                    self._keep(self._take_parts())
                finally:
                    self._folding.release()
        finally:
            self._interrupts.leave(section)

    def _keep(self, parts):
        if self._kept is None:
            self._kept = HeadAndTail(self._limit)
        short = []
        for part in parts:
            if len(part) < PART_LONG:
                short.append(part)
            else:
                self._kept.add("".join(short))
                short.clear()
                self._kept.add(part)
        self._kept.add("".join(short))

    def writable(self):
        return True

    def close(self):
        """Nothing: what is printed later is still wanted."""

    def reconfigure(self, **_options):
        """Nothing: it takes every character there is."""


class Live:
    """Tells what a block prints while it runs: so many characters of it as are kept of a block."""

    def __init__(self, tell, limit, interrupts):
        self._tell, self._limit, self._interrupts = tell, limit, interrupts
        self._telling = threading.Lock()
        self._parts = []
        self.begin()

    def begin(self):
        """Another block."""
        self._room = self._limit
        self._waiting = 0  # roughly the characters of the parts

    def add(self, text):
        if self._room <= 0:
            return
        self._parts.append(text)
        self._waiting += len(text) + PART_COST
        if "\n" in text or self._waiting > GATHER:
            self.tell_all()

    def tell_all(self):
        """Threads that print meanwhile do not wait: the one that tells, or the next line, has
        their words, too."""
        section = self._interrupts.enter()
        try:
            while self._parts and self._telling.acquire(False):
                try:
                    self._tell_parts()
                finally:
                    self._telling.release()
        except RuntimeError:
            pass  # a destructor prints in the midst of a call of the same thread
        finally:
            self._interrupts.leave(section)

    def _tell_parts(self):
        text = clean("".join(self._take()))
        text, self._room = text[:max(0, self._room)], self._room - len(text)
        for start in range(0, len(text), LIVE_PIECE):
            self._tell(text[start:start + LIVE_PIECE])

    def _take(self):
        self._waiting = 0
        parts = self._parts[:]
        del self._parts[:len(parts)]
        return parts


class Bytes(io.RawIOBase):
    """sys.stdout.buffer"""

    def __init__(self, output):
        super().__init__()
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data):
        self._output.write(self._decoder.decode(bytes(data)))
        return len(data)

    def writable(self):
        return True

    def close(self):
        """Nothing, as above."""


class NoInput(io.TextIOBase):
    """sys.stdin: nobody is there to answer."""

    name = "<stdin>"
    encoding = "utf-8"
    mode = "r"

    def _refuse(self, *_arguments):
        raise EOFError(
            "there is no standard input here: nobody can answer a question. "
            "What you were given is in the variable `context`."
        )

    read = readline = readlines = __next__ = _refuse

    def readable(self):
        return True

    def close(self):
        """Nothing, as above."""

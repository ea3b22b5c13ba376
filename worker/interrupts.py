"""When a signal's Python handler may raise: in user code, never inside the channel.

An exception out of a signal handler can strike the main thread between any
two bytecodes. Struck while a frame is half written, the worker would be lost.
So the channel works in sections: what arrives inside one waits for its end.
A section may wait for the other side in a window, in which signals strike at
once, and then it is told by the exception that nothing was taken.

A block is interrupted once: SIGINT raises KeyboardInterrupt in it and does
nothing after that, nor between blocks. Handlers that user code installs with
signal.signal() go the same way, but strike as often as they like; so the code
that ends a block is spared from them by name.
"""

import functools
import signal
import threading

_install = signal.signal
_thread = threading.get_ident


class Interrupts:
    def __init__(self):
        self._main = _thread()
        self._running = False  # user code runs on the main thread
        self._spent = False    # this block was interrupted already
        self._depth = 0        # of sections
        self._window = False
        self._waiting = []     # what arrived in a section
        self._spared = {Interrupts.end.__code__}
        ours = self._on_interrupt, self._on_signal, self._arrive, self._is_spared
        self._handlers = {function.__code__ for function in ours}

    def install(self):
        """For the rest of the process's life; from the main thread."""
        _install(signal.SIGINT, self._on_interrupt)
        signal.signal = self._signal

    def spare(self, function):
        """An interrupt while this very function runs, not one that it called, does nothing."""
        self._spared.add(function.__code__)

    def begin(self):
        """User code runs from here on the main thread; may raise at once."""
        self._spent = False
        self._waiting.clear()
        self._running = True

    def end(self):
        self._running = False
        self._waiting.clear()

    def enter(self):
        """Begins a section; its result is for leave(). Other threads get no signals."""
        if _thread() != self._main:
            return False
        self._depth += 1
        return True

    def leave(self, entered):
        if entered:
            self._depth -= 1
            if self._waiting and not self._depth:
                self._run_waiting()

    def can_strike(self):
        """Whether wait() is one that signals end."""
        return self._running and self._depth == 1 and _thread() == self._main

    def wait(self, blocking):
        """Calls blocking() in a window of the section; what it did is unknown if this raises."""
        if not self.can_strike():
            blocking()
            return
        self._window = True
        if self._waiting:
            self._window = False
            self._run_waiting()
            self._window = True
        blocking()
        self._window = False

    def _run_waiting(self):
        while self._waiting:
            self._waiting.pop(0)()

    def _arrive(self, action, frame):
        if not self._running or self._is_spared(frame):
            return
        if self._depth and not self._window:
            self._waiting.append(action)
            return
        window, self._window = self._window, False  # closed while an exception leaves it
        action()
        self._window = window

    def _is_spared(self, frame):
        while frame and frame.f_code in self._handlers:  # one signal in the midst of another
            frame = frame.f_back
        return frame is not None and frame.f_code in self._spared

    def _on_interrupt(self, _number, frame):
        self._arrive(self._interrupt, frame)

    def _interrupt(self):
        if self._running and not self._spent:
            self._spent = True
            raise KeyboardInterrupt("this block was interrupted: its time was up")

    def _signal(self, number, handler):
        """signal.signal() for user code; SIGINT stays ours, and SIGSEGV: texts are read by it."""
        if number == signal.SIGINT:
            return signal.default_int_handler
        if number == signal.SIGSEGV:
            return signal.SIG_DFL
        if not callable(handler) or isinstance(handler, signal.Handlers):
            return _install(number, handler)
        return _install(number, functools.partial(self._on_signal, handler))

    def _on_signal(self, handler, number, frame):
        self._arrive(functools.partial(handler, number, frame), frame)

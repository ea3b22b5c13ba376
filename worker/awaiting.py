"""Blocks that await, and calls of models while an event loop goes on.

Our functions wait for their answer, as plain code needs it. Where a block
awaits one (block_tree.py finds where), it is called in a thread and the loop
goes on; so what asyncio gathers is asked at the same time.
"""

import builtins
import collections
import functools
import sys
import threading
import types

from block_tree import AWAITED

THREADS_MAX = 100  # of calls at the same time; a worker may have 256
FUNCTIONS = types.FunctionType, types.MethodType
# Those of ours that wait for a model; the others have their result at once.
WAITING = ("llm_query", "batch_llm_query", "rlm_query", "batch_rlm_query", "race_query",
           "run_plan", "sub_llm")
# Their names in libraries whose calls are always awaited.
OTHER_NAMES = {
    "llm_query": "allm_query llm_query_async",
    "sub_llm": "async_llm_query",  # whose second argument is text
    "batch_llm_query": "async_batch_llm_query async_llm_query_batched batch_llm_query_async "
                       "llm_query_batched_async",
    "rlm_query": "arlm_query async_rlm_query rlm_query_async",
    "batch_rlm_query": "async_batch_rlm_query async_rlm_query_batched batch_rlm_query_async "
                       "rlm_query_batched_async",
}


def running_loop():
    asyncio = sys.modules.get("asyncio")
    return asyncio._get_running_loop() if asyncio else None


def end_loops():
    """Leaves no loop to the next block: neither one that runs nor one that was closed."""
    asyncio = sys.modules.get("asyncio")
    if asyncio:
        asyncio._set_running_loop(None)
        if sys.version_info < (3, 14):  # since then none is kept for the thread
            asyncio.set_event_loop_policy(None)


def run(coroutine, notes):
    """Runs a block's coroutine to its end, and ends what it started and did not await."""
    import asyncio

    places = []

    async def run_all():
        try:
            return await coroutine
        except asyncio.CancelledError as cancelled:
            places.append(cancelled.__traceback__)
            forget_threads(asyncio.get_running_loop())
            raise
        finally:
            left = len(asyncio.all_tasks()) - 1
            if left > 0:
                notes.append(
                    f"not done at the end of the block, so cancelled: {left} "
                    f"task{'s' if left > 1 else ''}. Await a task in the block that starts it"
                )

    try:
        asyncio.run(run_all())
    except KeyboardInterrupt as interrupt:
        if not places:
            raise
        # It struck the loop; what the block was waiting for is told.
        raise interrupt.with_traceback(places[0])


def forget_threads(loop):
    """Of an interrupted block: asyncio.run() would wait for them, with nothing to interrupt it."""
    executor = getattr(loop, "_default_executor", None)
    if executor is not None:
        executor.shutdown(wait=False)
        loop._default_executor = None


class Awaited:
    """__awaited__(): gives a function of ours as one whose result can be awaited."""

    def __init__(self, table, interrupts):
        """table: our names, each with its function; more of ours stand beside Python's builtins."""
        beside = {
            name: value for name, value in vars(builtins).items()
            if isinstance(value, FUNCTIONS) and value.__module__ == "__main__"
        }
        ours = {**beside, **table}
        self._functions = {
            function for function in ours.values() if isinstance(function, FUNCTIONS)
        }
        self._waiting = {ours[name] for name in WAITING if name in ours}
        self._calls = Calls(interrupts)
        self._plain = {}  # functions of other names -> those that they are called for

    def add(self, theirs):
        """The host's functions by their names, which have to be waited for too."""
        self._functions.update(theirs.values())
        self._waiting.update(theirs.values())

    def install(self, table):
        """Puts this where compiled blocks find it, and the names of other libraries beside it."""
        setattr(builtins, AWAITED, self)
        for name, others in OTHER_NAMES.items():
            function = table[name] if name in table else getattr(builtins, name)
            for other in others.split():
                if not hasattr(builtins, other):
                    setattr(builtins, other, self._make_other(other, function))

    def _make_other(self, name, function):
        awaited = self(function)

        @functools.wraps(function)
        def other(*arguments, **options):
            return (awaited if running_loop() else function)(*arguments, **options)

        other.__name__ = other.__qualname__ = name
        self._plain[other] = function
        return other

    def is_ours(self, function):
        return isinstance(function, FUNCTIONS) and (
            function in self._functions or function in self._plain
        )

    def __call__(self, function):
        if not self.is_ours(function):
            return function  # a variable of the user's that has this name now
        function = self._plain.get(function, function)

        def start(*arguments, **options):
            """Starts the call at once where a loop runs, else where it is awaited."""
            if function not in self._waiting:
                coroutine = ready(function(*arguments, **options))
            else:
                loop = running_loop()
                begun = loop and self._calls.start(loop, function, arguments, options)
                coroutine = self._answer(begun, function, arguments, options)
            coroutine.__name__ = coroutine.__qualname__ = function.__name__
            return coroutine

        return start

    async def _answer(self, begun, function, arguments, options):
        if begun is None:
            begun = self._calls.start(running_loop(), function, arguments, options)
        return await begun


async def ready(value):
    return value


class Calls:
    """Calls that wait in threads of their own; a thread ends when no call is left for it."""

    def __init__(self, interrupts):
        self._interrupts = interrupts
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = collections.deque()

    def start(self, loop, function, arguments, options):
        """A future of the loop for function(*arguments, **options)."""
        future = loop.create_future()
        section = self._interrupts.enter()
        try:
            with self._lock:
                self._waiting.append((loop, future, function, arguments, options))
                more = self._threads < THREADS_MAX
                self._threads += more
            if more:
                self._start_thread()
        finally:
            self._interrupts.leave(section)
        return future

    def _start_thread(self):
        try:
            threading.Thread(target=self._work, name="calls", daemon=True).start()
        except RuntimeError:  # no more threads: those that there are do it, or this one
            with self._lock:
                self._threads -= 1
                alone = not self._threads
                self._threads += alone
            if alone:
                self._work()

    def _work(self):
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                loop, future, function, arguments, options = self._waiting.popleft()
            if loop.is_closed() or future.cancelled():
                continue
            result = error = None
            try:
                result = function(*arguments, **options)
            except BaseException as failure:
                error = failure
            try:
                loop.call_soon_threadsafe(settle, future, result, error)
            except RuntimeError:
                pass  # the loop is closed: nobody waits for it any more
            del loop, future, function, arguments, options, result, error


def settle(future, result, error):
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

"""Functions that modules want called in the child of a fork: os.register_at_fork().

Workers are forked without Python's own PyOS_AfterFork_Child(): it puts right what other threads
may have held, and the template has none. Of what modules registered, the same is left out; the
rest is called: `random` takes a new seed. So a worker writes into 100 pages less.
"""

import os
import sys

# They renew their locks and lists of threads, nothing else.
OF_THREADS = frozenset(["threading", "logging", "concurrent.futures.thread"])


INIT = 1  # what the kernel calls a worker with a pid namespace of its own


class ForkHooks:
    def __init__(self):
        self._functions = []
        self._register = os.register_at_fork
        self._over = False

    def gather(self):
        """Hears from now on what is registered."""
        os.register_at_fork = self._add

    def end(self):
        """No module is loaded any more: what run() need not do in each child, 50 pages less."""
        import threading

        os.register_at_fork = self._register
        threading.main_thread()._native_id = INIT
        self._functions = [directly(function) for function in self._functions]
        self._over = True

    def _add(self, *, before=None, after_in_child=None, after_in_parent=None):
        named = {"before": before, "after_in_child": after_in_child,
                 "after_in_parent": after_in_parent}
        self._register(**{name: value for name, value in named.items() if value is not None})
        if sys._getframe(1).f_globals.get("__name__") not in OF_THREADS:
            # The one may release what the other takes.
            self._functions.extend(each for each in (before, after_in_child) if each is not None)

    def run(self, pid_namespace):
        """In the child, once; whether it has one. A function that fails is passed over, as
        Python does."""
        if not self._over or not pid_namespace:
            import threading

            os.register_at_fork = self._register
            # The template's is the number of a process outside, and of no thread in here.
            threading.main_thread()._set_native_id()
        for function in self._functions:
            try:
                function()
            except Exception:
                sys.excepthook(*sys.exc_info())


def directly(function):
    """The C function that Random.seed() calls at last, where it would do nothing else."""
    import random

    generator = getattr(function, "__self__", None)
    seed = getattr(type(generator), "seed", None)
    if seed is random.Random.seed and function == generator.seed and generator.gauss_next is None:
        return super(random.Random, generator).seed
    return function

"""A worker of a template that was warmed up looks, from inside, as one that was not."""

import json
import os
import signal
import unittest

from supervisor import Worker

# All that code can reach from modules, the interpreter's own state, and what lies in memory.
LOOK = '''
def look():
    import gc, json, signal, sys, types
    found, seen = {}, set()
    plain = str, bytes, int, float, complex, bool, type(None), type(Ellipsis), range, slice

    def name_of(value):
        """Without what each process has its own of: addresses, which are idents too."""
        return "#" if type(value) is int and value >> 32 else repr(value)

    def describe(path, value):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, plain):
            found[path] = f"{kind} {name_of(value)}"[:300]
            return
        found[path] = kind
        if id(value) in seen:
            return
        seen.add(id(value))
        kept.append(value)
        if isinstance(value, (dict, types.MappingProxyType)):
            found[path] += f" {len(value)}"
            for key, each in list(value.items()):
                if isinstance(key, plain):
                    describe(f"{path}[{name_of(key)}]", each)
        elif isinstance(value, (list, tuple)):
            found[path] += f" {len(value)}"
            for place, each in enumerate(list(value)):
                describe(f"{path}[{place}]", each)
        elif isinstance(value, (set, frozenset)):
            found[path] += f" {len(value)}"
        elif isinstance(value, types.FunctionType):
            for name in ("__defaults__", "__kwdefaults__", "__dict__", "__closure__"):
                describe(f"{path}.{name}", getattr(value, name))
        elif isinstance(value, types.CellType):
            describe(f"{path}.cell", value.cell_contents)
        elif isinstance(value, types.MethodType):
            describe(f"{path}.__self__", value.__self__)
            describe(f"{path}.__func__", value.__func__)
        elif hasattr(value, "cache_info"):
            found[path] += f" {value.cache_info()}"
        elif kind == "itertools.count":
            found[path] += f" {value!r}"
        elif isinstance(value, (types.MethodWrapperType, types.BuiltinMethodType)):
            describe(f"{path}.__self__", value.__self__)
        else:
            try:
                describe(f"{path}.__dict__", vars(value))
            except TypeError:
                pass

    kept = []
    for name, module in sorted(sys.modules.items()):
        describe(name, module)
    describe("handlers", [repr(signal.getsignal(n)).split(" at ")[0] for n in range(1, 65)])
    describe("filters", __import__("warnings").filters)
    kept.clear()
    gc.collect()
    kinds = {}
    for each in gc.get_objects():
        kind = f"{type(each).__module__}.{type(each).__qualname__}"
        kinds[kind] = kinds.get(kind, 0) + 1
    return found, kinds
'''
def state(warm):
    """The modules that its code finds, and how many objects there are of each type."""
    with Worker(warm=warm) as worker:
        worker.run(LOOK)
        done = worker.run("import json\nFINAL(json.dumps(look()))")
        assert done["error"] is None, done["error"]
        found, kinds = json.loads(done["answer"])
        fds = sorted(os.listdir(f"/proc/{worker.process.pid}/fd"))
        threads = os.listdir(f"/proc/{worker.process.pid}/task")
        return found, kinds, fds, len(threads)


def differences(one, other):
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


class Warm(unittest.TestCase):
    def test_nothing_is_left_of_it(self):
        """No variable, module, counter, cache, object, descriptor or thread more than without."""
        (cold, kinds, *more), (again, *_), (warm, *others) = map(state, (False, False, True))
        self.assertGreater(len(cold), 10000)
        of_any_two = differences(cold, again)  # a hash's seed, and what is in its order
        self.assertLess(len(of_any_two), 100, of_any_two)
        told = {path for path in differences(cold, warm) if "orig_argv" not in path}
        self.assertEqual({path: (cold.get(path), warm.get(path)) for path in told - of_any_two}, {})
        self.assertEqual(others, [kinds, *more])

    def test_whatever_becomes_of_ctrl_c_by_then(self):
        """nohup and CI services start programs with SIGINT ignored: that is how it stays."""
        handlers = []
        for disposition in (signal.SIG_DFL, signal.SIG_IGN):
            before = signal.signal(signal.SIGINT, disposition)
            try:
                cold, warm = (state(warm)[0] for warm in (False, True))
            finally:
                signal.signal(signal.SIGINT, before)
            key = f"handlers[{signal.SIGINT - 1}]"
            self.assertEqual(cold[key], warm[key])
            handlers.append(warm[key])
        self.assertEqual(len(set(handlers)), 1, "in a worker it is the worker's own")


if __name__ == "__main__":
    unittest.main()

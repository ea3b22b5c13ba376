"""Workers write into few of the pages that they share with their template."""

import os
import random
import resource
import subprocess
import sys
import threading
import time
import unittest

import patience

sys.path.insert(0, os.path.join(os.environ["RLMD_BUILD_ROOT"], "worker"))
import _rlmd  # noqa: E402
import fork_hooks  # noqa: E402

HOLES = 4000  # more than a pool has, so that they are in many
PAGE = 4096


def pages_of(objects):
    return {id(each) // PAGE for each in objects}


def make_holes():
    """As a program leaves them that has loaded much: of all sizes, all over the heap."""
    kept = [bytes(size) for _ in range(HOLES) for size in (40, 150, 400, 700, 2000)]
    del kept[::3]
    return kept


def work():
    """New objects of all sizes; how many pages that takes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [bytes(size) for size in range(16, 4000, 16)]
    bytearray(64 << 10)
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return pages if kept else 0


def pages_of_a_fork():
    """That its work takes, in a child."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.write(sending, b"%d" % work())
        os._exit(0)
    os.waitpid(child, 0)
    try:
        return int(os.read(receiving, 100))
    finally:
        os.close(receiving)
        os.close(sending)


class Tidy(unittest.TestCase):
    def test_a_fork_writes_into_fewer_pages_after_it(self):
        holes = make_holes()
        before = pages_of_a_fork()
        _rlmd.tidy()
        after = pages_of_a_fork()
        self.assertLess(after, before, len(holes))

    def test_once_more_it_takes_little_memory(self):
        def blocks():
            return sys.getallocatedblocks()

        _rlmd.tidy()
        first = blocks()
        for _ in range(20):
            _rlmd.tidy()
        self.assertLess(blocks() - first, 20 * 32 * 8)  # of each size a few


    def check_together(self, size, count):
        """Of so many objects every twentieth is freed; others are made before and after."""
        old = [bytes(size) for _ in range(count)]
        used = pages_of(old)
        del old[::20]
        first = [bytes(size) for _ in range(count // 40)]
        self.assertGreater(len(pages_of(first) & used), count // 80)  # they lie in the holes
        _rlmd.tidy()
        last = [bytes(size) for _ in range(count // 40)]
        self.assertLessEqual(len(pages_of(last) & used), 1)

    def test_what_is_made_later_lies_together(self):
        self.check_together(100, 8000)
        self.check_together(3000, 800)


class Agree(unittest.TestCase):
    def test_the_same_objects(self):
        one, other = ["one"], ["other"]
        found = {"a": one, "b": other, "c": 3}
        self.assertIs(_rlmd.agree(found, {}), True)
        self.assertIs(_rlmd.agree(found, {"b": other, "a": one}), True)
        self.assertIs(_rlmd.agree(found, {"a": ["one"]}), False)  # equal is not the same
        self.assertIs(_rlmd.agree(found, {"d": one}), False)
        self.assertIs(_rlmd.agree({}, {"a": None}), False)

    def test_what_is_no_dict(self):
        for given in (([], {}), ({}, None), ({},), ({}, {}, {})):
            with self.assertRaises(TypeError):
                _rlmd.agree(*given)

    def test_a_name_that_fails(self):
        class Name(str):
            __hash__ = str.__hash__

            def __eq__(self, other):
                raise ValueError("no")

        wanted = {Name("a"): 1}
        with self.assertRaises(ValueError):
            _rlmd.agree({"a": 1, Name("b"): 2}, wanted)

    def test_no_reference_is_counted(self):
        value = object()
        found, wanted = {"a": value}, {"a": value}
        before = sys.getrefcount(value)
        for _ in range(100):
            _rlmd.agree(found, wanted)
        self.assertEqual(sys.getrefcount(value), before)


class Merge(unittest.TestCase):
    def test_it_ends_and_changes_nothing(self):
        """In a child, whose memory is nobody else's."""
        receiving, sending = os.pipe()
        if not os.fork():
            values = [random.Random(n).randbytes(3000) for n in range(2000)]
            made = time.monotonic()
            while _rlmd.merge() and time.monotonic() - made < patience.hung():
                pass
            same = all(value == random.Random(n).randbytes(3000) for n, value in enumerate(values))
            os.write(sending, repr((same, _rlmd.merge())).encode())
            os._exit(0)
        os.wait()
        os.close(sending)
        with open(receiving) as file:
            self.assertEqual(file.read(), "(True, False)")


# Chunks of the interpreter's stack come and go between arenas, so that these end anywhere.
STACKS_AND_ARENAS = """
import sys
sys.path.insert(0, sys.argv[1])
import _rlmd
_rlmd.use_huge_pages()
def deep(n):
    return n and deep(n - 1)
kept = []
for i in range(600):
    deep(200 + i % 50)
    kept.append([str(n) * 3 for n in range(2000)])
print(all(text == str(n) * 3 for texts in kept for n, text in enumerate(texts)))
"""


class Arenas(unittest.TestCase):
    def test_beside_stacks(self):
        """Python takes chunks of its stack from the allocator of arenas, since 3.11."""
        command = [sys.executable, "-c", STACKS_AND_ARENAS, os.path.dirname(_rlmd.__file__)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)


class Hooks(unittest.TestCase):
    """The hooks of modules for a child of a fork: as Python runs them, with less around it."""

    def run_in_a_child(self, prepare, *functions, over=True, pid_namespace=True):
        """The state after prepare(), and after the hooks: two texts."""
        def child():
            hooks = fork_hooks.ForkHooks()
            hooks.gather()
            for function in functions:
                os.register_at_fork(after_in_child=function)
            before = prepare()
            if over:
                hooks.end()
            hooks.run(pid_namespace)
            own = threading.main_thread().native_id == threading.get_native_id()
            return before, prepare(), own, os.register_at_fork == hooks._register

        receiving, sending = os.pipe()
        if not os.fork():
            os.write(sending, repr(child()).encode())
            os._exit(0)
        os.wait()
        os.close(sending)
        with open(receiving) as file:
            return eval(file.read())

    def test_random_numbers_start_anew(self):
        for over in (True, False):
            generator = random.Random(5)
            before, after, own, restored = self.run_in_a_child(
                lambda: generator.getstate(), generator.seed, over=over)
            self.assertNotEqual(before, after)
            self.assertEqual((own, restored), (not over, True))

    def test_half_a_pair_of_normal_numbers_is_not_told_twice(self):
        generator = random.Random(5)
        generator.gauss(0, 1)
        before, after, *_ = self.run_in_a_child(lambda: generator.gauss_next, generator.seed)
        self.assertIsNotNone(before)
        self.assertIsNone(after)

    def test_a_seed_of_ones_own_is_called(self):
        seeds = []

        class Own(random.Random):
            def seed(self, *_given):
                seeds.append("own")

        own = Own()
        before, after, *_ = self.run_in_a_child(lambda: list(seeds), own.seed, seeds.clear,
                                                lambda: seeds.append("last"))
        self.assertEqual((before, after), (["own"], ["last"]))

    def test_the_main_thread_without_a_namespace(self):
        self.assertIs(self.run_in_a_child(lambda: None, pid_namespace=False)[2], True)


if __name__ == "__main__":
    unittest.main()

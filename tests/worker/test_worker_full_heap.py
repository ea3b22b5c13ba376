"""What is made after a heap was filled lies together, not in the holes among older objects."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["RLMD_BUILD_ROOT"], "worker"))

import full_heap  # noqa: E402

PAGE = 4096


def pages_of(objects):
    return {id(each) // PAGE for each in objects}


class FullHeap(unittest.TestCase):
    def check(self, size, count):
        """Of so many objects every twentieth is freed; others are made before and after."""
        old = [bytes(size) for _ in range(count)]
        used = pages_of(old)
        del old[::20]
        first = [bytes(size) for _ in range(count // 40)]
        self.assertGreater(len(pages_of(first) & used), count // 80)  # they lie in the holes
        full_heap.fill()
        last = [bytes(size) for _ in range(count // 40)]
        self.assertLessEqual(len(pages_of(last) & used), 1)

    def test_small(self):
        self.check(100, 8000)

    def test_large(self):
        self.check(3000, 800)

    def test_often(self):
        """What is full already takes little more."""
        full_heap.fill()
        before = len(full_heap._kept)
        full_heap.fill()
        self.assertLess(len(full_heap._kept) - before, 2 * full_heap.SMALL_MOST)


if __name__ == "__main__":
    unittest.main()

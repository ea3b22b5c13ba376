"""reserve.py: what a session that has used up its memory can still do."""

import subprocess
import sys
import unittest
from pathlib import Path

WORKER = Path(__file__).resolve().parents[2] / "worker"

# Within a limit of address space, which is what a worker has.
LIMITED = """
import resource, sys
sys.path.insert(0, {worker!r})
from reserve import SIZE, Reserve
reserve = Reserve()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 3 * SIZE, resource.RLIM_INFINITY))
{code}
"""


class ReserveTest(unittest.TestCase):
    def limited(self, code):
        done = subprocess.run([sys.executable, "-c", LIMITED.format(worker=str(WORKER), code=code)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_what_was_used_up_is_there_again(self):
        """A refused allocation succeeds once the reserve is given; once."""
        told = self.limited(
            "kept = []\n"
            "try:\n"
            "    while True: kept.append(bytearray(SIZE // 4))\n"
            "except MemoryError: print('full')\n"
            "print(reserve.give(), reserve.give())\n"
            "kept += [bytearray(SIZE // 4) for _ in range(3)]\n")
        self.assertEqual(told, ["full", "True", "False"])

    def test_it_is_taken_again_where_there_is_room(self):
        told = self.limited(
            "reserve.give()\n"
            "kept = bytearray(5 * SIZE // 2)\n"
            "reserve.keep(); print(reserve.held is None)\n"
            "del kept\n"
            "reserve.keep(); print(reserve.held is None)\n")
        self.assertEqual(told, ["True", "False"])


if __name__ == "__main__":
    unittest.main()

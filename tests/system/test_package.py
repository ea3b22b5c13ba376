"""Packages, for Debian and for pip: built, installed in clean roots, asked, removed."""

import os
import pathlib
import subprocess
import unittest

import patience

ROOT = pathlib.Path(os.environ["RLMD_SOURCE_ROOT"])
CANNOT = 77


class Packages(unittest.TestCase):
    def passes(self, tool, last):
        done = subprocess.run([ROOT / "tools" / tool], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=20 * patience.hung())
        if done.returncode == CANNOT:
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertIn(last, done.stdout)

    def test_of_debian(self):
        """Lintian has no complaint, either."""
        self.passes("package-check", "installed, asked and removed")

    def test_of_pip(self):
        """In Debian 12, where they are built, and in Debian 13; they want a glibc of 2.34."""
        self.passes("wheel-check", "removed in a bare root of trixie")


if __name__ == "__main__":
    unittest.main()

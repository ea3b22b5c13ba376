"""The Debian packages: built, looked at by lintian, installed in a clean root, asked, removed."""

import os
import pathlib
import subprocess
import unittest

import patience

ROOT = pathlib.Path(os.environ["RLMD_SOURCE_ROOT"])
CANNOT = 77


class Packages(unittest.TestCase):
    def test_from_the_source_to_an_answer(self):
        done = subprocess.run([ROOT / "tools/package-check"], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=20 * patience.hung())
        if done.returncode == CANNOT:
            self.skipTest(done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertIn("installed, asked and removed", done.stdout)


if __name__ == "__main__":
    unittest.main()

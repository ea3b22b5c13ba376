"""The package for Python beside pyright's strict mode, from tools/real-servers."""

import pathlib
import subprocess
import unittest

import servers

PROGRAM = pathlib.Path(servers.PLACE, "pyright", "bin", "pyright")
PACKAGE = servers.HERE.parents[1] / "python"


def setUpModule():
    servers.wanted()
    if not PROGRAM.exists():
        raise unittest.SkipTest("pyright is not installed: tools/real-servers does it")


class Pyright(unittest.TestCase):
    def test_strict(self):
        done = subprocess.run([PROGRAM, "-p", PACKAGE], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 errors", done.stdout)


if __name__ == "__main__":
    unittest.main()

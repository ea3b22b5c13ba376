"""The package says its types, and keeps to them: mypy --strict."""

import shutil
import subprocess
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python"


class Types(unittest.TestCase):
    def test_strict(self):
        mypy = shutil.which("mypy")
        if not mypy:
            self.skipTest("mypy is not installed (tools/setup --all installs it)")
        done = subprocess.run([mypy, "--cache-dir=/dev/null"], cwd=PACKAGE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

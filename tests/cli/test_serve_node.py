"""rlmd serve for a client in another language, which has nothing of ours but docs/serve.md."""

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("", "system")]
import patience  # noqa: E402
from harness import RLMD, GuardedTest  # noqa: E402


class NodeTest(GuardedTest):
    def test_what_the_page_says(self):
        node = shutil.which("node")
        if not node:
            self.skipTest("node is not installed")
        done = subprocess.run([node, Path(__file__).with_name("client.mjs"), RLMD, "serve", "--stdio"],
                              env=self.environment(), cwd=self.dir, capture_output=True, text=True,
                              timeout=patience.hung(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

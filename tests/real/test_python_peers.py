"""Inside of other libraries: DSPy, smolagents, the official rlms; Dask and Ray."""

import os
import pathlib
import subprocess
import unittest

import servers
from harness import RLMD

PYTHON = pathlib.Path(servers.PLACE, "python-peers/bin/python")


def setUpModule():
    servers.wanted()


class Peers(servers.SystemTest):
    def peer(self, name):
        done = subprocess.run(
            [PYTHON, pathlib.Path(__file__).with_name("peers.py"), name], cwd=self.dir, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=servers.patience.hung(),
            env={**self.environment(), "RLMD_BIN": str(RLMD), "RLMD_BUILD_ROOT": os.environ["RLMD_BUILD_ROOT"]})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_dspy(self):
        self.peer("Dspy")

    def test_smolagents(self):
        self.peer("Smolagents")

    def test_rlms(self):
        self.peer("Rlms")

    def test_dask_and_ray(self):
        """The recipes of examples/python."""
        self.peer("Recipes")


if __name__ == "__main__":
    unittest.main()

"""Inside of other libraries: DSPy, smolagents, the official rlms; Dask and Ray."""

import os
import pathlib
import re
import subprocess
import unittest

import servers
from harness import RLMD

ROOT = servers.HERE.parents[1]
PYTHON = pathlib.Path(servers.PLACE, "python-peers/bin/python")
SUITES = pathlib.Path(servers.PLACE, "peer-suites")
RLMS = """
import rlm.environments.local_repl as place
import rlmd.rlms
place.LocalREPL = rlmd.rlms.Environment
"""
SMOLAGENTS = """
import os
import pytest
import rlmd.smolagents
from executors import CommonDockerExecutorIntegration

class TestOurs(CommonDockerExecutorIntegration):
    @pytest.fixture
    def custom_executor(self):
        executor = rlmd.smolagents.Executor(
            python=os.environ["RLMD_PYTHON"], preload=["numpy", "PIL.Image", "PIL.PngImagePlugin"])
        yield executor
        executor.cleanup()
"""


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

    def suite(self, name, ours, text, files):
        """Tests that are the library's own (theirs -> its name here), with ours in the place of
        what they test: a file of that text."""
        room = self.dir / "suite"
        room.mkdir()
        (room / ours).write_text(text)
        for theirs, here in files.items():
            (room / here).write_text((SUITES / name / theirs).read_text().replace(
                "from .utils.markers import require_run_all", "require_run_all = pytest.mark.skip"))
        done = subprocess.run(
            [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=room, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=servers.patience.hung(),
            env={**self.environment(), "RLMD_BIN": str(RLMD), "PYTHONPATH": str(ROOT / "python/src"),
                 "RLMD_PYTHON": str(PYTHON)})
        self.assertEqual(done.returncode, 0, done.stdout[-5000:])
        return int(re.search(r"(\d+) passed", done.stdout)[1])

    def test_the_suite_of_rlms(self):
        """Of its environment "local"."""
        names = "test_local_repl.py", "test_local_repl_persistent.py", "test_rlm_query.py"
        passed = self.suite("rlms", "conftest.py", RLMS, {name: name for name in names})
        self.assertGreater(passed, 70)

    def test_the_suite_of_smolagents(self):
        """Of its executors in containers."""
        passed = self.suite("smolagents", "test_ours.py", SMOLAGENTS,
                            {"test_remote_executors.py": "executors.py"})
        self.assertGreater(passed, 9)

    def test_dask_and_ray(self):
        """The recipes of examples/python."""
        self.peer("Recipes")


if __name__ == "__main__":
    unittest.main()

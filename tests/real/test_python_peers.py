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
from test_remote_executors import CommonDockerExecutorIntegration

class TestOurs(CommonDockerExecutorIntegration):
    @pytest.fixture
    def custom_executor(self):
        executor = rlmd.smolagents.Executor(
            python=os.environ["RLMD_PYTHON"], preload=["numpy", "PIL.Image", "PIL.PngImagePlugin"])
        yield executor
        executor.cleanup()
"""
SELECTED = {"smolagents": ["test_ours.py"]}


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

    def suite(self, name, begin, *files):
        """Tests that are the library's own, with ours in the place of what they test."""
        room = self.dir / "suite"
        room.mkdir()
        for file in files:
            text = (SUITES / name / file).read_text()
            (room / file).write_text(text.replace("from .utils.markers import require_run_all",
                                                  "require_run_all = pytest.mark.skip"))
        (room / ("test_ours.py" if "import pytest" in begin else "conftest.py")).write_text(begin)
        done = subprocess.run(
            [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SELECTED.get(name, [room])],
            cwd=room, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=servers.patience.hung(),
            env={**self.environment(), "RLMD_BIN": str(RLMD), "PYTHONPATH": str(ROOT / "python/src"),
                 "RLMD_PYTHON": str(PYTHON)})
        self.assertEqual(done.returncode, 0, done.stdout[-5000:])
        passed = re.search(r"(\d+) passed", done.stdout)
        return int(passed[1])

    def test_the_suite_of_rlms(self):
        """Of its environment "local"."""
        passed = self.suite("rlms", RLMS, "test_local_repl.py", "test_local_repl_persistent.py",
                            "test_rlm_query.py")
        self.assertGreater(passed, 70)

    def test_the_suite_of_smolagents(self):
        """Of its executors in containers."""
        self.assertGreater(self.suite("smolagents", SMOLAGENTS, "test_remote_executors.py"), 9)

    def test_dask_and_ray(self):
        """The recipes of examples/python."""
        self.peer("Recipes")


if __name__ == "__main__":
    unittest.main()

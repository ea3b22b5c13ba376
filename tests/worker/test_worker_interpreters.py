"""Every python3 from 3.8 on that can be found here serves, not only the default one."""

import shutil
import subprocess
import unittest

import patience
from supervisor import PYTHON, Worker

CODE = """
import threading, json, re, asyncio
found = []
def ask(n): found.append(llm_query(str(n)))
threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
async def later(): return await asyncio.get_running_loop().run_in_executor(None, llm_query, 'async')
print(sorted(found), asyncio.run(later()), count_matches('context'))
def fail(): return [][1]
fail()
"""


def version_of(python):
    try:
        result = subprocess.run(
            [python, "-I", "-c", "import sys; print(*sys.version_info[:3])"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=patience.hung(),
        )
    except OSError:
        return None
    return tuple(map(int, result.stdout.split())) if result.returncode == 0 else None


def interpreters():
    """{version: path}"""
    names = ["python3"] + [f"python3.{minor}" for minor in range(8, 20)]
    paths = [PYTHON] + [path for path in map(shutil.which, names) if path]
    return {version: path for path in paths if (version := version_of(path)) and version >= (3, 8)}


class Interpreters(unittest.TestCase):
    def test_each_serves(self):
        found = interpreters()
        self.assertTrue(found)
        for version, python in sorted(found.items()):
            with self.subTest(version), Worker(context=b"the context", forms=["ascii"],
                                               python=python) as worker:
                self.assertEqual(worker.ready["python"].split("+")[0], ".".join(map(str, version)))
                done = worker.run(CODE)
                self.assertEqual(done["stdout"], "['<0>', '<1>', '<2>', '<3>'] <async> 1\n", done)
                self.assertRegex(
                    done["error"],
                    r'File "<block 1>", line 10, in fail\n    def fail\(\): return \[\]\[1\]\n'
                    r"[ ~^]*\n?IndexError: list index out of range\n$",
                )
                self.assertEqual(done["error"].count("File "), 2)
                self.assertEqual(worker.run("FINAL_VAR('found')")["final"], "final_var")


if __name__ == "__main__":
    unittest.main()

"""Each command of docs/tutorial.md and docs/providers.md runs as it stands; what those of the first
print stands there."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

from harness import RLMD, SystemTest
from model import ModelServer, Reply

ROOT = Path(__file__).resolve().parents[2]


def steps():
    """(command, what it prints) of each line that begins with a dollar sign."""
    step = None
    for line in (ROOT / "docs/tutorial.md").read_text().splitlines():
        if line.startswith("    $ "):
            step = [line[6:], []]
            yield step
        elif line.startswith("    ") and step:
            step[1].append(line[4:])
        else:
            step = None


class Tutorial(SystemTest):
    def run_step(self, command, environment):
        return subprocess.run(["sh", "-c", command], cwd=self.dir / "tutorial", env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_all_commands(self):
        shutil.copytree(ROOT / "examples/tutorial", self.dir / "tutorial")
        with ModelServer(provider="openai") as server:
            server.script(None, Reply(text="```python\nFINAL(len(context.split()))\n```"))
            environment = self.environment(**server.environment())
            environment["PATH"] = f"{Path(RLMD).parent}:{environment['PATH']}"
            all_steps = list(steps())
            for command, printed in all_steps:
                with self.subTest(command):
                    done = self.run_step(command, environment)
                    if command != "rlmd doctor":  # some machines have fewer walls
                        self.assertEqual(done.returncode, 0, done.stderr)
                    if printed == ["..."]:
                        self.assertTrue(done.stdout)
                    elif command != "rlmd doctor":
                        self.assertEqual(done.stdout.splitlines(), printed)
            asked = len(server.requests)
        self.assertGreater(len(all_steps), 7)
        self.assertEqual(asked, 2)  # by the first batch; the second pays for nothing
        results = (self.dir / "tutorial/out.jsonl").read_text()
        self.assertEqual(sorted(re.findall(r'"output": ?"(\d+)"', results)), ["4", "6"])
        self.assertIn("<html", (self.dir / "tutorial/run.html").read_text()[:500])

    def test_the_providers(self):
        """Each is asked by one of the commands, which are shown here and not carried out."""
        page = (ROOT / "docs/providers.md").read_text()
        commands = re.findall(r"(?m)^    (?:export .*\n    )?rlmd .*$", page)
        self.write("big.log", "web-1 failed\n")
        self.write("prices.json", re.search(r'(?m)^    (\{"my-model.*)$', page)[1])
        environment = self.environment()
        environment["PATH"] = f"{Path(RLMD).parent}:{environment['PATH']}"
        for command in commands:
            with self.subTest(command):
                done = subprocess.run(
                    ["sh", "-c", command.replace("rlmd exec", "rlmd exec --dry-run --json")],
                    cwd=self.dir, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('"model":', done.stdout)
        self.assertGreater(len(commands), 7)


if __name__ == "__main__":
    unittest.main()

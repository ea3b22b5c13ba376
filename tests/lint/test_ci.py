"""Files that pipelines copy: action.yml, the templates in examples/ci, and docs/ci.md beside
them."""
import re
import shutil
import subprocess
import os
import pathlib
import tempfile
import unittest

import tree

try:
    import yaml
except ImportError:
    yaml = None

SCRIPTS = ("examples/ci/review.sh", "examples/ci/pre-push")


def options():
    """The long options of `rlmd review`."""
    return {tree.unquoted(row[6]) for row in tree.rows("src/cli/options.def", "OPTION")
            if re.search(r"\bREVIEW\b|\bALL\b", row[4])}


class BatchExamplesTest(unittest.TestCase):
    """The commands of examples/batch are such as `rlmd work` takes."""

    PLACE = tree.ROOT / "examples/batch"

    def options(self, words):
        rows = [row for _, *row in tree.rows("src/cli/options.def", "OPTION")]
        known = {tree.unquoted(row[5]) for row in rows if "WORK" in row[3] or row[3] == "ALL"}
        self.assertEqual({word for word in words if word.startswith("--")} -
                         {f"--{name}" for name in known}, set())
        self.assertIn("--store", words)

    @unittest.skipUnless(yaml, "python3-yaml is not installed")
    def test_kubernetes(self):
        for name, kind in (("deployment.yaml", "Deployment"), ("job.yaml", "Job")):
            with self.subTest(name=name):
                (thing,) = yaml.safe_load_all((self.PLACE / name).read_text("utf-8"))
                self.assertEqual(thing["kind"], kind)
                pod = thing["spec"]["template"]["spec"]
                (container,) = pod["containers"]
                self.assertEqual(container["command"][:2], ["rlmd", "work"])
                self.options(container["command"])
                self.assertEqual("--wait" in container["command"], kind == "Deployment")
                self.assertEqual(pod["terminationGracePeriodSeconds"], 900)
                volumes = {each["name"] for each in pod["volumes"]}
                self.assertEqual({each["name"] for each in container["volumeMounts"]}, volumes)

    def test_slurm(self):
        text = (self.PLACE / "work.slurm").read_text("utf-8")
        command = text[text.index("exec "):]
        self.options(re.findall(r"--[a-z-]+", command))
        self.assertIn("#SBATCH --signal=B:TERM@", text)


class SystemdTest(unittest.TestCase):
    PLACE = tree.ROOT / "packaging" / "systemd"

    def test_commands(self):
        """Each option is one of the command's, and the socket is the one that is listened at."""
        for command in ("work", "serve"):
            text = (self.PLACE / f"rlmd-{command}.service").read_text("utf-8")
            words = re.search(r"(?s)ExecStart=@bindir@/rlmd (.*?[^\\])\n", text).group(1).split()
            self.assertEqual(words[0], command)
            own = {tree.unquoted(row[6]) for row in tree.rows("src/cli/options.def", "OPTION")
                   if re.search(rf"\b{command.upper()}\b", row[4])}
            self.assertLessEqual({word[2:] for word in words if word.startswith("--")}, own)
        socket = (self.PLACE / "rlmd-serve.socket").read_text("utf-8")
        path = re.search(r"(?m)^ListenStream=(.*)$", socket).group(1)
        self.assertIn(f"--listen unix:{path} ", text)

    def test_services(self):
        """They are some, and their exposure is below five of ten."""
        analyze = shutil.which("systemd-analyze")
        if not analyze:
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory() as directory:
            for unit in self.PLACE.glob("rlmd-*"):
                text = unit.read_text("utf-8").replace("@bindir@", str(tree.BUILD))
                pathlib.Path(directory, unit.name).write_text(text, "utf-8")
            for command in ("work", "serve"):
                unit = pathlib.Path(directory, f"rlmd-{command}.service")
                for check in (["verify", "--man=no"],
                              ["security", "--offline=true", "--threshold=50"]):
                    done = subprocess.run(
                        [analyze, *check, unit], capture_output=True, text=True, check=False,
                        env={**os.environ, "SYSTEMD_LOG_LEVEL": "err",
                             "SYSTEMD_UNIT_PATH": f"{directory}:"})
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class ContainerTest(unittest.TestCase):
    """packaging/Containerfile, as far as it can be read without a builder of images."""

    def test_it_runs_the_program_as_an_ordinary_user(self):
        text = tree.read("packaging/Containerfile").replace("\\\n", " ")
        lines = [line.split(None, 1) for line in text.splitlines()
                 if line.strip() and not line.startswith("#")]
        last = dict(lines)
        self.assertLessEqual({word for word, _ in lines},
                             {"FROM", "ENV", "COPY", "WORKDIR", "RUN", "USER", "ENTRYPOINT", "CMD"})
        self.assertEqual((last["ENTRYPOINT"], last["CMD"]), ('["rlmd"]', '["doctor"]'))
        self.assertRegex(last["USER"], r"^[1-9]\d*:[1-9]\d*$")
        self.assertGreater(lines.index(["USER", last["USER"]]),
                           max(i for i, (word, _) in enumerate(lines) if word in ("RUN", "COPY")))

    def test_what_the_build_wants(self):
        """The list of packages that it cuts out of packaging/debian/control is that list."""
        text = tree.read("packaging/Containerfile")
        cut = re.search(r'(?s)"\$\((sed .*?tr -d .*?)\)"', text).group(1).replace("\\\n", "")
        done = subprocess.run(["sh", "-c", cut], cwd=tree.ROOT, capture_output=True, text=True,
                              check=True)
        packages = [word.strip() for word in done.stdout.split(",")]
        self.assertIn("libseccomp-dev (>= 2.5)", packages)
        self.assertEqual((packages[0], packages[-1]), ("debhelper-compat (= 13)", "scdoc"))


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class YamlTest(unittest.TestCase):
    def setUp(self):
        self.action = yaml.safe_load(tree.read("action.yml"))
        self.steps = self.action["runs"]["steps"]

    def test_the_action_is_a_composite_one(self):
        self.assertEqual(self.action["runs"]["using"], "composite")
        for step in self.steps:
            with self.subTest(step["name"]):
                self.assertEqual("run" in step, "uses" not in step)
                if "run" in step:
                    self.assertEqual(step["shell"], "bash")

    def test_no_script_has_an_expression_in_it(self):
        """A name of a stranger's (a branch, a directory) would be part of the script."""
        for step in self.steps:
            self.assertNotIn("${{", step.get("run", ""))

    def test_every_input_is_used_and_documented(self):
        text = tree.read("action.yml")
        used = set(re.findall(r"\binputs\.([\w-]+)", text))
        self.assertEqual(used, set(self.action["inputs"]))
        section = tree.read("docs/ci.md").split("## Inputs of the action")[1].split("\n## ")[0]
        rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
        self.assertEqual(sorted(re.findall(r"`([\w-]+)`", " ".join(rows))),
                         sorted(self.action["inputs"]))
        for name in self.action["outputs"]:
            self.assertIn(f"`{name}`", section)

    def test_outputs_are_written(self):
        (review,) = [step for step in self.steps if step.get("id") == "review"]
        for name, output in self.action["outputs"].items():
            self.assertEqual(output["value"], "${{ steps.review.outputs.%s }}" % name)
            self.assertIn(f'echo "{name}=', review["run"])

    def test_no_key_for_strangers(self):
        """pull_request gives forks no secrets; pull_request_target would."""
        workflow = yaml.safe_load(tree.read("examples/ci/github.yml"))
        triggers = workflow[True]  # YAML's word for `on`
        self.assertEqual(set(triggers), {"pull_request"})
        (job,) = workflow["jobs"].values()
        self.assertIn("head.repo.full_name == github.repository", job["if"])
        self.assertEqual(set(workflow["permissions"]), {"contents", "pull-requests", "security-events"})
        self.assertEqual(workflow["permissions"]["contents"], "read")
        gitlab = yaml.safe_load(tree.read("examples/ci/gitlab.yml"))["rlmd-review"]
        (rule,) = gitlab["rules"]
        self.assertIn("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID", rule["if"])

    def test_the_workflow_gives_what_the_action_takes(self):
        (job,) = yaml.safe_load(tree.read("examples/ci/github.yml"))["jobs"].values()
        (step,) = [step for step in job["steps"] if step.get("id") == "review"]
        self.assertLessEqual(set(step["with"]), set(self.action["inputs"]))

    def test_gitlab_keeps_what_is_written(self):
        job = yaml.safe_load(tree.read("examples/ci/gitlab.yml"))["rlmd-review"]
        kept = job["artifacts"]["paths"] + list(job["artifacts"]["reports"].values())
        written = re.findall(r'"\$reports/([\w.-]+)"', tree.read("examples/ci/review.sh"))
        for path in kept:
            self.assertIn(path.partition("/")[2], written)


class ScriptsTest(unittest.TestCase):
    def test_they_parse(self):
        for script in SCRIPTS:
            with self.subTest(script):
                subprocess.run(["sh", "-n", str(tree.ROOT / script)], check=True)

    def test_shellcheck(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed")
        subprocess.run(["shellcheck", *(str(tree.ROOT / script) for script in SCRIPTS)], check=True)

    def test_options_that_there_are(self):
        known = options()
        for path in (*SCRIPTS, "docs/ci.md"):
            text = tree.read(path)
            lines = [line for line in text.split("\n")
                     if not re.search(r"\bgit\b|docker|\[ ", line)]
            for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", "\n".join(lines)):
                with self.subTest(path=path, option=option):
                    self.assertIn(option, known)

    def test_the_head_has_every_variable(self):
        head, _, body = tree.read("examples/ci/review.sh").partition("set -eu")
        used = set(re.findall(r"\$\{?(REVIEW_\w+)", body))
        self.assertEqual(set(re.findall(r"^#   (REVIEW_\w+)", head, flags=re.MULTILINE)), used)
        self.assertGreater(len(used), 5)

    def test_settings_that_there_are(self):
        """RLMD_X is a setting of rlmd, which warns of others."""
        names = {tree.unquoted(row[6]).upper().replace("-", "_")
                 for row in tree.rows("src/cli/options.def", "OPTION") if row[3] == "SETTING"}
        for path in ("action.yml", "examples/ci/review.sh", "examples/ci/gitlab.yml",
                     "examples/ci/Jenkinsfile", "examples/ci/pre-push", "docs/ci.md"):
            for name in set(re.findall(r"\bRLMD_([A-Z_]+)\b", tree.read(path))) - {"IMAGE"}:
                with self.subTest(path=path, name=name):
                    self.assertIn(name, names)

    def test_every_exit_status_is_told(self):
        section = tree.read("docs/ci.md").split("## Exit status")[1].split("\n## ")[0]
        told = set()
        for cell in re.findall(r"^\| ([\d, ]+) \|", section, flags=re.MULTILINE):
            told |= {int(number) for number in cell.split(",")}
        known = {int(row[3]) for row in tree.rows("src/base/errors.def", "ERROR")}
        self.assertLessEqual(known | {3, 130, 143}, told | {0})

    def test_the_pipeline_of_jenkins_is_whole(self):
        text = tree.read("examples/ci/Jenkinsfile")
        self.assertEqual(text.count("{"), text.count("}"))
        self.assertEqual(text.count("'''"), 2)


if __name__ == "__main__":
    unittest.main()

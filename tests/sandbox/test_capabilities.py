"""A root who lacks a privilege, as containers and services have it.

Whatever is missing, `rlmd` comes to an end by itself: a lesser mode stands whose report names the
call that was refused, or there is no worker and exit status 7.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

from harness import BUILD, RLMD, SystemTest, turn  # noqa: E402

REPORT = os.path.join(BUILD, "tests/sandbox/report")
HUNG = 300  # seconds: far beyond all limits of time on the way to a worker together
# Those that a step to a worker may need.
NEEDED = ("kill", "setuid", "setgid", "setpcap", "sys_admin", "sys_resource", "sys_ptrace",
          "dac_override", "chown", "fowner", "sys_nice", "net_admin")
SUPERVISED = {"memory_cgroup", "pids_cgroup", "cpu_cgroup", "memory_watch", "locked_uids"}


def without(*capabilities):
    """A command's beginning: root, without these, and with none to come back to."""
    lost = ",".join("-" + name for name in capabilities)
    return ["setpriv", "--bounding-set=" + lost, "--inh-caps=" + lost]


def why_not():
    if os.geteuid():
        return "only root can give privileges up one by one"
    if not shutil.which("setpriv"):
        return "setpriv is not installed"
    probe = subprocess.run([*without("kill"), "true"], capture_output=True)
    return "setpriv drops nothing here: " + probe.stderr.decode() if probe.returncode else None


@unittest.skipIf(why_not(), why_not())
class CapabilitiesTest(SystemTest):
    def run_without(self, lost, *command):
        env = self.environment(**{name: os.environ[name] for name in ("PROBE_REPL", "WORKER_DIR")})
        done = subprocess.run([*without(*lost), *command], stdin=subprocess.DEVNULL, env=env,
                              capture_output=True, timeout=HUNG)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def check(self, lost):
        status, out, err = self.run_without(lost, REPORT)
        self.assertEqual(status, 0, err)
        answer = json.loads(out)
        if "error" in answer:
            self.assertEqual(answer["kind"], "sandbox")
            return
        here = set(answer["report"]["layers"])
        self.assertEqual(set(answer["worker"]["layers"]), here - SUPERVISED)
        self.assertEqual(answer["worker"]["open"], "PermissionError")
        if answer["report"]["mode"] != self.whole["mode"]:
            self.assertTrue(answer["report"]["absent"])

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([REPORT], stdout=subprocess.PIPE, check=True, timeout=HUNG)
        cls.whole = json.loads(done.stdout)["report"]

    def test_each_is_missed_alone(self):
        for name in NEEDED:
            with self.subTest(lost=name):
                self.check([name])

    def test_all_are_missed(self):
        self.check(["all"])

    def test_processes_of_others_cannot_be_killed(self):
        """Without CAP_KILL a mode whose workers have other uids is refused, and named with the
        remedy; one that keeps to our own stands."""
        status, out, err = self.run_without(["kill"], RLMD, "doctor", "--json")
        self.assertEqual(err, "")
        findings = json.loads(out)
        self.assertEqual((status, findings["problems"]), (0, []))
        self.assertIn(findings["mode"], ("userns", "plain"))
        absent = {layer["layer"]: layer for layer in findings["layers"] if "errno" in layer}
        self.assertEqual(absent["own_uid"]["call"], "pidfd_send_signal")
        self.assertEqual(absent["own_uid"]["errno"], "EPERM")
        self.assertIn("CAP_KILL", absent["own_uid"]["remedy"])

    def test_a_run_without_the_privilege_to_kill(self):
        """It answers; and one that asks for more than there is ends with 7."""
        script = self.script(turn("FINAL(42)"))
        ask = [RLMD, "exec", "-q", "--provider", "replay", "--replay", script]
        self.assertEqual(self.run_without(["kill"], *ask, "q")[:2], (0, "42\n"))
        status, out, err = self.run_without(["kill"], *ask, "--require", "L3", "q")
        self.assertEqual((status, out), (7, ""))
        self.assertIn("the L3 that is required", err)


if __name__ == "__main__":
    unittest.main()

"""rlmd doctor: what it tells on this machine, and on machines that lack something."""
import http.server
import json
import os
import pathlib
import re
import subprocess
import threading
import unittest

import leaks
from harness import RLMD, GuardedTest
from kernel import LANDLOCK, SECCOMP, UNSHARE, without

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "sk-doctor-0123456789abcdef"
EVERY = "every guarantee of docs/security.md can be kept.\n"


class DoctorTest(GuardedTest):
    def doctor(self, *arguments, status=0, **more):
        outcome = self.rlmd("doctor", *arguments, **more)
        self.assertEqual(outcome.status, status, outcome.err + outcome.out)
        return outcome

    def findings(self, *arguments, **more):
        return self.doctor("--json", *arguments, **more).result


class Machine(DoctorTest):
    def test_every_attack_is_refused(self):
        findings = self.findings()
        self.assertIs(findings["ok"], True)
        self.assertEqual(findings["problems"], [])
        self.assertEqual({attack["verdict"] for attack in findings["attacks"]}, {"refused"})
        self.assertEqual({attack["guarantee"] for attack in findings["attacks"]},
                         {f"G{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10)})
        self.assertGreaterEqual(len(findings["attacks"]), 12)
        self.assertRegex(findings["python"], r"^3\.\d+\.\d+\S* /")

    def test_layers(self):
        """Each stands, or is said to be missing together with what failed."""
        findings = self.findings()
        self.assertRegex(findings["level"], r"^L[1-4]$")
        layers = {layer["layer"]: layer for layer in findings["layers"]}
        for needed in ("seccomp", "no_new_privs", "rlimits", "undumpable"):
            self.assertEqual(layers[needed]["state"], "stands")
        for layer in layers.values():
            self.assertIn(layer["state"], ("stands", "degraded", "absent"))
            if layer["state"] != "stands":
                self.assertTrue(layer["call"] and layer["errno"] and layer["costs"], layer)

    def test_every_loss_is_explained(self):
        """A feature that a kernel may lack has a row that says what that costs."""
        always = {"scrubbed_environment", "closed_descriptors", "rlimits", "no_capabilities",
                  "no_new_privs", "undumpable", "seccomp", "memory_watch"}
        table = (ROOT / "src/sandbox/layers.def").read_text()
        layers = set(re.findall(r'LAYER\(\w+,\s*"(\w+)"', table))
        table = (ROOT / "src/cli/losses.def").read_text()
        rows = re.findall(r"(?m)^LOSS\((\w+),\s*(\w+),", table)
        self.assertEqual({row[0] for row in rows}, layers - always)
        self.assertLessEqual({row[1] for row in rows}, layers | {"none"})

    def test_without_landlock_and_namespaces(self):
        """An ordinary user without both: L1, each failure named, and no attack gets through."""
        def plain():
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            without(*LANDLOCK, UNSHARE)()

        for directory in (self.dir, self.scratch):
            os.chmod(directory, 0o755)
        options = {"preexec_fn": plain, "program": self.program_for_others()}
        findings = self.findings("--python", "/usr/bin/python3", **options)
        self.assertEqual((findings["level"], findings["mode"]), ("L1", "plain"))
        self.assertEqual({attack["verdict"] for attack in findings["attacks"]}, {"refused"})
        missing = {layer["layer"]: layer for layer in findings["layers"]
                   if layer["state"] != "stands"}
        self.assertEqual((missing["landlock"]["call"], missing["landlock"]["errno"]),
                         ("landlock_create_ruleset", "ENOSYS"))
        self.assertEqual(missing["empty_root"]["state"], "absent")
        self.assertIn(missing["empty_root"]["errno"], ("ENOSYS", "EPERM"))  # the latter in a chroot
        findings = self.findings("--python", "/usr/bin/python3", "--require", "L2", status=7,
                                 **options)
        self.assertEqual(findings["problems"], ["isolation L1 is less than --require L2"])
        text = self.doctor("--python", "/usr/bin/python3", "--require", "L2", status=7, **options).out
        self.assertTrue(text.endswith("\nEvery guarantee of docs/security.md can be kept, but "
                                      "--require asks for more layers.\n"), text)

    def test_the_same_as_in_a_run(self):
        """The doctor tells what stands in the result of a run."""
        findings = self.findings()
        run = self.replay([{"match": {"kind": "turn"}, "response": {"text": "FINAL(x)"}}], "--json")
        sandbox = run.result["sandbox"]
        self.assertEqual((sandbox["level"], sandbox["mode"]), (findings["level"], findings["mode"]))
        stand = [layer["layer"] for layer in findings["layers"] if layer["state"] == "stands"]
        self.assertEqual(sandbox["layers"], stand)

    def test_for_people(self):
        """A line a layer, a line an attack, and the verdict last."""
        findings, text = self.findings(), self.doctor().out
        for layer in findings["layers"]:
            self.assertRegex(text, rf"(?m)^  {layer['state']} +{layer['layer']} ")
        for attack in findings["attacks"]:
            what = re.escape(attack["what"])
            self.assertRegex(text, rf"(?m)^  refused +{attack['guarantee']} +{what}")
        self.assertTrue(text.endswith("\nE" + EVERY[1:]))

    def test_code_that_no_interrupt_ends(self):
        """It was killed for it, which is a refusal, too: a worker may be too busy to be asked."""
        room = self.dir / "venv"
        if subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(room)]).returncode:
            self.skipTest("no environment can be made")
        (next(room.glob("lib/python3*/site-packages")) / "deaf.py").write_text(
            "import sys, time\n"
            "def monotonic(ask=time.monotonic):\n"
            "    if sys._getframe(1).f_code.co_filename.startswith('<block'): sum(range(10**12))\n"
            "    return ask()\n"
            "time.monotonic = monotonic\n")
        findings = self.findings("--python", str(room / "bin/python3"), "--preload", "deaf")
        (found,) = [attack for attack in findings["attacks"] if attack["name"] == "res_time"]
        self.assertEqual(found["verdict"], "refused")
        self.assertIn("no interrupt ended the code", found["detail"])

    def test_attacks_that_cannot_be_tried(self):
        """A wall that was not seen to hold is a problem: each attack that this Python cannot make is named."""
        room = self.dir / "venv"
        if subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(room)]).returncode:
            self.skipTest("no environment can be made")
        packages = next(room.glob("lib/python3*/site-packages"))
        (packages / "blind.py").write_text("import sys\nsys.modules['ctypes'] = None\n")
        findings = self.findings("--python", str(room / "bin/python3"), "--preload", "blind", status=7)
        untried = [attack for attack in findings["attacks"] if attack["verdict"] == "untried"]
        self.assertIn("proc_ptrace", [attack["name"] for attack in untried])
        self.assertEqual({attack["verdict"] for attack in findings["attacks"]}, {"refused", "untried"})
        self.assertIs(findings["ok"], False)
        self.assertEqual(findings["problems"],
                         ["an attack could not be tried, for this Python lacks ctypes: "
                          f"{attack['name']} ({attack['guarantee']})" for attack in untried])

    def test_require(self):
        level = self.findings()["level"]
        self.assertIs(self.findings("--require", level)["ok"], True)

    def test_shim(self):
        """An interpreter that is a script is looked through."""
        shim = self.write("python3", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n")
        os.chmod(shim, 0o755)
        self.assertRegex(self.findings("--python", shim)["python"], r" /usr/bin/python3")


class Uids(DoctorTest):
    """The uids of workers that root starts, and whom /etc/subuid gives them."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root's workers have uids of a range")
        if not os.path.exists("/etc/subuid"):
            self.skipTest("there is no /etc/subuid that could be another one for a test")
        if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("nothing can be mounted over /etc/subuid here")

    def examine(self, content, *arguments):
        given = self.write("subuid", content)
        process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/subuid && exec "$@"', given, RLMD, "doctor",
             "--json", *arguments], env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out)

    def test_the_default_is_nobody_elses(self):
        """As useradd fills the file, to its last block."""
        blocks = "".join(f"user{i}:{100000 + 65536 * i}:65536\n" for i in range(0, 9155))
        self.assertEqual(self.examine(blocks)["warnings"], [])

    def test_a_clash_is_told(self):
        findings = self.examine("alice:100000:65536\nbob:165536:65536\n", "--first-uid", "210048")
        self.assertEqual(findings["warnings"], [
            "workers get ids from 210048 to 220287, of which /etc/subuid gives bob those from 165536 to "
            "231071; choose others with --first-uid"])
        self.assertIs(findings["ok"], True)

    def test_workers_have_the_uids_that_were_chosen(self):
        """Seen from outside: the uid of the worker's process."""
        script = self.script({"match": {"kind": "turn"},
                              "response": {"text": "```repl\nimport time\ntime.sleep(60)\n```"}})
        options = ["-q", "--first-uid", "300032", "-p", "replay", "--replay", script, "--grace", "0s"]
        mode = self.findings()["mode"]
        if mode not in ("root", "uid"):
            self.skipTest(f"workers of mode {mode} have one uid")
        process = self.start("exec", *options, "--", "the task")
        uids = set()
        while not any(300032 <= uid < 310272 for uid in uids):
            self.assertIsNone(process.poll(), "it ended early")
            uids = {self.uid_of(pid) for pid in self.children_of(process.pid)}
        self.assertLessEqual({uid for uid in uids if uid}, set(range(300032, 310272)))

    @staticmethod
    def children_of(pid):
        return [child for (child, _), (parent, _, _) in leaks.processes().items() if parent == pid]

    @staticmethod
    def uid_of(pid):
        try:
            status = pathlib.Path("/proc", str(pid), "status").read_text()
        except OSError:
            return 0  # gone meanwhile
        return int(re.search(r"(?m)^Uid:\s+(\d+)", status).group(1))


class Lacking(DoctorTest):
    """No worker: exit status 7, and the reason in one line."""

    def check(self, *arguments, why, **more):
        outcome = self.doctor(*arguments, status=7, **more)
        self.assertRegex(outcome.out, rf"(?m)^  no worker: .*{why}")
        self.assertTrue(outcome.out.endswith("\nNot " + EVERY))
        findings = self.findings(*arguments, status=7, **more)
        self.assertIs(findings["ok"], False)
        self.assertEqual(findings["attacks"], [])

    def test_no_python(self):
        self.check("--python", "/nowhere/python3", why="/nowhere/python3")

    def test_no_python_in_path(self):
        self.check(why="python3", env=self.environment(PATH="/nowhere"))

    def test_a_python_that_is_killed(self):
        shim = self.write("python3", "#!/bin/sh\nkill -9 $$\n")
        os.chmod(shim, 0o755)
        self.check("--python", shim, why="was killed before it said which Python")

    def test_no_module(self):
        self.check("--preload", "no_such_module", why="cannot preload no_such_module")

    def test_no_seccomp(self):
        self.check(why="no seccomp filters", preexec_fn=without(SECCOMP))


class Policy(DoctorTest):
    def test_has_every_rule(self):
        """The rows of the table that is compiled, in their order, with their reasons."""
        table = (ROOT / "seccomp/worker.def").read_text().split("/* clang-format off */")[1]
        row = r'(?m)^(?:ALLOW|ALLOW_IF|ANSWER|KILL)\((\w+),[^"]*"((?:[^"\\]|\\.)*)"'
        rows = re.findall(row, table)
        policy = self.findings("--policy")
        shown = [(rule["call"], rule["reason"]) for rule in policy["rules"]]
        self.assertEqual([row for row in rows if row in shown], shown)
        self.assertGreater(len(shown), 100)
        self.assertEqual((policy["others"], policy["younger"]), ("EPERM", "ENOSYS"))
        text = self.doctor("--policy").out
        for call, reason in shown:
            self.assertRegex(text, rf"(?m)^(allow|kill|ENOSYS) +{call} +{re.escape(reason)}$")

    def test_conditions_are_readable(self):
        text = self.doctor("--policy").out
        self.assertIn("if argument 2 has no bit but PROT_READ | PROT_WRITE\n", text)
        self.assertRegex(text, r"if argument 1 is F_SETFL\n +and argument 2 lacks O_ASYNC\n")


class Provider(DoctorTest):
    def serve(self, status=200, body=b"{}"):
        """Answers every GET; gives the base URL and the requests that came."""
        requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append((self.path, dict(self.headers)))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}", requests

    def ask(self, provider, url, *arguments, **more):
        key = self.write("key", KEY)
        os.chmod(key, 0o600)
        outcome = self.doctor("--json", "-p", provider, "--base-url", url, "--key-file", key,
                              *arguments, **more)
        self.assertNotIn(KEY, outcome.out + outcome.err)
        return outcome.result["provider"]

    def test_answers(self):
        """One request that costs nothing, with the key where it belongs."""
        places = {"openai": ("/v1/models", "Authorization", "Bearer " + KEY),
                  "anthropic": ("/v1/models", "x-api-key", KEY),
                  "ollama": ("/api/tags", "Authorization", "Bearer " + KEY)}
        for provider, (path, header, value) in places.items():
            with self.subTest(provider=provider):
                url, requests = self.serve()
                answer = self.ask(provider, url + ("/v1" if provider == "openai" else ""))
                self.assertEqual((answer["asked"], answer["answers"]), (True, True))
                self.assertEqual(answer["status"], 200)
                self.assertEqual(len(requests), 1)
                self.assertEqual((requests[0][0], requests[0][1][header]), (path, value))

    def test_refuses(self):
        """The provider's words are shown, without the key; the exit status is the machine's own."""
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
        answer = self.ask("openai", self.serve(401, body)[0])
        self.assertEqual((answer["answers"], answer["status"]), (False, 401))
        self.assertIn("HTTP 401: Incorrect API key provided: ***", answer["message"])

    def test_does_not_answer(self):
        answer = self.ask("openai", "http://127.0.0.1:9")
        self.assertEqual((answer["asked"], answer["answers"], answer["status"]), (True, False, 0))
        self.assertIn("does not answer", answer["message"])

    def test_is_not_asked_without_a_key(self):
        provider = self.findings("-p", "openai")["provider"]
        self.assertEqual((provider["asked"], provider["answers"]), (False, False))
        self.assertIn("OPENAI_API_KEY", provider["message"])


class CommandLine(DoctorTest):
    def test_what_it_has_no_use_for(self):
        for arguments in (["--max-cost", "1"], ["argument"], ["--nonsense"], ["--require", "L9"]):
            with self.subTest(arguments=arguments):
                outcome = self.doctor(*arguments, status=2)
                self.assertEqual(outcome.out, "")
                self.assertIn("rlmd doctor --help", outcome.err)

    def test_help(self):
        text = self.doctor("--help").out
        for option in ("--json", "--policy", "--require", "--python", "--preload"):
            self.assertIn(option, text)


if __name__ == "__main__":
    unittest.main()

"""Planted keys are looked for everywhere, and found in the supervisor's own memory alone: G6, A20.

In all that the program writes; in the memory of worker and template, from inside and, as root, from
outside; in what the kernel tells of them to another user and to the worker's own.
"""

import base64
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

import leaks
import patience
from harness import RLMD, block
from model import PROVIDERS, Reply
from providers import ProviderTest, code, final

ESCAPE = pathlib.Path(__file__).resolve().parents[1] / "escape"
sys.path.append(str(ESCAPE))
import runner  # noqa: E402 - of tests/escape

VARIABLE = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "ollama": "OLLAMA_API_KEY"}
SOON = {"retry-after-ms": "1"}
CANARY = "canary-for-the-search-of-memory"
CLOSED = ("environ", "mem", "maps", "auxv", "fd", "cwd", "exe", "root", "smaps", "pagemap", "stack",
          "syscall", "io", "map_files", "fdinfo", "personality")

# Run as somebody else; its arguments are pids. Says what could be read of each.
LOOKER = """
import os, sys
for pid in sys.argv[2:]:
    for name in sys.argv[1].split():
        path = f"/proc/{pid}/{name}"
        try:
            if os.path.islink(path):
                os.readlink(path)
            elif os.path.isdir(path):
                for each in os.listdir(path):
                    os.readlink(f"{path}/{each}")
            else:
                with open(path, "rb") as file:
                    if name != "mem" and not file.read():
                        continue
        except (OSError, ValueError):
            continue
        print(pid, name)
    print(pid, "cmdline", open(f"/proc/{pid}/cmdline").read().replace("\\0", " "))
"""


def memory_of(pid):
    """All that can be read of a process's memory; needs the right to trace it."""
    pieces = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            where, access = line.split()[:2]
            start, end = (int(each, 16) for each in where.split("-"))
            if access[0] != "r" or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            try:
                memory.seek(start)
                while start < end:
                    piece = memory.read(min(1 << 20, end - start))
                    if not piece:
                        break
                    pieces.append(piece)
                    start += len(piece)
            except OSError:
                pieces.append(b"\n")
    return b"".join(pieces)


def forms_of(key):
    """The key as it may be written: plain, and in base64 wherever it begins."""
    forms = {key.encode(), key[3:].encode()}
    for before in range(3):
        encoded = base64.b64encode(b"x" * before + key.encode())
        forms.add(encoded[4 if before else 0:-4])
    return forms


class Planted(ProviderTest):
    def setUp(self):
        super().setUp()
        self.key = "sk-planted-" + os.urandom(12).hex()
        self.other = "sk-unused-" + os.urandom(12).hex()

    def lacks_keys(self, data, where):
        for key in (self.key, self.other):
            for form in forms_of(key):
                self.assertNotIn(form, data, where)

    def facts(self):
        text = (ESCAPE / "toolbox.py").read_text()
        secrets = [runner.without_itself(key) for key in (self.key, self.other)]
        return json.dumps({"numbers": runner.numbers_of([text]), "secrets": secrets,
                           "canary": runner.without_itself(CANARY)})

    def inputs(self):
        return ["-c", self.write("context", CANARY), "-c", "facts=" + self.write("facts", self.facts()),
                "-c", "tools=" + str(ESCAPE / "toolbox.py")]

    def echoes(self):
        """The answer of a provider that repeats the request's headers wherever it can."""
        key = self.key.encode()
        escaped = b"".join(b"\\u%04x" % byte for byte in key)
        return [
            Reply(status=400, body=b'{"error":{"message":"bad header Authorization: Bearer %s"}}' % key),
            Reply(status=400, body=b'{"error":{"message":"x-api-key: %s"}}' % escaped),
            Reply(status=403, body=b"<html><title>no %s here</title></html>" % key),
            Reply(body=b"<p>" + key, content_type="text/html", headers=SOON),
            Reply(body=b"<p>" + key, content_type="text/html", headers=SOON),
            Reply(body=b'{"error":{"message":"%s is bad"}}' % key, headers=SOON),
        ]

    def run_all(self, provider, spy, *arguments, **environment):
        """A run that tells and keeps all it can; `spy` looks at its processes in the midst of it."""
        search = ["if 'FACTS' not in globals(): exec(tools)", "memory_lacks(*FACTS['secrets'])"]
        first = block(*search, "print(dict(os.environ), sys.argv)", "print(llm_query('look'))")
        second = block("for error in batch_llm_query(['q'] * 4):", "    print(repr(error), vars(error))")
        server = self.serve(provider, Reply(text=first), lambda _: (spy(), Reply(text="seen"))[1],
                            Reply(text=second), *self.echoes(), Reply(text=block(*search)), final())
        environment = self.environment(**{**server.environment(), **environment})
        process = self.start(
            "exec", "-p", provider, "-m", "m", "--jsonl", "-vvv", "-j", "1", "-o", self.dir / "out",
            "--trace", self.dir / "trace", "--record", self.dir / "record", *self.inputs(), *arguments,
            "--", "the task", env=environment)
        self.process = process
        out, err = process.communicate(timeout=patience.hung())
        told = (self.dir / "out").read_text()
        self.assertEqual(process.returncode, 0, err.decode()[-2000:])
        return server, out + err, told

    def check_written(self, told, streams):
        """Also that there was something to be found: the key's place is marked where it was cut out."""
        self.lacks_keys(streams, "standard output and error")
        self.assertIn("***", told)
        written = [path for path in self.dir.rglob("*") if path.is_file()]
        for path in written:
            if path.name not in ("key", "facts"):
                self.lacks_keys(path.read_bytes(), path)
        self.assertGreater(len(written), 8)

    def searches(self, told):
        """Results of the searches of its own memory, from inside."""
        events = [json.loads(line) for line in told.splitlines()]
        return [event["stdout"].split("\n")[0] for event in events
                if event["event"] == "code" and "memory_lacks" in event["code"]]

    def test_environment(self):
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                planted = dict.fromkeys([*VARIABLE.values(), "SOME_TOKEN"], self.other)
                planted[VARIABLE[provider]] = self.key
                server, streams, told = self.run_all(provider, lambda: None, **planted)
                self.assertIn(self.key, repr(server.requests[0].headers))
                self.assertNotIn(self.other, repr([request.headers for request in server.requests]))
                self.assertEqual(self.searches(told), ["held", "held"])
                self.check_written(told, streams)
                shutil.rmtree(self.dir / "record")
                (self.dir / "trace").unlink()

    def test_file(self):
        path = self.write("key", self.key + "\n")
        os.chmod(path, 0o600)
        server, streams, told = self.run_all("openai", lambda: None, "--key-file", path, OPENAI_API_KEY=self.other)
        self.assertIn(self.key, repr(server.requests[0].headers))
        self.assertEqual(self.searches(told), ["held", "held"])
        self.check_written(told, streams)

    @unittest.skipIf(b"__asan_init" in pathlib.Path(RLMD).read_bytes(), "a sanitizer's shadow memory has no end")
    @unittest.skipUnless(os.getuid() == 0, "only root may look into the memory of others")
    def test_memory_from_outside(self):
        """The supervisor has the key, so the search works; its children have not, nor the prompt's task."""
        found = {}

        def spy():
            for (pid, _), name in leaks.descendants().items():
                memory = memory_of(pid)
                found[pid] = (name, any(form in memory for form in forms_of(self.key)),
                              self.other.encode() in memory, CANARY.encode() in memory)

        self.run_all("openai", spy, OPENAI_API_KEY=self.key, SOME_TOKEN=self.other)
        supervisor = found.pop(self.process.pid)
        self.assertTrue(supervisor[1], "the search finds nothing where the key must be")
        self.assertGreaterEqual(len(found), 2, "the template and a worker")
        self.assertEqual([each for each in found.values() if each[1] or each[2]], [])
        self.assertEqual(sum(each[3] for each in found.values()), 1, "the context is in one worker alone")

    def looked_at(self, prefix):
        """Processes as somebody saw them: pairs of a pid and a file's name, and the command lines."""
        python = shutil.which("python3") if not prefix else "/usr/bin/python3"
        seen = []

        def spy():
            pids = [str(pid) for (pid, _) in leaks.descendants()]
            done = subprocess.run([*prefix, python, "-c", LOOKER, " ".join(CLOSED), *pids], cwd="/",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            seen.append((pids, done.stdout.decode()))

        self.run_all("openai", spy, OPENAI_API_KEY=self.key)
        (pids, text), = seen
        return pids, text

    def check_closed(self, prefix):
        pids, text = self.looked_at(prefix)
        self.assertGreaterEqual(len(pids), 3)
        self.lacks_keys(text.encode(), "the kernel's words")
        for pid in pids:
            self.assertRegex(text, rf"(?m)^{pid} cmdline")
        opened = [line for line in text.splitlines() if " cmdline " not in line]
        self.assertEqual(opened, [], text)

    def test_proc_as_its_own_user(self):
        """Without a capability, as the workers have none."""
        drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "env"] if os.getuid() == 0 else []
        self.check_closed(drop)

    @unittest.skipUnless(os.getuid() == 0, "only root can become another user")
    def test_proc_as_another_user(self):
        self.check_closed(["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "env"])

    def test_no_core(self):
        """Whatever the limit of whoever starts it, no process of a run leaves its memory in a file."""
        def unlimited():
            signal.signal(number, signal.SIG_DFL)  # whoever starts us may ignore it
            resource.setrlimit(resource.RLIMIT_CORE, [resource.RLIM_INFINITY] * 2)

        if os.getuid() != 0 and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest("cores are forbidden to whoever runs the tests")
        for number in (signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number):
                server = self.serve("openai", code("llm_query('wait')")).script(None, Reply(delay=3600))
                process = self.start("exec", "-p", "openai", "-m", "m", "--", "the task", preexec_fn=unlimited,
                                     env=self.environment(**{**server.environment(), "OPENAI_API_KEY": self.key,
                                                             "ASAN_OPTIONS": "handle_segv=0:handle_abort=0"}))
                self.assertTrue(server.wait(lambda s: len(s.requests) == 2))
                for (pid, _) in leaks.descendants():
                    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
                    self.assertRegex(limits, r"Max core file size +0 +0", pid)
                process.send_signal(number)
                _, status = os.waitpid(process.pid, 0)
                process.returncode = -number
                self.assertEqual((os.WIFSIGNALED(status), os.WCOREDUMP(status)), (True, False))
        files = [path.name for path in self.dir.rglob("*") if re.match(r"core|.*\.core$", path.name)]
        self.assertEqual(files, [])


if __name__ == "__main__":
    unittest.main()

"""Work that a start does once and keeps: bytecode in the user's cache, and what it never believes there."""

import ctypes
import json
import marshal
import os
import pathlib
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "worker"))
import patience  # noqa: E402
from harness import RLMD, GuardedTest, SystemTest, block, turn  # noqa: E402
from providers import ProviderTest, code, final  # noqa: E402
from test_worker_interpreters import interpreters  # noqa: E402


class Cached(SystemTest):
    """A cache of its own, and a program of its own."""

    def setUp(self):
        super().setUp()
        self.cache = self.dir / "cache"
        self.rooms = self.cache / "rlmd"
        self.answers = self.script(turn("FINAL('right')"))

    def archives(self):
        return sorted(self.rooms.glob("*")) if self.rooms.is_dir() else []

    def archive(self):
        archives = self.archives()
        self.assertEqual(len(archives), 1, archives)
        return archives[0]

    def begin(self, *options, program=RLMD, env=None):
        env = env or self.environment(XDG_CACHE_HOME=str(self.cache))
        return self.start("exec", "-vv", "--log-format", "json", "-p", "replay",
                          "--replay", self.answers, *options, "task", program=program, env=env)

    def records(self, process):
        """Its log, after it answered."""
        out, err = process.communicate()
        self.assertEqual((process.returncode, out), (0, b"right\n"), err)
        return [json.loads(line) for line in err.splitlines()]

    def modules(self, *options, **more):
        """Where a start had its modules from."""
        records = self.records(self.begin(*options, **more))
        ready, = (record for record in records if record["event"] == "template_ready")
        return ready["modules"]

    def refused(self):
        records = self.records(self.begin())
        return [record["path"] for record in records if record["event"] == "cache_refused"]


class Kept(Cached):
    def test_what_was_gathered_once_is_loaded_as_one_archive(self):
        self.assertEqual(self.modules(), "files")
        kept = self.cache, self.rooms, self.archive()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in kept]
        self.assertEqual(modes, [0o700, 0o700, 0o600])
        before = self.archive().stat()
        self.assertEqual(self.modules(), "archive")
        self.assertEqual(self.archive().stat().st_mtime_ns, before.st_mtime_ns)

    def test_without_a_word_about_it_the_cache_is_below_home(self):
        env = self.environment()
        env.pop("XDG_CACHE_HOME", None)
        self.assertEqual([self.modules(env=env) for _ in range(2)], ["files", "archive"])
        self.rooms = self.dir / ".cache" / "rlmd"
        self.archive()

    def test_each_interpreter_has_one_of_its_own(self):
        found = interpreters()
        for python in found.values():
            kept = len(self.archives())
            with self.subTest(python):
                self.assertEqual(self.modules("--python", python), "files")
                self.assertEqual(self.modules("--python", python), "archive")
                self.assertEqual(len(self.archives()), kept + 1)

    def test_what_has_no_bytecode_is_compiled_once(self):
        program = self.program_for_others()
        shutil.rmtree(pathlib.Path(program).parent / "worker" / "__pycache__")
        self.assertEqual(self.modules(program=program), "files")
        self.assertEqual(self.modules(program=program), "archive")
        data = self.archive().read_bytes()
        index, stamps = (int.from_bytes(data[at:at + 8], sys.byteorder) for at in (16, 24))
        _interpreter, modules, _kept = marshal.loads(data[index:stamps])
        code, source = 0, 1
        ours = {kind for kind, path, *_ in modules.values() if path.startswith(self.dir.as_posix())}
        self.assertIn(code, ours)
        self.assertNotIn(source, {modules[name][0] for name in ("repl", "channel", "template")})

    def test_one_that_an_installation_has_serves_every_home(self):
        program = self.program_for_others()
        self.assertEqual(self.modules(program=program), "files")
        shipped = pathlib.Path(program).parent / "bytecode"
        shipped.mkdir()
        shutil.move(self.archive(), shipped)
        nowhere = self.environment(XDG_CACHE_HOME=os.devnull)
        self.assertEqual(self.modules(program=program, env=nowhere), "archive")
        self.assertEqual(self.modules(program=program), "archive")
        self.assertEqual(self.archives(), [])
        for path in shipped.iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(self.modules(program=program), "files")
        self.assertEqual(self.modules(program=program), "archive")

    def test_of_starts_at_once_each_answers_and_one_archive_is_left(self):
        for process in [self.begin() for _ in range(4)]:
            self.records(process)
        self.archive()
        self.assertEqual(self.modules(), "archive")

    def test_old_interpreters_are_forgotten(self):
        self.modules()
        for number in range(8):
            path = self.rooms / f"library-{number}"
            path.write_bytes(b"")
            os.utime(path, (number, number))
        self.archive_of = [path for path in self.archives() if path.stat().st_size]
        self.archive_of[0].unlink()
        self.modules()
        names = {path.name for path in self.archives()}
        self.assertEqual(len(names), 8)
        self.assertNotIn("library-0", names)
        self.assertIn(self.archive_of[0].name, names)


EVERYTHING = """
import importlib, sys
names = '''%s'''.split()
loaded = [name in sys.modules for name in names]
for name in names:
    importlib.import_module(name)
"""
TRIES = """
import ctypes, decimal, hashlib, locale, random, ssl, uuid
from concurrent.futures import ThreadPoolExecutor
ctypes.c_int(5), decimal.Decimal(1) / 3
random.random(), hashlib.sha256(b'').hexdigest(), uuid.uuid4(), locale.localeconv()
ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).get_ciphers()
with ThreadPoolExecutor() as pool:
    list(pool.map(str, range(9)))
"""


class FirstWorker(Cached):
    """It is forked before all is loaded, and misses nothing."""

    def setUp(self):
        super().setUp()
        text = pathlib.Path(os.environ["RLMD_SOURCE_ROOT"], "worker", "library.py").read_text()
        names, = re.findall(r'USUAL = """(.*?)"""', text, re.DOTALL)
        self.everything = EVERYTHING % " ".join(names.split())

    def run_twice(self, *entries, python):
        """From files, then from the archive: the answers."""
        options = ["--json", "--python", python, "-p", "replay", "--replay", self.script(*entries)]
        env = self.environment(XDG_CACHE_HOME=str(self.cache))
        found = []
        for _ in range(2):
            outcome = self.rlmd("exec", *options, "task", env=env)
            self.assertEqual(outcome.status, 0, outcome.err + outcome.out[:2000])
            found.append(outcome.result["output"])
        return found

    def test_it_imports_what_the_template_has_not_yet(self):
        end = "FINAL(f'{sys.version_info[:3]} {len(names)}')"
        script = turn(block(self.everything, TRIES, end)), turn("FINAL('no')", turn=1)
        for version, python in interpreters().items():
            with self.subTest(version):
                one, other = self.run_twice(*script, python=python)
                self.assertEqual(one, other)
                self.assertIn(str(version), one)

    def test_the_second_finds_all_of_it(self):
        script = (
            turn(block(self.everything, "FINAL(rlm_query('sub'))"), depth=0),
            turn(block(self.everything, "FINAL(all(loaded))"), depth=1),
        )
        python = shutil.which("python3")
        self.assertEqual(self.run_twice(*script, python=python), ["True", "True"])


DRAW = """
import json, os, random, secrets, ssl, tempfile, threading, uuid
assert threading.main_thread().native_id == threading.get_native_id()
def draw():
    return {
        "random": random.random(), "system": random.SystemRandom().random(),
        "secrets": secrets.token_hex(9), "urandom": os.urandom(9).hex(),
        "ssl": ssl.RAND_bytes(9).hex(), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
        "tempfile": next(tempfile._get_candidate_names()),
    }
"""


class Siblings(Cached):
    """Workers of one template have all that it has loaded."""

    def test_each_draws_numbers_of_its_own(self):
        answers = self.script(
            turn(block(DRAW, "subs = [json.loads(rlm_query(name)) for name in ('a', 'b')]",
                       "FINAL(json.dumps([draw(), *subs]))"), depth=0),
            *2 * [turn(block(DRAW, "FINAL(json.dumps(draw()))"), depth=1)],
        )
        outcome = self.rlmd("exec", "--json", "-p", "replay", "--replay", answers, "task")
        self.assertEqual(outcome.status, 0, outcome.err)
        drawn = json.loads(outcome.result["output"])
        for kind in drawn[0]:
            with self.subTest(kind):
                self.assertEqual(len({each[kind] for each in drawn}), 3)


class Damaged(Cached):
    """It is made again, and the run does not notice."""

    def check(self, spoil):
        self.modules()
        spoil(self.archive())
        self.assertEqual(self.modules(), "files")
        self.assertEqual(self.modules(), "archive")

    def test_every_kind_of_damage(self):
        def write(change):
            return lambda path: path.write_bytes(change(path.read_bytes()))

        def flip(place):
            def change(data):
                at = place(data)
                return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]

            return write(change)

        kinds = {
            "empty": write(lambda data: b""),
            "its beginning": write(lambda data: data[:31]),
            "half": write(lambda data: data[: len(data) // 2]),
            "longer": write(lambda data: data + b"\0" * 8),
            "zeros": write(lambda data: bytes(len(data))),
            "a page of zeros": write(lambda data: data[:40960] + bytes(4096) + data[45056:]),
            "a bit of the code": flip(lambda data: len(data) // 2),
            "a bit of the head": flip(lambda data: 17),
            "a bit of the checksum": flip(lambda data: len(data) - 1),
        }
        for kind, spoil in kinds.items():
            with self.subTest(kind):
                self.check(spoil)

    def test_what_it_was_made_of_has_changed(self):
        program = self.program_for_others()
        worker = pathlib.Path(program).parent / "worker"
        self.assertEqual(self.modules(program=program), "files")
        for change in (
            lambda: (worker / "texts.py").write_bytes((worker / "texts.py").read_bytes() + b"\n"),
            lambda: (worker / "one_more.py").write_bytes(b""),
            lambda: (worker / "one_more.py").unlink(),
        ):
            change()
            self.assertEqual(self.modules(program=program), "files")
            self.assertEqual(self.modules(program=program), "archive")


class CutShort(ProviderTest):
    def test_while_workers_have_it_mapped(self):
        """A worker that reads on is killed; the model is told, the run goes on, and the next start too."""
        cache = self.dir / "cache"
        self.ask(self.serve("openai", final()), XDG_CACHE_HOME=str(cache))
        archive, = (cache / "rlmd").iterdir()
        size = archive.stat().st_size
        replies = [code("loaded = 'wave' in __import__('sys').modules"), code("import wave"), final()]
        server = self.serve("openai")

        def answer(request):
            if len(replies) == 2:
                os.truncate(archive, 0)
            return replies.pop(0)

        server.script(None, answer)
        result = self.ask(server, XDG_CACHE_HOME=str(cache)).result
        first, second = (turn["codeExecutions"][0] for turn in result["trace"]["iterations"][:2])
        self.assertIsNone(first["error"])
        self.assertIn("SIGBUS", second["error"])
        self.ask(self.serve("openai", final()), XDG_CACHE_HOME=str(cache))
        self.assertEqual(archive.stat().st_size, size)


class Strangers(Cached):
    """A file that others could have written is not believed, and a missing one is not missed."""

    def test_an_archive_that_others_may_write_is_replaced(self):
        self.modules()
        for mode in (0o620, 0o602):
            self.archive().chmod(mode)
            self.assertEqual(self.refused(), [str(self.archive())])
            self.assertEqual(stat.S_IMODE(self.archive().stat().st_mode), 0o600)
            self.assertEqual(self.modules(), "archive")

    def test_a_link_is_not_followed(self):
        self.modules()
        elsewhere = self.dir / "elsewhere"
        path = self.archive()
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        self.assertEqual(self.modules(), "files")
        self.assertFalse(path.is_symlink())

    def test_a_directory_that_others_may_write_is_left_alone(self):
        self.modules()
        self.archive().unlink()
        for directory in (self.rooms, self.cache):
            directory.chmod(0o777)
            self.assertEqual(self.refused(), [str(directory)])
            self.assertEqual(self.archives(), [])
            directory.chmod(0o700)

    @unittest.skipIf(os.geteuid(), "only root can give files away")
    def test_what_belongs_to_another_user(self):
        self.modules()
        os.chown(self.archive(), 65534, -1)
        self.assertEqual(self.refused(), [str(self.archive())])
        self.assertEqual(self.archive().stat().st_uid, 0)
        for directory in (self.rooms, self.cache):
            self.archive().unlink()
            os.chown(directory, 65534, -1)
            self.assertEqual(self.refused(), [str(directory)])
            self.assertEqual(self.archives(), [])
            os.chown(directory, 0, -1)
            self.modules()

    def test_where_nothing_can_be_kept(self):
        (self.dir / "file").write_text("")
        for place in ("/dev/null", str(self.dir / "file"), "/proc/nothing", "relative"):
            env = self.environment(XDG_CACHE_HOME=place, HOME="/dev/null")
            for _ in range(2):
                self.assertEqual(self.modules(env=env), "files", place)
        env = self.environment()
        del env["HOME"]
        env.pop("XDG_CACHE_HOME", None)
        self.assertEqual(self.modules(env=env), "files")
        self.assertEqual((self.dir / "file").read_text(), "")


class Nothing(Cached):
    """A command that needs no worker starts none, and looks at no cache."""

    def setUp(self):
        super().setUp()
        self.started = self.dir / "started"
        self.python = self.dir / "python"
        self.python.write_text(f"#!/bin/sh\n: > {self.started}\nexit 1\n")
        self.python.chmod(0o755)

    def check(self, status, *arguments, started=False):
        env = self.environment(XDG_CACHE_HOME=str(self.cache), RLMD_PYTHON=str(self.python),
                               OPENAI_BASE_URL="http://127.0.0.1:9")
        process = self.start(*arguments, env=env)
        out, err = process.communicate()
        with self.subTest(arguments):
            self.assertEqual(process.returncode, status, err)
            self.assertEqual(self.started.exists(), started)
            self.assertFalse(self.cache.exists())

    def test_what_only_tells(self):
        for arguments in (["--version"], ["--help"], ["help"], ["help", "exec"], ["exec", "--help"],
                          ["plan", "--help"], ["doctor", "--help"]):
            self.check(0, *arguments)

    def test_what_is_refused(self):
        replay = ["-p", "replay", "--replay", self.answers]
        plan = self.write("plan.json", "{}")
        for arguments in (
            [], ["nothing"], ["exec"], ["exec", "--no-such-option", "task"], ["exec", "a", "b"],
            ["exec", *replay, "--max-depth", "-1", "task"], ["exec", *replay, "--json", "--jsonl", "task"],
            ["exec", *replay, "--provider", "nobody", "task"], ["exec", *replay, "--worker-memory", "1", "task"],
            ["plan"],
        ):
            self.check(2, *arguments)
        self.check(8, "plan", *replay, plan)
        self.check(8, "exec", *replay, "-c", "missing", "task")

    def test_a_run_starts_it(self):
        """So that the others can fail."""
        self.check(2, "exec", "-p", "replay", "--replay", self.answers, "task", started=True)


HELD = """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    char byte;

    (void)count;
    if (write(open("%(started)s", O_WRONLY), "s", 1) != 1 || read(open("%(go_on)s", O_RDONLY), &byte, 1) != 1)
        return 1;
    arguments[0] = "%(python)s";
    execv(arguments[0], arguments);
    return 1;
}
"""
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Meanwhile(ProviderTest, GuardedTest):
    """Things made ready while python3 loads: it tells when it was started, and waits for leave to go on."""

    def setUp(self):
        super().setUp()
        self.started, self.go_on = self.dir / "started", self.dir / "go_on"
        for fifo in (self.started, self.go_on):
            os.mkfifo(fifo)
        paths = {"started": self.started, "go_on": self.go_on, "python": sys.executable}
        self.held = self.dir / "held"
        subprocess.run(["cc", "-o", self.held, self.write("held.c", HELD % paths)], check=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def tls(self):
        certificate = str(self.dir / "cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-out", certificate, "-keyout", certificate],
            check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        return {"SSL_CERT_FILE": certificate}, context

    def hold(self, server, *arguments, environment=(), **more):
        """A run whose python3 has been started and is held."""
        arguments = self.arguments(server, "--python", self.held, *arguments)
        env = self.environment(**server.environment(), **dict(environment))
        process = self.start(*arguments, env=env, **more)
        with open(self.started, "rb") as started:
            self.assertEqual(started.read(1), b"s")
        return process

    def release(self, process, status=0, input=None):
        self.go_on.write_bytes(b"g")
        out, err = process.communicate(input, timeout=patience.hung())
        self.assertEqual(process.returncode, status, err)
        return json.loads(out)

    def servers(self, *replies):
        """A server of each kind, and what it takes to believe it."""
        yield self.serve("openai", *replies), {}
        environment, context = self.tls()
        yield self.serve("openai", *replies, tls=context), environment

    @staticmethod
    def ahead(server):
        """How many connections are made: libcurl 8 would use none of TLS that was made ahead."""
        libcurl = ctypes.CDLL("libcurl.so.4")
        libcurl.curl_version.restype = ctypes.c_char_p
        major = int(re.match(rb"libcurl/(\d+)", libcurl.curl_version())[1])
        return 0 if server.url.startswith("https:") and major >= 8 else 1

    def connected(self, server, count=1):
        """And has told its models, where it is asked for them: nothing is on its way there."""
        listed = int(server.url.startswith("http:"))
        self.assertTrue(server.wait(lambda server: server.connection_count == count and
                                    server.lists_asked == listed))

    def test_the_connection_is_made(self):
        """And it is the first request's, on which nothing was said before."""
        for server, environment in self.servers(final()):
            with self.subTest(server.url):
                process = self.hold(server, environment=environment)
                self.connected(server, self.ahead(server))
                self.assertEqual(server.requests, [])
                usage = self.release(process)["usage"]
                self.assertEqual((server.connection_count, len(server.requests)), (1, 1))
                self.assertEqual((usage["llmCalls"], usage["estimated"]), (1, False))

    def test_the_context_is_read(self):
        server = self.serve("openai", code("FINAL(context)"))
        process = self.hold(server, "-c", "-", stdin=subprocess.PIPE)
        process.stdin.write(b"what was read")
        process.stdin.close()
        process.stdin = None
        self.connected(server)
        self.assertEqual(self.release(process)["output"], "what was read")

    def test_a_server_that_has_lost_patience(self):
        """It has closed the connection, with or without a word: no request is lost on it."""
        for word in (b"", TOO_LATE):
            for server, environment in self.servers(final()):
                with self.subTest(server.url, word=word):
                    process = self.hold(server, environment=environment)
                    self.connected(server, self.ahead(server))
                    server.hang_up(word)
                    usage = self.release(process)["usage"]
                    self.assertEqual((server.connection_count, len(server.requests)),
                                     (self.ahead(server) + 1, 1))
                    self.assertEqual((usage["llmCalls"], usage["estimated"]), (1, False))

    def test_nobody_is_connected_to_in_vain(self):
        """A dry run asks nobody, nor does a replay, and what a cache has need not be asked for."""
        server = self.serve("openai", final())
        cache = ["--cache", self.dir / "answers"]
        self.ask(server, *cache)
        before = server.accepted
        self.ask(server, *cache)
        self.ask(server, "--dry-run")
        replay = self.arguments(server, "-p", "replay", "--replay", self.script(turn("FINAL(ok)")))
        self.rlmd(*replay, env=self.environment(**server.environment()))
        self.ask(server, "-c", "missing", status=8)
        self.ask(server, "--key-file", "missing", status=4)
        self.assertEqual(server.accepted, before)

    def test_a_signal(self):
        server = self.serve("openai", final())
        process = self.hold(server)
        self.connected(server)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience.hung())
        self.assertEqual((process.returncode, json.loads(out)["error"]["kind"]), (130, "cancelled"), err)
        self.assertTrue(server.wait(lambda server: not server.connections))
        self.assertEqual(server.requests, [])

    def test_what_fails_meanwhile(self):
        """Is told once python3 is there, in the words of a request; nobody is tried twice."""
        _, context = self.tls()
        server = self.serve("openai", tls=context)
        none = self.dir / "none"
        none.mkdir()
        process = self.hold(server, environment={"SSL_CERT_DIR": str(none)})
        self.assertTrue(server.wait(lambda server: server.accepted == self.ahead(server)))
        error = self.release(process, status=5)["error"]
        self.assertIn("self-signed", error["message"])
        self.assertEqual(server.accepted, 1)


if __name__ == "__main__":
    unittest.main()

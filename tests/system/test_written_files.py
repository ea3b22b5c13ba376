"""Every option that names what is written, with everything that may be there already.

A regular file is replaced or added to. A device, a FIFO, a socket and a directory are written to or
refused, and stay what they are. A new option must have its row: the table is held to
src/cli/options.def.
"""

import json
import os
import pathlib
import re
import socket
import stat
import unittest

from model import Reply
from providers import ProviderTest

OPTIONS = pathlib.Path(__file__).resolve().parents[2] / "src" / "cli" / "options.def"

# How it is written, and what becomes of each kind of thing that is there already. `written`: the
# program ends well, and it was written to as it is. `replaced`: by a regular file, and where a link
# was, what that leads to is as it was. `through`: the link stays, and what it leads to is replaced
# by a regular file. `refused`: the program says why, and asks no model.
# `warned`: it goes on without. `failed`: it ends with another status than 0.
KINDS = ("nothing", "regular", "device", "fifo", "socket", "directory", "dangling", "link", "device_link")
MANNERS = {
    "at once": dict(nothing="replaced", regular="replaced", device="written", fifo="written",
                    socket="refused", directory="refused", dangling="replaced", link="replaced",
                    device_link="written"),
    "again and again": dict(nothing="replaced", regular="replaced", device="written", fifo="refused",
                            socket="refused", directory="refused", dangling="replaced",
                            link="replaced", device_link="written"),
    "once, regular": dict(nothing="replaced", regular="replaced", device="refused", fifo="refused",
                          socket="refused", directory="refused", dangling="replaced",
                          link="replaced", device_link="refused"),
    "added to": dict(nothing="replaced", regular="written", device="written", fifo="written",
                     socket="refused", directory="refused", dangling="refused", link="refused",
                     device_link="written"),
    "gone on with": dict(nothing="replaced", regular="replaced", device="refused", fifo="refused",
                         socket="refused", directory="refused", dangling="written",
                         link="through", device_link="refused"),
    "directory": dict(nothing="made", regular="refused", device="refused", fifo="refused",
                      socket="refused", directory="filled", dangling="refused", link="refused",
                      device_link="refused"),
    "summary": dict(nothing="replaced", regular="written", device="written", fifo="written",
                    socket="warned", directory="warned", dangling="written", link="written",
                    device_link="written"),
    "store": dict(nothing="replaced", regular="any", device="failed", fifo="failed",
                  socket="failed", directory="failed", dangling="any", link="any",
                  device_link="failed"),
}

# The member of struct config that has it, and how each command of it writes.
WRITES = {
    "output": {"exec": "at once", "plan": "at once", "review": "at once", "merge": "once, regular"},
    "results": {"batch": "gone on with", "results": "gone on with"},
    "html": {"trace": "at once"}, "chrome": {"trace": "at once"},
    "trace": {"exec": "added to", "plan": "added to", "review": "added to"},
    "metrics": {"plan": "at once"},
    "batch_metrics": {"batch": "again and again", "work": "again and again"},
    "sarif": {"review": "at once"},
    "junit": {"review": "at once"},
    "gitlab": {"review": "at once"},
    "rdjson": {"review": "at once"},
    "markdown": {"review": "at once"},
    "record": {"exec": "directory", "plan": "directory", "review": "directory"},
    "cache": {"exec": "directory", "plan": "directory", "batch": "directory", "work": "directory",
              "review": "directory", "serve": None},
    "store": {"batch": "store", "work": None, "results": None, "status": None},  # None: is only read, or shown elsewhere
}

# Every other option that takes a word: it names no file, or one that is only read, or a socket,
# which takes the place of no file (tests/cli/test_serve_socket.py).
READS = {
    "contexts", "task_file", "include", "exclude", "files_from", "diff", "provider", "model",
    "subcall_model", "prompt", "base_url", "key_file", "price_table", "stop", "python", "preload",
    "about", "otlp", "rules", "add_rules", "category", "baseline", "halt", "shard", "batch", "default_tenant", "listen", "root", "schema", "replay", "config",
}
ANSWER = 'FINAL({"findings": []})'


def options():
    """The member, the name, the type and the commands of every option."""
    rows = re.findall(r'^OPTION\((\w+),\s*(\w+),\s*\w+,\s*([A-Z| ]+?),[^"]*"([^"]+)"',
                      OPTIONS.read_text("utf-8"), re.MULTILINE)
    return {field: (name, kind, set(whose.lower().split(" | "))) for field, kind, whose, name in rows}


class TableTest(unittest.TestCase):
    def test_every_option_has_its_row(self):
        table = options()
        words = {field for field, (_, kind, _) in table.items()
                 if kind in ("TEXT", "NAME", "LIST", "PHRASES")}
        self.assertGreater(len(words), 30)
        self.assertEqual(words, WRITES.keys() | READS)
        self.assertEqual(WRITES.keys() & READS, set())
        for field, commands in WRITES.items():
            self.assertEqual(commands.keys(), table[field][2], field)
        for manner in MANNERS.values():
            self.assertEqual(tuple(manner), KINDS)


class WrittenTest(ProviderTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve("openai")
        self.server.script(None, lambda request: Reply(text=ANSWER))
        self.env = self.environment(**self.server.environment())
        self.write("plan.json", json.dumps({"operations": [{"id": "a", "input": "a"}]}))
        self.write("jobs.jsonl", json.dumps({"custom_id": "a", "task": "t"}) + "\n")
        self.write("tree/a.c", "int a;\n")
        self.number = 0

    # --- what is there ---

    def nothing(self, path):
        pass

    def regular(self, path):
        path.write_bytes(b"")

    def device(self, path):
        """One of our own: what replaces the machine's /dev/null harms everything on it."""
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            os.close(os.open(path, os.O_WRONLY))
        except PermissionError as error:
            self.skipTest(f"no device can be made and opened here: {error}")

    def fifo(self, path):
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def socket(self, path):
        here = os.getcwd()
        with socket.socket(socket.AF_UNIX) as one:
            os.chdir(path.parent)  # its whole path may be too long for an address
            try:
                one.bind(path.name)
            finally:
                os.chdir(here)

    def directory(self, path):
        path.mkdir(mode=0o700)

    def dangling(self, path):
        os.symlink("target", path)

    def link(self, path):
        (path.parent / "target").write_bytes(b"")
        os.symlink("target", path)

    def device_link(self, path):
        self.device(path.parent / "target")
        os.symlink("target", path)

    @staticmethod
    def seen(path):
        """Files with a name: whether they are what they were before."""
        if not os.path.lexists(path):
            return None
        about = os.lstat(path)
        return stat.S_IFMT(about.st_mode), about.st_ino

    def content(self, path):
        """Files that were written there."""
        if stat.S_ISFIFO(os.lstat(path).st_mode):
            return os.read(self.reader, 1 << 20)
        return path.read_bytes() if path.is_file() else b""

    # --- who writes ---

    def words(self, command, room, option):
        """The command, with what it needs beside the option."""
        model = ["-p", "openai", "-m", "m"]
        store = ["--store", "own.store"]
        if command == "exec":
            return ["exec", *model, *option, "task"]
        if command == "plan":
            return ["plan", *model, *option, "../plan.json"]
        if command == "review":
            return ["review", *model, *option, "../tree"]
        if command == "merge":
            (room / "in.jsonl").write_text(self.result)
            return ["merge", *option, "in.jsonl"]
        if command == "trace":
            event = {"event": "warning", "seq": 0, "ms": 0, "run": "r", "text": "", "formatVersion": 1,
                     "program": "rlmd 0", "startedAt": "2026-01-01T00:00:00.000Z"}
            (room / "events").write_text(json.dumps(event, separators=(",", ":")) + "\n")
            return ["trace", *option, "events"]
        if command == "results":
            self.assertEqual(self.run_in(room, "batch", *model, *store, "-o", "r", "../jobs.jsonl").status, 0)
            return ["results", *store, *option]
        if command == "work":
            self.assertEqual(self.run_in(room, "batch", *store, "--submit", "../jobs.jsonl").status, 0)
            return ["work", *model, *store, *option]
        return ["batch", *model, *([] if "--output" in option else ["-o", "own.jsonl"]), *option,
                "../jobs.jsonl"]

    def run_in(self, room, *words, **more):
        return self.rlmd(*words, env={**self.env, **more}, cwd=room)

    def rows(self):
        table = options()
        for field, commands in WRITES.items():
            for command, manner in commands.items():
                if manner:
                    yield manner, command, ["--" + table[field][0], "it"], {}
        yield "summary", "review", ["--github"], {"GITHUB_STEP_SUMMARY": "it"}

    # --- what becomes of it ---

    def check(self, kind):
        self.result = ""
        if kind in MANNERS["once, regular"]:
            room = self.dir / "first"
            room.mkdir()
            self.assertEqual(self.run_in(room, *self.words("batch", room, ["--output", "it"])).status, 0)
            self.result = (room / "it").read_text("utf-8")
        for manner, command, option, more in self.rows():
            with self.subTest(kind, command=command, option=option[0]):
                self.number += 1
                room = self.dir / str(self.number)
                room.mkdir()
                getattr(self, kind)(room / "it")
                self.reader = getattr(self, "reader", -1)
                try:
                    self.check_one(kind, MANNERS[manner][kind], command, room, option, more)
                finally:
                    if self.reader >= 0:
                        os.close(self.reader)
                    self.reader = -1

    def check_one(self, kind, expected, command, room, option, more):
        path, target = room / "it", room / "target"
        words = self.words(command, room, option)
        before, aim, asked = self.seen(path), self.seen(target), len(self.server.requests)
        outcome = self.run_in(room, *words, **more)
        after = self.seen(path)
        self.assertEqual([each.name for each in room.iterdir() if each.name.startswith(".rlmd")], [])
        if expected == "any":
            return
        if not (kind == "dangling" and expected == "written") and expected != "through":
            self.assertEqual(self.seen(target), aim, "what the link leads to")
        if expected == "failed":
            self.assertEqual(after, before, outcome.err)
            self.assertNotEqual(outcome.status, 0)
            return
        if expected == "refused":
            self.assertEqual(after, before, outcome.err)
            self.assertIn(outcome.status, (2, 8), outcome.err)
            self.assertRegex(outcome.err, r"\bit\b")
            self.assertEqual(len(self.server.requests), asked, "the model was paid for nothing")
            return
        self.assertEqual(outcome.status, 0, outcome.err)
        if expected == "warned":
            self.assertEqual(after, before)
            self.assertIn("GITHUB_STEP_SUMMARY", outcome.err)
        elif expected == "through":
            self.assertEqual(after, before)
            self.assertTrue(path.is_symlink() and target.is_file() and self.content(path))
        elif expected == "written":
            self.assertEqual(after, before)
            self.assertTrue("device" in kind or self.content(path))
        elif expected == "replaced":
            self.assertEqual(after[0], stat.S_IFREG)
            self.assertTrue(self.content(path))
        else:
            self.assertTrue(path.is_dir() and list(path.iterdir()))

    def test_nothing(self):
        self.check("nothing")

    def test_a_regular_file(self):
        self.check("regular")

    def test_a_device(self):
        self.check("device")

    def test_a_fifo(self):
        self.check("fifo")

    def test_a_socket(self):
        self.check("socket")

    def test_a_directory(self):
        self.check("directory")

    def test_a_link_to_nothing(self):
        self.check("dangling")

    def test_a_link_to_a_file(self):
        self.check("link")

    def test_a_link_to_a_device(self):
        self.check("device_link")


if __name__ == "__main__":
    unittest.main()

"""A repository that a stranger made, objects and all: whatever is in it, it is an input that can be
read, or is told of as one that cannot, and nobody waits for it. It is read by a program of its own,
sealed and without keys."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest
import zlib

import patience
from test_git import GitTest

SECRET = "sk-this-is-the-key-0123456789"


def loose(kind, data, size=None):
    """Of an object: (name, the bytes of its file); `size` is a lie of its header."""
    header = f"{kind} {len(data) if size is None else size}".encode() + b"\0"
    return hashlib.sha1(f"{kind} {len(data)}".encode() + b"\0" + data).hexdigest(), zlib.compress(header + data)


def memory(pid):
    """Of a process, what can be read of its memory; of an ordinary user's own, too, where it is dumpable."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            start, end = (int(each, 16) for each in span.split("-"))
            if mode[0] != "r" or line.rstrip().endswith(("[vvar]", "[vvar_vclock]", "[vsyscall]")):
                continue
            yield line, os.pread(mem.fileno(), end - start, start)


def row(mode, name, number):
    return f"{mode} {name}".encode() + b"\0" + bytes.fromhex(number)


def children(pid):
    """Of a process, those that list files: their numbers."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text()
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name.startswith("rlmd-lister") and rest.split()[1] == str(pid) and rest.split()[0] != "Z":
            found.append(int(place.name))
    return found


class StrangeGit(GitTest):
    def setUp(self):
        super().setUp()
        self.make()

    def make(self):
        shutil.rmtree(self.repo)
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("repo/a.c", "int a;\n" * 1000)
        self.write("repo/dir/b.c", "int b;\n")
        self.commit()

    def put(self, name, data):
        path = self.repo / ".git/objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def add(self, kind, data):
        name, written = loose(kind, data)
        self.put(name, written)
        return name

    def commit_of(self, tree):
        return self.add("commit", f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n".encode())

    def spoil(self, revision, how):
        """Writes something else in place of an object."""
        name = self.git("rev-parse", revision).strip()
        kind = self.git("cat-file", "-t", name).strip()
        data = subprocess.run(["git", "cat-file", kind, name], cwd=self.repo, env=self.env, check=True,
                              stdout=subprocess.PIPE).stdout
        self.put(name, how(kind, data))
        return name

    def given(self, *arguments, where=None, **more):
        """With the repository as the current directory; the outcome."""
        before, self.dir = self.dir, where or self.repo
        try:
            return self.replay([], *arguments, env=self.env, **more)
        finally:
            self.dir = before

    def assert_input(self, outcome, *words):
        self.assertEqual((outcome.status, outcome.out), (8, ""), outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)

    def ways(self, path="a.c"):
        """All ways of a command line to read the objects of that file, or of what it is in."""
        (self.repo / path).write_text("changed\n")
        return {"revision": ("-c", "git:HEAD"), "file": ("-c", f"git:HEAD:{path}"),
                "diff": ("-c", ".", "--diff", "HEAD"), "diff of revisions": ("-c", ".", "--diff", "HEAD..")}


def too_small(kind, data):
    return zlib.compress(f"{kind} 0".encode() + b"\0" + data * (1 + 6000 // len(data)))


def cut_short(kind, data):
    """Half of what its header says, and that does not compress: what reads it asks for more for ever."""
    noise = os.urandom(7000)
    return zlib.compress(f"{kind} {len(noise)}".encode() + b"\0" + noise)[:3000]


class Objects(StrangeGit):
    def test_a_size_that_is_a_lie(self):
        """libgit2 1.5 writes what is behind the size that a header tells past the end of what it
        allocated for it: of a file, a tree and a commit."""
        for revision in ("HEAD:a.c", "HEAD:dir", "HEAD^{tree}", "HEAD"):
            self.make()
            ways = self.ways()
            self.spoil(revision, too_small)
            for name, arguments in ways.items():
                with self.subTest(revision, way=name):
                    outcome = self.given("--dry-run", *arguments)
                    if outcome.status: # where libgit2 finds it, the file is left out
                        self.assert_input(outcome)

    def test_commands(self):
        """Not only of a run: of a review, and of a job of a batch, which is told in its result."""
        self.spoil("HEAD:a.c", too_small)
        self.write("repo/a.c", "changed\n")
        before, self.dir = self.dir, self.repo
        try:
            outcome = self.rlmd("review", "-p", "replay", "--replay", self.script(), "--diff", "HEAD", ".", env=self.env)
            self.assertEqual(outcome.status, 8, outcome.err)
            jobs = self.write("jobs.jsonl", '{"custom_id": "bad", "task": "t", "context_dir": "git:HEAD"}\n')
            outcome = self.rlmd("batch", "-p", "ollama", "-m", "m", "--base-url", "http://127.0.0.1:9", jobs,
                                "-o", "results.jsonl", env=self.env)
            self.assertTrue((self.repo / "results.jsonl").exists(), outcome.err)
            (line,) = (self.repo / "results.jsonl").read_text().splitlines()
            self.assertEqual(json.loads(line)["error"]["kind"], "input", line)
        finally:
            self.dir = before

    def test_damaged(self):
        """Packs, their indexes and the index of the work tree, with bytes turned: an input, or an error of one."""
        self.git("gc", "-q")
        objects = self.repo / ".git/objects/pack"
        files = [*objects.glob("*.pack"), *objects.glob("*.idx"), self.repo / ".git/index"]
        self.assertEqual(len(files), 3)
        (self.repo / "a.c").write_text("changed\n")
        for path in files:
            whole = path.read_bytes()
            path.chmod(0o644)
            for part in range(8):
                at = len(whole) * part // 8
                with self.subTest(path.suffix, at=at):
                    turned = bytes(255 - byte for byte in whole[at:at + 8])
                    path.write_bytes(whole[:at] + turned + whole[at + 8:])
                    self.assertIn(self.given("--dry-run", "-c", ".", "--diff", "HEAD").status, (0, 8))
            with self.subTest(path.suffix, cut=True):
                path.write_bytes(whole[:len(whole) // 2])
                self.assertIn(self.given("--dry-run", "-c", ".", "--diff", "HEAD").status, (0, 8))
            path.write_bytes(whole)

    def test_the_same_tree_again_and_again(self):
        """Ten to the tenth files in eleven objects: refused when there are more than any project has."""
        tree = self.add("tree", row(100644, "f", self.add("blob", b"x")))
        for _ in range(10):
            tree = self.add("tree", b"".join(row(40000, f"d{i}", tree) for i in range(10)))
        commit = self.commit_of(tree)
        for arguments in (("-c", f"git:{commit}", "--include", "nothing"), ("-c", ".", "--diff", commit)):
            with self.subTest(arguments):
                self.assert_input(self.given(*arguments), "more than 4 million files and directories")

    def test_a_tree_that_is_too_large(self):
        file = self.add("blob", b"x")
        tree = self.add("tree", b"".join(row(100644, f"{i:08}" * 8, file) for i in range(800000)))
        outcome = self.given("-c", f"git:{self.commit_of(tree)}")
        self.assert_input(outcome, "a tree is larger than 64 MiB")


    def test_paths_that_are_too_long(self):
        """512 MiB of them in a few objects of 6 MiB."""
        file = self.add("blob", b"x")
        tree = self.add("tree", b"".join(row(100644, f"{i:08}" + "x" * 4000, file) for i in range(1500)))
        tree = self.add("tree", b"".join(row(40000, f"d{i:03}", tree) for i in range(100)))
        outcome = self.given("-c", f"git:{self.commit_of(tree)}", "--include", "nothing")
        self.assert_input(outcome, "paths of more than 512 MiB")

    def test_a_tree_that_is_too_deep(self):
        """Files below the 256th level are left out and told, and what is above is read."""
        file = self.add("blob", b"int x;\n")
        tree = self.add("tree", row(100644, "lost.c", file))
        for _ in range(600):
            tree = self.add("tree", row(40000, "d", tree) + row(100644, "x.c", file))
        outcome = self.given("--dry-run", "-c", f"git:{self.commit_of(tree)}")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertRegex(outcome.out, r"files +256\n")
        self.assertIn("skipped 1 entry that cannot be read: d/d/d", outcome.err)

    def test_rules_that_are_a_link(self):
        """A link's text is a path, and no rules; git does not read them either."""
        rules, file = self.add("blob", b"*.c linguist-generated"), self.add("blob", b"int x;\n")
        for mode, files in ((100644, 1), (120000, 2)):
            tree = self.add("tree", row(mode, ".gitattributes", rules) + row(100644, "x.c", file) +
                            row(100644, "y.py", file))
            outcome = self.given("--dry-run", "-c", f"git:{self.commit_of(tree)}", "--include", "?.*")
            self.assertEqual(outcome.status, 0, outcome.err)
            self.assertIn(f"files           {files}\n", outcome.out)


def open_files(place, but):
    """Of the process at `place`: where each descriptor leads, and the bytes of regular files. It goes
    on meanwhile, so that some are closed before they can be looked at."""
    files = []
    for each in (place / "fd").iterdir():
        if each.name not in but:
            with contextlib.suppress(FileNotFoundError):
                files.append((os.readlink(each), each.read_bytes() if each.is_file() else b""))
    return files


class Waiting(StrangeGit):
    """On an object that is never read to its end."""

    def setUp(self):
        super().setUp()
        self.spoil("HEAD:a.c", cut_short)
        self.env["OPENAI_API_KEY"] = SECRET

    def begin(self, *arguments):
        """A run that reads it, and the one that reads it for it."""
        before, self.dir = self.dir, self.repo
        try:
            process = self.start("exec", "-p", "replay", "--replay", self.script(), "-c", "git:HEAD",
                                 *arguments, "task", env=self.env)
        finally:
            self.dir = before
        patience.wait_until(lambda: children(process.pid), "who reads it")
        (reader,) = children(process.pid)

        # Under sanitizers there is no filter, and this is the last that is done before it reads.
        mark = ("Seccomp:\t2" if not os.environ.get("ASAN_OPTIONS") else
                "CapEff:\t0000000000000006" if os.geteuid() == 0 else "NoNewPrivs:\t1")
        patience.wait_until(lambda: mark in pathlib.Path(f"/proc/{reader}/status").read_text(),
                            "that it is sealed")
        return process, reader

    def finish(self, process, reader):
        _, err = process.communicate(timeout=patience.hung())
        self.assertFalse(pathlib.Path(f"/proc/{reader}").exists())
        return process.returncode, err.decode()

    def test_time(self):
        outcome = self.given("--max-time", "300ms", "-c", "git:HEAD")
        self.assertEqual(outcome.status, 6, outcome.err)
        self.assertIn("--max-time", outcome.err)

    def test_signals(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number):
                process, reader = self.begin()
                process.send_signal(number)
                self.assertEqual(self.finish(process, reader)[0], status)

    def test_its_death_is_an_error_of_the_input(self):
        process, reader = self.begin()
        os.kill(reader, signal.SIGKILL)
        status, err = self.finish(process, reader)
        self.assertEqual(status, 8, err)
        self.assertIn("rlmd-lister, has died: signal 9", err)

    def test_it_ends_with_the_program(self):
        process, reader = self.begin()
        process.kill()
        process.communicate(timeout=patience.hung())

        def over():
            try:
                return pathlib.Path(f"/proc/{reader}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except FileNotFoundError:
                return True

        patience.wait_until(over, "the end of who read it")

    def test_it_has_no_key(self):
        """Nor a descriptor of ours but the two that it was given, nor a privilege."""
        process, reader = self.begin()
        place = pathlib.Path(f"/proc/{reader}")
        for name in ("environ", "cmdline"):
            self.assertNotIn(SECRET.encode(), (place / name).read_bytes())
        status = (place / "status").read_text()
        self.assertIn("NoNewPrivs:\t1", status)
        if os.geteuid() == 0: # else it has none at all
            self.assertIn("CapEff:\t0000000000000006", status)
        # Sanitizers report to standard error, which is left to it for that.
        reports = {"2"} if os.environ.get("ASAN_OPTIONS") else set()
        files = open_files(place, reports)
        targets = [target for target, _ in files]
        ours = "/memfd:request", "socket:", "/dev/null", str(self.repo)
        self.assertEqual([target for target in targets if not target.startswith(ours)], [], targets)
        for target, held in files:
            self.assertNotIn(SECRET.encode(), held, target)
        process.send_signal(signal.SIGINT)
        self.finish(process, reader)

    @unittest.skipIf(os.geteuid() or os.environ.get("ASAN_OPTIONS"),
                     "only root reads the memory of a process that is not dumpable; "
                     "shadow memory is too large to be read")
    def test_no_key_is_in_its_memory(self):
        """In the middle of its work, which is behind all that it was given; the supervisor has it."""
        process, reader = self.begin()
        for pid, has_key in ((process.pid, True), (reader, False)):
            found = [line for line, held in memory(pid) if SECRET.encode() in held]
            self.assertEqual(bool(found), has_key, found)
        self.assertTrue(any(str(self.repo).encode() in held for _, held in memory(reader)))
        process.send_signal(signal.SIGINT)
        self.finish(process, reader)


if __name__ == "__main__":
    unittest.main()

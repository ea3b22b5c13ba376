"""A repository as a context, through the program: what is taken, what is left out, and what is said."""

import json
import os
import resource
import subprocess
import unittest

from harness import GuardedTest, block, turn

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class GitTest(GuardedTest):
    def setUp(self):
        super().setUp()
        self.env = self.environment(
            GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@example.org",
            GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example.org")
        self.repo = self.dir / "repo"
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments, where=None):
        done = subprocess.run(["git", *map(str, arguments)], cwd=where or self.repo, env=self.env,
                              check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    def commit(self, message="x"):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def files(self, *arguments, **more):
        """The files of `context.files`, and standard error."""
        script = [turn(block("import json", "FINAL(json.dumps(dict(context.files)))"))]
        outcome = self.replay(script, *arguments, env=self.env, **more)
        self.assertEqual(outcome.status, 0, outcome.err)
        return json.loads(outcome.out), outcome.err

    def refused(self, status, words, *arguments, **more):
        outcome = self.replay([turn("FINAL(x)")], *arguments, env=self.env, **more)
        self.assertEqual((outcome.status, outcome.out), (status, ""), outcome.err)
        self.assertIn(words, outcome.err)


class Here(GitTest):
    """Options about files of a directory, and no directory: it is this one that is meant."""

    def setUp(self):
        super().setUp()
        for name in ("a.c", "b.py", "sub/x.c"):
            self.write("repo/" + name, name)
        self.write("repo/large.c", "l" * 3000)
        self.commit()
        self.write("repo/b.py", "changed")
        self.write("repo/new", "new")
        self.write("list", "a.c\nsub\n")

    def here(self, *arguments, **more):
        return self.files(*arguments, cwd=self.repo, **more)

    def test_each(self):
        everything = {"a.c", "b.py", "sub/x.c", "large.c", "new"}
        for arguments, expected in (
            (["--include", "*.py"], {"b.py"}),
            (["--exclude", "*.c"], {"b.py", "new"}),
            (["--files-from", "../list"], {"a.c", "sub/x.c"}),
            (["--diff", "HEAD"], {"b.py"}),
            (["--diff", "HEAD", "--untracked"], {"b.py", "new"}),
            (["--recurse-submodules"], everything),
            (["--max-file-size", "2K"], everything - {"large.c"}),
        ):
            with self.subTest(arguments):
                files, err = self.here(*arguments)
                self.assertEqual(set(files), expected)
                self.assertNotIn("standard input", err)

    def opened(self, text):
        """A file with that text, open for reading."""
        file = open(self.write("input", text), "rb")
        self.addCleanup(file.close)
        return file

    def test_names_on_standard_input(self):
        files, _ = self.here("--files-from", "-", input=b"b.py\0")
        self.assertEqual(set(files), {"b.py"})

    def test_beside_standard_input(self):
        """Standard input is not read without `-c -`: a warning says so where it has something."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, b"piped")  # before the program starts, which looks once
        os.close(writer)
        for stdin in (reader, self.opened("piped")):
            files, err = self.here("--include", "*.py", stdin=stdin)
            self.assertEqual(set(files), {"b.py"})
            self.assertIn("standard input is not read: --include is about files of a directory", err)
        script = [turn(block("FINAL(context)"))]
        outcome = self.replay(script, "--include", "*.py", "-c", "-", input=b"piped", env=self.env)
        self.assertEqual((outcome.status, outcome.out), (0, "piped\n"), outcome.err)

    def test_a_setting_means_nothing(self):
        """Of a file or the environment it is for those who name a directory."""
        script = [turn(block("FINAL(repr(context))"))]
        outcome = self.replay(script, cwd=self.repo, env={**self.env, "RLMD_MAX_FILE_SIZE": "2K"})
        self.assertEqual((outcome.status, outcome.out), (0, "''\n"), outcome.err)

    def test_no_work_tree(self):
        """As with -c: nobody is asked."""
        outside = self.dir / "outside"
        outside.mkdir()
        self.refused(8, "", "--diff", "HEAD", cwd=outside)


class FewDescriptors(GitTest):
    """Each level of a directory holds one: what cannot be had is told, and no file is left out."""
    LEVELS = 100

    def test_a_deep_directory(self):
        self.write("/".join(["deep"] + ["d"] * self.LEVELS) + "/file", "x")
        few = ["-q", "--max-workers=1", "--max-parallel=1", "-c", "deep"]
        for files, status in ((64, 7), (256, 0)):
            outcome = self.replay([turn(block("FINAL(list(context.files))"))], *few, env=self.env,
                                  preexec_fn=lambda: resource.setrlimit(
                                      resource.RLIMIT_NOFILE, (files, files)))
            self.assertEqual(outcome.status, status, outcome.err + outcome.out)
            self.assertEqual("Too many open files" in outcome.err, status == 7, outcome.err)
        self.assertIn("d/file", outcome.out)


class Directory(GitTest):
    def test_what_is_taken(self):
        """And kept back, each for its reason, which is told."""
        for name, text in (("a.c", "a"), ("b.o", "b"), ("sub/x.py", "x"), ("yarn.lock", "y"), ("gen.c", "g"),
                           ("third/v.c", "v"), (".env", "S=1"), ("key.txt", TOKEN), ("bin", "\0"),
                           ("large", "l" * 3000), (".gitignore", "*.o\n"),
                           (".gitattributes", "gen.c linguist-generated\nthird/* linguist-vendored\n")):
            self.write("repo/" + name, text)
        os.symlink("a.c", self.repo / "link")
        files, err = self.files("-c", "repo", "--max-file-size", "2K")
        self.assertEqual(set(files), {"a.c", "sub/x.py", ".gitignore", ".gitattributes"})
        for words in ("skipped 2 files that look like secrets: .env (an environment file), key.txt (a GitHub token)",
                      "1 binary file: bin", "1 symbolic link: link", "2 generated files: gen.c, yarn.lock",
                      "1 vendored file: third/v.c", "1 large file: large; to send larger ones, give a higher max-file-size"):
            self.assertIn(words, err)
        files, err = self.files("-c", "repo", "--allow-secrets", "--exclude", "*.c", "--include", "k*", "--include", "*.c",
                                "--include", ".env")
        self.assertEqual(files, {".env": "S=1", "key.txt": TOKEN})
        self.assertIn("repo: sends 2 files that look like secrets: .env", err)

    def test_a_list(self):
        """From a file and from standard input, by lines and by NULs."""
        for name in ("a", "b c", "new\nline", "dir/d"):
            self.write("repo/" + name, name)
        lines = self.write("list", "a\ndir\nb c\n")
        self.assertEqual(set(self.files("-c", "repo", "--files-from", lines)[0]), {"a", "b c", "dir/d"})
        files, err = self.files("-c", "repo", "--files-from", "-", input=b"new\nline\0a\0gone\0")
        self.assertEqual(files, {"a": "a", "new\\nline": "new\nline"})
        self.assertIn("skipped 1 name that no file has: gone", err)
        self.refused(8, "../x, which is not below the directory", "-c", "repo", "--files-from", "-", input=b"../x\n")
        self.refused(2, "cannot be both --files-from and a context", "-c", "-", "--files-from", "-", input=b"")
        self.refused(8, "cannot read nowhere", "-c", "repo", "--files-from", "nowhere")
        self.refused(2, "':(x)' is no pathspec", "-c", "repo", "--include", ":(x)")

    def test_names_that_look_alike(self):
        """Each file has a key of its own, also where one is named as the other is written."""
        names = (b"a\nb", b"a\\nb", b"\xff", b"\\xff", b"\\\\xff", b"\x1b[1m", b"\\x1b[1m", b"\\")
        for name in names:
            self.write(os.path.join(os.fsencode(self.repo), name).decode(errors="surrogateescape"), repr(name))
        files, _ = self.files("-c", "repo")
        self.assertEqual(files, {
            "a\\nb": repr(names[0]), "a\\\\nb": repr(names[1]), "\\xff": repr(names[2]), "\\\\xff": repr(names[3]),
            "\\\\\\\\xff": repr(names[4]), "\\x1b[1m": repr(names[5]), "\\\\x1b[1m": repr(names[6]), "\\\\": repr(names[7])})

    def test_too_much(self):
        self.write("repo/a", "a" * 5000)
        self.refused(8, "larger than 4096 bytes (max-context)", "-c", "repo", "--max-context", "4K")

    def test_hostile_contents(self):
        """A sparse file of a gigabyte, a FIFO as rules: nothing is read of them, and nothing waited for."""
        self.write("repo/a", "a")
        with open(self.repo / "sparse", "wb") as file:
            file.write(b"text")
            file.truncate(1 << 30)
        with open(self.repo / "long", "wb") as file:
            file.write(b"text\n" * 2000)
            file.truncate(1 << 30)
        os.mkfifo(self.repo / ".gitignore")
        os.symlink(".", self.repo / "loop")
        files, err = self.files("-c", "repo")
        self.assertEqual(files, {"a": "a"})
        self.assertIn("1 binary file: sparse", err)
        self.assertIn("1 large file: long", err)


class Revision(GitTest):
    def test_without_a_work_tree(self):
        """Of the current directory's repository, bare too: a tree, a directory of it, a file."""
        for name, text in (("a.c", "1"), ("src/b.c", "2"), ("src/deep/c.c", "3"), ("bin", "\0"), ("yarn.lock", "l"),
                           ("v/x", "v"), (".gitattributes", "v/* linguist-vendored"), (".env", "S=1")):
            self.write("repo/" + name, text)
        os.symlink("a.c", self.repo / "link")
        self.commit()
        self.git("tag", "-a", "-m", "x", "one")
        self.write("repo/a.c", "other")
        self.commit()
        self.git("clone", "-q", "--bare", self.repo, self.dir / "bare.git", where=self.dir)
        for where in (self.repo, self.repo / "src", self.dir / "bare.git"):
            with self.subTest(where):
                self.dir, before = where, self.dir
                try:
                    files, err = self.files("-c", "git:one")
                    self.assertEqual(list(files.items()), [
                        (".gitattributes", "v/* linguist-vendored"), ("a.c", "1"), ("src/b.c", "2"), ("src/deep/c.c", "3")])
                    for words in ("1 file that looks like a secret: .env", "1 binary file: bin", "1 symbolic link: link",
                                  "1 generated file: yarn.lock", "1 vendored file: v/x"):
                        self.assertIn(words, err)
                    self.assertEqual(self.files("-c", "git:HEAD~1:src")[0], {"src/b.c": "2", "src/deep/c.c": "3"})
                    self.assertEqual(self.files("-c", "git:one:a.c", "-c", "git:HEAD:a.c")[0], {"one:a.c": "1", "HEAD:a.c": "other"})
                    self.assertEqual(list(self.files("-c", "git:one", "--include", "*.c", "--exclude", "src/deep")[0]),
                                     ["a.c", "src/b.c"])
                    self.refused(8, "the revision nowhere", "-c", "git:nowhere")
                    self.refused(8, "the revision one:gone", "-c", "git:one:gone")
                    self.refused(2, "names no revision", "-c", "git:")
                finally:
                    self.dir = before
        self.refused(8, "git:REV is of the repository that the directory . is in", "-c", "git:HEAD")


class Diff(GitTest):
    def setUp(self):
        super().setUp()
        self.lines = [f"line {i}" for i in range(1, 41)]
        for name in ("same", "edited", "gone", "dir/edited", "staged", "yarn.lock"):
            self.write("repo/" + name, "\n".join(self.lines) + "\n")
        self.commit("base")
        self.git("tag", "base")

    def change(self):
        edited = [*self.lines]
        edited[9:10] = ["new a", "new b"]
        del edited[30:32]
        for name in ("edited", "dir/edited", "staged", "yarn.lock"):
            self.write("repo/" + name, "\n".join(edited) + "\n")
        self.git("add", "staged")
        (self.repo / "gone").unlink()
        self.write("repo/new\n\x1b", "brand\nnew\n")
        self.git("add", "-N", "new\n\x1b")
        self.write("repo/same", "\n".join(self.lines) + "\n") # touched, not changed
        self.write("repo/loose", "x\n")

    def compared(self, *arguments):
        """`context.files`, {path: change}, and what standard error says."""
        lines = ("import json", "told = changes()",
                 "FINAL(json.dumps([dict(context.files), told]))")
        outcome = self.replay([turn(block(*lines))], *arguments, env=self.env)
        self.assertEqual(outcome.status, 0, outcome.err)
        files, changes = json.loads(outcome.out)
        self.assertEqual([change["path"] for change in changes], sorted(change["path"] for change in changes))
        return files, {change["path"]: change for change in changes}, outcome.err

    def git_says(self, *arguments, where=None):
        names = {"M": "modified", "A": "added", "D": "deleted"}
        told = self.git("diff", "--name-status", "--no-renames", "-z", "--relative", *arguments, where=where).split("\0")
        return {path.replace("\n", "\\n").replace("\x1b", "\\x1b"): names[kind]
                for kind, path in zip(told[:-1:2], told[1::2])}

    def statuses(self, changes):
        return {path: change["status"] for path, change in changes.items()}

    def check_hunks(self, change, path, *revisions):
        """Each hunk as git has it, and its lines of the new file."""
        wanted = self.git("diff", "--no-color", *revisions, "--", path).partition("@@")
        text = "".join(hunk["text"] for hunk in change["hunks"])
        without = [line.partition(" @@")[0] for line in (wanted[1] + wanted[2]).splitlines()]
        self.assertEqual([line.partition(" @@")[0] for line in text.splitlines()], without)

    def test_work_tree(self):
        self.change()
        files, changes, err = self.compared("-c", "repo", "--diff", "base")
        self.assertEqual(self.statuses(changes), self.git_says("base"))
        self.assertEqual(set(files), {"edited", "dir/edited", "staged", "new\\n\\x1b"})
        self.assertEqual(files["edited"], (self.repo / "edited").read_text())
        self.assertIn("1 generated file: yarn.lock", err)
        first, second = changes["edited"]["hunks"]
        self.assertEqual((first["start"], first["end"], first["changed"]), (7, 14, [[10, 11]]))
        self.assertEqual(second["changed"], [[30, 31]])  # a line between them is gone
        self.assertEqual(self.lines[27:29], files["edited"].split("\n")[28:30])
        self.check_hunks(changes["edited"], "edited", "base")
        self.assertEqual(changes["new\\n\\x1b"]["hunks"][0]["changed"], [[1, 2]])
        self.assertEqual(changes["gone"]["hunks"], [])
        self.assertEqual(changes["yarn.lock"]["hunks"], []) # left out, and named
        files, changes, _ = self.compared("-c", "repo/dir", "--diff", "base")
        self.assertEqual(self.statuses(changes), self.git_says("base", where=self.repo / "dir"))
        self.assertEqual(set(files), {"edited"})
        _, changes, _ = self.compared("-c", "repo", "--diff", "base", "--untracked", "--exclude", "*edited")
        self.assertEqual(self.statuses(changes), {
            "gone": "deleted", "staged": "modified", "loose": "untracked",
            "yarn.lock": "modified", "new\\n\\x1b": "added"})

    def test_revisions(self):
        """Since the branch began, what is in the work tree does not count; and from commit to commit."""
        self.git("checkout", "-q", "-b", "topic")
        self.change()
        self.commit("topic")
        self.git("checkout", "-q", "main")
        self.write("repo/same", "on main\n")
        self.commit("main")
        self.git("pack-refs", "--all")
        self.git("gc", "-q")
        self.write("repo/edited", "not committed\n")
        for comparison in ("main...topic", "main..topic", "base..topic", "topic..HEAD", "topic...", "HEAD~1", "main^{commit}"):
            with self.subTest(comparison):
                files, changes, _ = self.compared("-c", "repo", "--diff", comparison)
                self.assertEqual(self.statuses(changes), self.git_says(comparison))
                for path in files:
                    if ".." in comparison and "\\" not in path:
                        self.check_hunks(changes[path], path, comparison)
        files, _, _ = self.compared("-c", "repo", "--diff", "main...topic")
        self.assertEqual(files["edited"], self.git("show", "topic:edited"))

    def test_very_many_lines(self):
        """One hunk without lines, from the first to the last that is other, for it must not take long."""
        lines = [str(number * number % 1013) for number in range(60000)]
        self.write("repo/long", "\n".join(lines) + "\n")
        self.commit()
        for edit, expected in (({100: "a", 59000: "b"}, [101, 59001]), ({0: "x\ny"}, [1, 2]),
                               ({59999: "end"}, [60000, 60000])):
            edited = [edit.get(number, line) for number, line in enumerate(lines)]
            self.write("repo/long", "\n".join(edited) + "\n")
            _, changes, _ = self.compared("-c", "repo", "--diff", "HEAD")
            (hunk,) = changes["long"]["hunks"]
            self.assertEqual((hunk["start"], hunk["end"], hunk["changed"], hunk["text"]), (*expected, [expected], ""))
        del lines[5]
        self.write("repo/long", "\n".join(lines) + "\n")
        (hunk,) = self.compared("-c", "repo", "--diff", "HEAD")[1]["long"]["hunks"]
        self.assertEqual((hunk["start"], hunk["end"], hunk["changed"]), (6, 5, []))

    def test_nothing_changed(self):
        files, changes, _ = self.compared("-c", "repo", "--diff", "HEAD")
        self.assertEqual((files, changes), ({}, {}))

    def test_sparse_checkout_is_no_deletion(self):
        self.git("sparse-checkout", "set", "nothing")
        _, changes, _ = self.compared("-c", "repo", "--diff", "HEAD")
        self.assertEqual(changes, {})

    def test_a_secret_that_was_taken_out(self):
        """Stands in no file any more, and still in the hunk."""
        self.write("repo/same", "key = " + TOKEN + "\n")
        self.commit()
        self.write("repo/same", "key = none\n")
        files, changes, err = self.compared("-c", "repo", "--diff", "HEAD")
        self.assertEqual((files, changes["same"]["hunks"]), ({"same": "key = none\n"}, []))
        self.assertIn("the hunks of 1 changes are left out", err)
        _, changes, _ = self.compared("-c", "repo", "--diff", "HEAD", "--allow-secrets")
        self.assertIn(TOKEN, changes["same"]["hunks"][0]["text"])

    def test_refused(self):
        (self.dir / "plain").mkdir()
        self.refused(8, "plain is in none", "-c", "plain", "--diff", "HEAD")
        for revision in ("nowhere", "-x", "HEAD:same", "HEAD@{1}", ":/x", "../../x", "a...b"):
            self.refused(8, "revision", "-c", "repo", "--diff", revision)
        self.git("checkout", "-q", "--orphan", "other")
        self.commit()
        self.refused(8, "merge base", "-c", "repo", "--diff", "main...other")
        with open(self.repo / ".git/config", "a") as config:
            config.write("[extensions]\nrefStorage = reftable\n")
        self.refused(8, "git refs migrate --ref-format=files", "-c", "repo", "--diff", "nowhere")

    def test_alternates(self):
        """Not read, unless they are allowed."""
        self.git("clone", "-q", "--shared", self.repo, self.dir / "shared", where=self.dir)
        self.write("shared/same", "other\n")
        self.refused(8, "allow-alternates allows that", "-c", "shared", "--diff", "HEAD")
        files, changes, _ = self.compared("-c", "shared", "--diff", "HEAD", "--allow-alternates")
        self.assertEqual((list(files), self.statuses(changes)), (["same"], {"same": "modified"}))
        os.mkfifo(self.repo / ".git/objects/pack/pack-1.idx")
        self.refused(8, "links or FIFOs", "-c", "repo", "--diff", "HEAD")


if __name__ == "__main__":
    unittest.main()

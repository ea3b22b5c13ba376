"""A repository as a context, through the program: what is taken, what is left out, and what is said."""

import json
import os
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
        """What `context.files` is, and what standard error says."""
        script = [turn(block("import json", "FINAL(json.dumps(dict(context.files)))"))]
        outcome = self.replay(script, *arguments, env=self.env, **more)
        self.assertEqual(outcome.status, 0, outcome.err)
        return json.loads(outcome.out), outcome.err

    def refused(self, status, words, *arguments, **more):
        outcome = self.replay([turn("FINAL(x)")], *arguments, env=self.env, **more)
        self.assertEqual((outcome.status, outcome.out), (status, ""), outcome.err)
        self.assertIn(words, outcome.err)


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
                      "1 vendored file: third/v.c", "1 large file: large; to send larger ones, give --max-file-size"):
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

    def test_too_much(self):
        self.write("repo/a", "a" * 5000)
        self.refused(8, "larger than 4096 bytes (--max-context)", "-c", "repo", "--max-context", "4K")

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


if __name__ == "__main__":
    unittest.main()

"""The listing of a directory beside git's own listing of it: real repositories, with every
awkward case that git knows, and trees with ignore rules by chance."""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

LISTER = os.path.join(os.environ["RLMD_BUILD_ROOT"], "tests/lister/list")
LISTED = "--cached", "--others", "--exclude-standard"


class ListingTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        (self.dir / "home").mkdir()
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(self.dir / "home"), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CEILING_DIRECTORIES": str(self.dir),
            **{name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "GCOV_PREFIX")
               if name in os.environ},
        }
        self.repo = self.dir / "repo"

    def git(self, *arguments, where=None, **more):
        return subprocess.run(["git", "-c", "protocol.file.allow=always", *map(str, arguments)], cwd=where or self.repo,
                              env=self.env, check=True, stdout=subprocess.PIPE, **more).stdout

    def init(self, where=None):
        where = where or self.repo
        where.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", where=where)

    def write(self, name, text="text\n", where=None):
        path = os.path.join(os.fsencode(where or self.repo), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(os.fsencode(text))

    def commit(self, where=None):
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", "x", "--allow-empty", where=where)

    def run_lister(self, where=None, *options):
        return subprocess.run([LISTER, *options, where or self.repo], cwd=self.dir, env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def listed(self, where=None, *options):
        """[(kind, path)], in their order, and what was said."""
        done = self.run_lister(where, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.split(b"\0")[:-1]
        return [(line[:1].decode(), line[2:]) for line in lines], done.stderr.decode()

    def wanted(self, where=None, *specs):
        """git's: what is there, and no directory, nor behind a link."""
        where = os.fsencode(where or self.repo)
        listed = self.git("ls-files", "-z", *LISTED, "--", *specs, where=where)
        paths = set(listed.split(b"\0")) - {b""}

        def there(path):
            whole = os.path.join(where, path)
            parent = os.path.realpath(os.path.dirname(whole))
            return (parent == os.path.join(os.path.realpath(where), os.path.dirname(path)).rstrip(b"/")
                    and os.path.lexists(whole) and (os.path.islink(whole) or os.path.isfile(whole)))

        return sorted(path for path in paths if there(path))

    def assert_as_git(self, where=None):
        found = [path for kind, path in self.listed(where)[0] if kind in "flgv?"]
        self.assertEqual(found, self.wanted(where))
        return found


class AsGit(ListingTest):
    def test_ignore_rules(self):
        """Nested, negated, of directories, anchored, with blanks and escapes; info/exclude; the user's own."""
        self.init()
        for name in ("a.o", "keep.o", "b/a.o", "b/keep.o", "build/x", "src/build/x", "src/build.c", "doc/a/b/x.txt",
                     "doc/x.txt", "!bang", "#hash", "end ", "local", "user", "deep/er/x.log", "deep/er/keep.log", "starred/xb", "starred/c/b",
                     "logs/keep", "logs/other", "only/dir/f", "ca[t", "cat", "a\\b", "UPPER.TXT"):
            self.write(name)
        self.write(".gitignore", "\n".join((
            "*.o", "!keep.o", "/build/", "doc/**/x.txt", "\\!bang", "\\#hash", "end\\ ", "# comment", "",
            "logs/*", "!logs/keep", "only/", "!only/dir/f", "ca[[]t", "a\\\\b", "*.txt\r", "trailing   ", "starred/**/b", "**//[cx]*")))
        self.write("deep/.gitignore", "\ufeff*.log\n!er/keep.log")
        self.write(".git/info/exclude", "local\n")
        self.write("config/git/ignore", "user\n", where=self.dir)
        self.env["XDG_CONFIG_HOME"] = str(self.dir / "config")
        found = self.assert_as_git()
        self.assertNotIn(b"user", found)
        self.assertNotIn(b"local", found)
        self.assertIn(b"deep/er/keep.log", found)
        self.write(".gitconfig", "[core]\n\texcludesFile = ~/mine\n", where=self.dir / "home")
        self.write("mine", "UPPER*\n", where=self.dir / "home")
        found = self.assert_as_git()
        self.assertIn(b"user", found)
        self.assertNotIn(b"UPPER.TXT", found)

    def test_rules_that_are_slips(self):
        """A range that goes backwards is its first character, and a line ends at a NUL, as git has them."""
        self.init()
        for name in ("a", "b", "c", "x.o", "x.c", "kept", "kept2"):
            self.write(name)
        self.write(".gitignore", "[b-a]\n*.o \0junk\nke\0\npt\n\0\n")
        self.assertEqual(self.assert_as_git(), [b".gitignore", b"a", b"c", b"kept", b"kept2", b"x.c"])

    def test_tracked(self):
        """Files of the index are listed though they be ignored; those that are gone are not."""
        self.init()
        for name in ("gone", "out/tracked", "out/deep/er/tracked", "tracked.o", "stays"):
            self.write(name)
        self.commit()
        self.write(".gitignore", "out\n*.o\n")
        self.write("out/.gitignore", "!new\n")
        for name in ("out/new", "out/deep/new", "new.o", "x/new.o"):
            self.write(name)
        (self.repo / "gone").unlink()
        found = self.assert_as_git()
        self.assertIn(b"out/deep/er/tracked", found)
        self.assertNotIn(b"out/new", found)
        for where in ("out", "out/deep", "x"):
            self.assert_as_git(self.repo / where)
        in_index = self.git("ls-files", "-z").split(b"\0")
        self.assertEqual([path for kind, path in self.listed(None, "-t")[0] if kind == "f"],
                         [path for path in in_index if path not in (b"", b"gone")])
        self.git("rm", "-q", "--cached", "stays")
        self.assertIn(b"stays", self.assert_as_git())

    def test_names(self):
        """Line feeds, escapes, quotes, bytes that are no UTF-8; and the order of bytes."""
        self.init()
        for name in (b"a\nb", b"\x1b[31m", b"\xff\xfe", b'"q"', b"a b", b"a.b", b"a/b", b"a0", b"-x", b":x", b"a\\n",
                     b"\xc3\xa4", b"deep\n/\xe9"):
            self.write(name)
        self.write(".gitignore", b"\xe9\n")
        self.commit()
        self.write(b"new\xff")
        self.assert_as_git()

    def test_conflict_and_intent(self):
        """A path with three entries is one; one that was only meant to be added is listed."""
        self.init()
        self.write("f", "1\n")
        self.commit()
        self.git("checkout", "-q", "-b", "other")
        self.write("f", "2\n")
        self.commit()
        self.git("checkout", "-q", "main")
        self.write("f", "3\n")
        self.commit()
        subprocess.run(["git", "merge", "-q", "other"], cwd=self.repo, env=self.env, check=False,
                       stdout=subprocess.DEVNULL)
        self.write("intended")
        self.git("add", "-N", "intended")
        self.assertEqual(self.assert_as_git(), [b"f", b"intended"])

    def test_links_and_others(self):
        self.init()
        self.write("file")
        self.write("dir/file")
        for link, target in (("l", "file"), ("d", "dir"), ("out", "/etc/passwd"), ("loop", "loop"), ("up", "..")):
            os.symlink(target, self.repo / link)
        self.commit()
        os.symlink("file", self.repo / "new")
        os.mkfifo(self.repo / "fifo")
        self.write("was/file")
        self.commit()
        shutil.rmtree(self.repo / "was")
        os.symlink("dir", self.repo / "was")
        self.assert_as_git()
        self.assertIn(("*", b"fifo"), self.listed()[0])

    def test_hostile_rules(self):
        """Rules that are links or FIFOs are not followed and not waited for, as git does not; huge ones do not grow."""
        self.init()
        self.write("secret", "*\n", where=self.dir)
        self.write("a/file")
        os.symlink(self.dir / "secret", self.repo / "a/.gitignore")
        os.mkfifo(self.repo / ".gitattributes")
        self.write("b/.gitignore", "*a" * 4000 + "b\n" + "[" * 5000
                   + "\n" + "**/" * 2000 + "x\n!\n/\n\\\n[a-\n[[:alpha:]\n")
        self.write("b/" + "a" * 200)
        self.write("c/.gitignore", "a" + "*" * 8192 + "\nb" + "*" * 8191 + "\n") # too long for a pattern, and just not
        self.write("c/.gitattributes", "a" + "*" * 8192 + " linguist-generated\nd" + "*" * 8191 + " linguist-generated\n")
        for name in "abd":
            self.write("c/" + name)
        self.assertEqual(self.listed()[0], [
            ("*", b".gitattributes"), ("l", b"a/.gitignore"), ("f", b"a/file"), ("f", b"b/.gitignore"), ("f", b"b/" + b"a" * 200),
            ("f", b"c/.gitattributes"), ("f", b"c/.gitignore"), ("f", b"c/a"), ("g", b"c/d")])

    def test_too_many_rules(self):
        """Where they pile up, or are huge, nothing below is listed, and that is told: what they ignore stays here."""
        self.init()
        rules = "# rules\n" * 150000 + "secret\n"
        for name in ("a/.gitignore", "a/b/.gitignore", "c/.gitignore"):
            self.write(name, rules)
        self.write("d/.gitignore", rules * 2)
        for name in ("a/secret", "a/b/secret", "c/secret", "d/secret", "a/b/file", "c/file", "e"):
            self.write(name)
        self.assertEqual(self.listed()[0], [("f", b"a/.gitignore"), ("!", b"a/b/"), ("f", b"c/.gitignore"), ("f", b"c/file"),
                                            ("!", b"d/"), ("f", b"e")])
        for where in ("d", "a/b"):
            self.assertIn(b"more than 2 MiB", self.run_lister(self.repo / where).stderr)
        self.write(".git/info/exclude", rules * 2)
        self.assertIn(b"more than 2 MiB", self.run_lister().stderr)

    def test_submodules_and_repositories(self):
        """A submodule's contents are listed where that is asked for; a repository that is none of them never."""
        other = self.dir / "other"
        self.init(other)
        self.write("inside", where=other)
        self.write(".gitignore", "*.o\n", where=other)
        self.commit(other)
        self.init()
        self.write("file")
        self.git("submodule", "--quiet", "add", other, "sub")
        self.git("submodule", "--quiet", "add", other, "deep/sub")
        self.commit()
        self.init(self.repo / "nested")
        self.write("nested/file")
        self.write("sub/new")
        self.write("sub/x.o")
        self.write("nested2/.git/HEAD", "no repository\n")
        self.write("nested2/file")
        self.assert_as_git()
        self.assertEqual([path for kind, path in self.listed()[0] if kind == "s"], [b"deep/sub/", b"nested/", b"sub/"])
        found = [path for kind, path in self.listed(None, "-s")[0] if kind == "f"]
        inside = [sub + path for sub in (b"sub/", b"deep/sub/")
                  for path in self.wanted(self.repo / os.fsdecode(sub))]
        self.assertEqual(found, sorted(self.wanted() + inside))
        self.assertEqual(self.assert_as_git(self.repo / "sub"), [b".gitignore", b"inside", b"new"])
        self.git("submodule", "--quiet", "deinit", "-f", "sub")
        self.assert_as_git()

    def test_worktree_and_sparse_checkout(self):
        self.init()
        for name in ("a/x", "b/y", "top", ".gitignore"):
            self.write(name)
        self.commit()
        tree = self.dir / "tree"
        self.git("worktree", "add", "-q", tree, "-b", "side")
        self.write("new", where=tree)
        self.write(".git/info/exclude", "new*\n")
        self.write("new2", where=tree)
        self.assert_as_git(tree)
        self.assert_as_git(tree / "a")
        for options in (("--cone",), ("--no-cone",), ("--cone", "--sparse-index")):
            with self.subTest(options):
                self.git("sparse-checkout", "set", *options, "a", where=tree)
                if options[-1] == "--sparse-index":
                    done = self.run_lister(tree)
                    self.assertEqual(done.returncode, 8)
                    self.assertIn(b"git sparse-checkout reapply --no-sparse-index", done.stderr)
                else:
                    self.assert_as_git(tree)
        self.git("update-index", "--split-index")
        self.assertIn(b"git update-index --no-split-index", self.run_lister().stderr)

    def test_rules_that_a_sparse_checkout_leaves_out(self):
        """They hold all the same; where they cannot be read, nobody knows what is ignored in there."""
        self.init()
        for name in ("in/x", "out/x", "out/.gitignore"):
            self.write(name, "*.o\n")
        self.write("out/.gitattributes", "*.c linguist-generated\n")
        self.commit()
        self.git("sparse-checkout", "set", "--no-cone", "/in/")
        self.assertFalse((self.repo / "out").exists())
        for name in ("out/a.o", "out/a.c", "out/deep/a.o"):
            self.write(name)
        self.assert_as_git()
        self.assertEqual(self.listed()[0], [("f", b"in/x"), ("g", b"out/a.c")])
        self.assertEqual(self.listed(self.repo / "out")[0], [("g", b"a.c")])
        (self.repo / ".git/objects").rename(self.dir / "objects")
        (self.repo / ".git/objects").mkdir()
        self.assertEqual(self.listed()[0], [("f", b"in/x"), ("!", b"out/")])
        self.assertIn(b"cannot be read", self.run_lister(self.repo / "out").stderr)

    def test_many_broken_repositories(self):
        """Some are told of, all of them counted."""
        for number in range(8):
            self.init(self.dir / "plain" / str(number))
            self.write(f"{number}/.git/index", "DIRC" + "?" * 100, where=self.dir / "plain")
        found, said = self.listed(self.dir / "plain")
        self.assertEqual([kind for kind, _ in found], ["?"] * 8)
        self.assertEqual(said.count("cannot read the index"), 5)

    def test_no_work_tree(self):
        """All there is; and of the repositories in it what each lists."""
        for name in ("plain/a/.gitignore", "plain/a/x.o", "plain/b"):
            self.write(name, "*.o\n", where=self.dir)
        self.init(self.dir / "plain/repo")
        self.write(".gitignore", "*.o\n", where=self.dir / "plain/repo")
        self.write("x.o", where=self.dir / "plain/repo")
        self.write("x.c", where=self.dir / "plain/repo")
        self.assertEqual([path for _, path in self.listed(self.dir / "plain")[0]],
                         [b"a/.gitignore", b"a/x.o", b"b", b"repo/.gitignore", b"repo/x.c"])

    def test_by_chance(self):
        """Trees and ignore rules that nobody thought of."""
        chance = random.Random(13)
        parts = ["a", "b", "ab", "a.c", "b.o", "x y", "B", "a b ", "[a]", "\\a", "!a", "#a", "*", "\xe9", "\udcff", "a-b", "\n"]
        pieces = ["a", "b", "*", "**", "?", "[ab]", "[!a]", "/", "/", "\\a", ".c", ".o", "x y", "[a-b]*", "[[:upper:]]",
                  "***", "\\", "\\*", "[]a]", "[^]a]", "[a", "[b-a]", "[[:foo:]]", "[\\a]", "[a\\]b]", "!", "#", "\t",
                  "  ", "\\ ", "\r", "\xe9", "\udcff", "[a-]", "[-a]", "[/]", "[!/]", "/**/", "[a-\\c]", "[[:a]", "\0"]
        for number in range(25):
            shutil.rmtree(self.repo, ignore_errors=True)
            self.init()
            folders = [""]
            for _ in range(8):
                folders.append(chance.choice(folders) + chance.choice(parts) + "/")
            for name in {chance.choice(folders) + chance.choice(parts) for _ in range(40)}:
                try:
                    self.write(name)
                except OSError:
                    pass # a directory has that name
            if chance.random() < 0.6:
                self.commit()
            for folder in {"", *chance.sample(folders, 3)}:
                lines = ["".join(chance.choices(pieces, k=chance.randint(1, 5))) for _ in range(6)]
                text = "\n".join(chance.choice(["", "", "!"]) + line + chance.choice(["", "", "/"])
                                 for line in lines)
                try:
                    self.write(folder + ".gitignore", text)
                except OSError:
                    pass
            with self.subTest(number):
                self.assert_as_git()


class Selected(ListingTest):
    def setUp(self):
        super().setUp()
        self.init()
        for name in ("src/a.c", "src/net/b.c", "src/net/b.h", "src2/a.c", "README.md", "docs/x.md", "Docs/y.MD",
                     "src/[x].c", "build/out.c", "build/deep/out.c"):
            self.write(name)
        self.write(".gitignore", "build\n")
        self.commit()

    def paths(self, *options):
        found, said = self.listed(None, *options)
        return [path for _, path in found], said

    def test_pathspecs(self):
        """As git has them, from the directory on."""
        for specs in (("src",), ("src/",), ("*.c",), (":(glob)src/*.c",), (":(glob)**/*.md",), (":(icase)docs",),
                      ("src/*",), ("s*", ":!src/net"), (":^*.c",), (":(literal)src/[x].c",), ("src/[x].c",), (".",),
                      ("./src",), (":(exclude,glob)src/*.c", "src"), (":(top)src",), ("nothing",), ("src/a.c/",)):
            with self.subTest(specs):
                found, _ = self.paths(*("-i" + spec for spec in specs))
                self.assertEqual(found, self.wanted(None, *specs))
        self.assertEqual(self.paths("-x*.c")[0], self.wanted(None, ".", ":!*.c"))
        self.assertEqual(self.paths("-isrc", "-xsrc/net", "-x*.h")[0], self.wanted(None, "src", ":!src/net"))
        for spec in (":(attr:x)a", ":(glob,literal)a", "", ":(glob"):
            self.assertEqual(self.run_lister(None, "-i" + spec).returncode, 8)

    def test_a_list(self):
        """Nothing else is listed; what git ignores is, where it is named; what is not there is told."""
        found, said = self.paths("-fsrc/net", "-fREADME.md", "-f./build/out.c", "-fgone", "-fsrc/net/", "-fsrc/gone")
        self.assertEqual(found, [b"README.md", b"build/out.c", b"src/net/b.c", b"src/net/b.h"])
        self.assertEqual(said, "missing gone\nmissing src/gone\n")
        self.assertEqual(self.paths("-f.")[0], self.wanted())
        self.assertEqual(self.paths("-f.", "-x*.c")[0], self.wanted(None, ":!*.c"))
        for name in ("/etc/passwd", "../x", "a/../../x", ".."):
            self.assertIn(b"not below the directory", self.run_lister(None, "-f" + name).stderr)


class Marks(ListingTest):
    def test_attributes(self):
        """Generated or vendored files, by the last word of the nearest file; names, unless they are called ours."""
        self.init()
        self.write(".gitattributes", "*.gen linguist-generated\nthird/** linguist-vendored=true\n"
                   "/own.gen -linguist-generated\n*.txt text linguist-generated=false\n\"quoted\" linguist-generated\n")
        self.write("sub/.gitattributes", "*.gen !linguist-generated\nyarn.lock -linguist-generated\nlogo.svg -linguist-generated\n*.pb linguist-generated=true")
        self.write(".git/info/attributes", "info linguist-vendored\n")
        kinds = {"a.gen": "g", "own.gen": "f", "third/x": "v", "third/deep/y": "v", "a.txt": "f", "sub/a.gen": "f",
                 "sub/yarn.lock": "f", "sub/x.pb": "g", "yarn.lock": "g", "go.sum": "g", "x/Cargo.lock": "g", "info": "v",
                 "lock": "f", "art/Logo.SVG": "g", "sub/logo.svg": "f", "a.min.js": "g", "app.js": "f",
                 "a.css.map": "g", "site.map": "f", "x.eps": "g", ".svg": "f", "svg": "f"}
        for name in kinds:
            self.write(name)
        found = {path.decode(): kind for kind, path in self.listed()[0]}
        self.assertEqual({name: found[name] for name in kinds}, kinds)


class Trust(ListingTest):
    def test_own_configuration_is_not_followed(self):
        """Files that the repository's configuration names are neither read nor run, and told."""
        self.init()
        self.write("a")
        self.write("b")
        self.write("excludes", "a\n", where=self.dir)
        for key, value in (("core.excludesFile", self.dir / "excludes"), ("include.path", self.dir / "fifo"),
                           ("core.attributesFile", self.dir / "fifo"), ("core.fsmonitor", "touch ran"),
                           ("filter.x.clean", "touch ran"), ("core.hooksPath", "/tmp"), ("core.ignoreCase", "false")):
            self.git("config", key, value)
        os.mkfifo(self.dir / "fifo")
        found, said = self.listed()
        self.assertEqual(found, [("f", b"a"), ("f", b"b")])
        for key in ("core.excludesfile", "include.path", "core.attributesfile", "core.fsmonitor", "filter.x.clean",
                    "core.hookspath"):
            self.assertIn(key, said.lower())
        self.assertNotIn("ignorecase", said.lower())
        self.assertFalse((self.repo / "ran").exists())

    def refused(self, words, where=None):
        done = self.run_lister(where)
        self.assertEqual((done.returncode, done.stdout), (8, b""))
        self.assertIn(words, done.stderr.decode())

    def test_a_link_to_another_repository(self):
        """".git" that leads to a repository which knows nothing of this tree."""
        self.init()
        self.write("a")
        self.commit()
        for text in (f"gitdir: {self.repo}/.git\n", "gitdir: ../repo/.git"):
            self.write("fake/.git", text, where=self.dir)
            self.refused("does not say that this is a work tree", self.dir / "fake")
        (self.dir / "fake/.git").unlink()
        os.symlink(self.repo / ".git", self.dir / "fake/.git")
        self.refused("does not say that this is a work tree", self.dir / "fake")
        self.init(self.dir / "shared")
        self.write("shared/.git/commondir", str(self.repo / ".git"), where=self.dir)
        self.refused("does not say that this is a work tree", self.dir / "shared")

    def test_a_link_to_nowhere(self):
        """A work tree whose repository was moved, as git has it: nobody knows what it ignores."""
        self.init()
        self.commit()
        tree = self.dir / "tree"
        self.git("worktree", "add", "-q", tree, "-b", "side")
        self.write(".gitignore", "*.log\n", where=tree)
        self.write("sub/x.log", where=tree)
        self.assert_as_git(tree)
        self.repo.rename(self.dir / "moved")
        for where in (tree, tree / "sub"):
            self.refused(f"{tree}/.git leads to no repository", where)
        for text in ("gitdir: /etc", "nothing"):
            (tree / ".git").write_text(text)
            self.refused("leads to no repository", tree)
        (tree / ".git").unlink()
        self.assertIn(("f", b"sub/x.log"), self.listed(tree)[0])

    def test_a_repository_elsewhere(self):
        """As git makes it; and once its configuration names the tree."""
        self.git("init", "-q", "--separate-git-dir", self.dir / "elsewhere", self.repo, where=self.dir)
        self.write("a")
        self.refused(f"git -C {self.repo} config core.worktree {self.repo}")
        self.git("config", "core.worktree", self.repo)
        self.assert_as_git()

    def test_forms_that_are_not_read(self):
        """SHA-256 says so, and what to do instead, which works; with an index and without."""
        self.git("init", "-q", "--object-format=sha256", self.repo, where=self.dir)
        self.write("a")
        self.refused(f"(git -C {self.repo} archive HEAD | tar -x -C COPY)")
        self.commit()
        self.refused("SHA-256")
        (self.dir / "copy").mkdir()
        with subprocess.Popen(["tar", "-x", "-C", self.dir / "copy"], stdin=subprocess.PIPE) as tar:
            tar.communicate(self.git("archive", "HEAD"))
        self.assertEqual(self.listed(self.dir / "copy")[0], [("f", b"a")])

    def test_broken(self):
        """An index that is none, that is a FIFO, that is a link."""
        self.init()
        self.write("a")
        index = self.repo / ".git/index"
        index.write_bytes(b"DIRC" + b"\xff" * 100)
        self.refused("cannot read the index")
        index.unlink()
        os.mkfifo(index)
        self.refused("no regular file")
        index.unlink()
        os.symlink("/etc/passwd", index)
        self.refused("no regular file")

    @unittest.skipIf(os.geteuid() != 0, "only root can give a directory to somebody else")
    def test_a_foreign_owner(self):
        """Refused, with the way to allow it, which works; as git has it."""
        self.init()
        self.write("a")
        for path in (self.repo, self.repo / ".git"):
            os.chown(path, 12345, 12345)
        words = f"git config --global --add safe.directory {self.repo}"
        self.refused(words)
        self.refused("(12345)")
        self.env["SUDO_UID"] = "12345"
        self.assertEqual(self.listed()[0], [("f", b"a")])
        del self.env["SUDO_UID"]
        self.env["HOME"] = str(self.dir)
        for value, allowed in ((str(self.repo), True), ("", False), ("*", True), ("/elsewhere", True), ("", False),
                               (f"{self.dir}/*", True), ("", False), ("~/elsewhere", False), ("~/repo", True)):
            self.git("config", "--global", "--add", "safe.directory", value, where=self.dir)
            with self.subTest(value):
                self.assertEqual(self.run_lister().returncode, 0 if allowed else 8)
        self.env["HOME"] = str(self.dir / "home")
        self.git("config", "--file", self.repo / ".git/config", "safe.directory", "*", where=self.dir)
        self.refused(words)


if __name__ == "__main__":
    unittest.main()

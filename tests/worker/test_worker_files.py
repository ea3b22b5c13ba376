"""worker/memory_tree.py and memory_files.py: files in memory behave as files do, without the kernel."""

import errno
import io
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.environ["RLMD_BUILD_ROOT"], "worker"))
import memory_tree
from memory_files import NoFile, Node


def absent(path, key):
    return NoFile(errno.ENOENT, f"not here: {key}", path)


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.asked = []
        self.tree = memory_tree.Tree(absent, lambda path, silent: self.asked.append((path, silent)))
        self.open = self.tree.open

    def write(self, path, data="x", mode="w"):
        with self.open(path, mode) as file:
            file.write(data)

    def read(self, path, mode="r", **more):
        with self.open(path, mode, **more) as file:
            return file.read()


class Opening(FilesTest):
    def test_what_was_written_is_read(self):
        for mode, data in (("", "a\nhé\n"), ("b", b"\0\xff")):
            with self.subTest(mode):
                self.write("f", data, "w" + mode)
                self.assertEqual(self.read("f", "r" + mode), data)

    def test_the_same_as_real_files(self):
        """Each sequence of steps gives with these files what it gives with a real one."""
        steps = (
            ("w", lambda f: (f.write("ab\ncd"), f.tell(), f.seek(1), f.write("X"))),
            ("r", lambda f: (f.readline(), f.read(1), f.readlines(), f.read())),
            ("a", lambda f: (f.tell(), f.write("tail"), f.tell())),
            ("r+", lambda f: (f.read(2), f.seek(0), f.write("Q"), f.truncate(), f.tell())),
            ("w+b", lambda f: (f.write(b"12345"), f.seek(-2, 2), f.read(), f.seek(9), f.write(b"!"))),
            ("ab+", lambda f: (f.write(b"z"), f.seek(0), f.read(), f.write(b"end"), f.tell())),
            ("rb", lambda f: (f.read(), f.readable(), f.writable(), f.seekable(), f.isatty())),
            ("rb", lambda f: list(f)),
            ("r", lambda f: (f.mode, f.encoding, f.closed, f.line_buffering)),
        )
        import tempfile
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "real")
            for mode, step in steps:
                encoding = {} if "b" in mode else {"encoding": "utf-8"}
                with open(path, mode, **encoding) as real, self.open("ours", mode, **encoding) as ours:
                    with self.subTest(mode):
                        self.assertIs(type(ours), type(real))
                        self.assertEqual(step(ours), step(real))

    def test_bad_arguments_as_real_files(self):
        for arguments in (("f", "q"), ("f", "rw"), ("f", ""), ("f", "rbt"), (os.devnull, "w", 0), ("f", 3),
                          ("f", "rb", -1, "utf-8"), ("a\0b",), (3.5,), (None,), ("f", "rr")):
            with self.subTest(arguments):
                with self.assertRaises((TypeError, ValueError)) as real:
                    open(*arguments)
                with self.assertRaises(type(real.exception)):
                    self.open(*arguments)

    def test_what_is_not_there_is_either_type(self):
        """Code waits for FileNotFoundError or for PermissionError, which it was before."""
        for kind in (FileNotFoundError, PermissionError, OSError):
            with self.assertRaises(kind) as caught:
                self.open("data.csv")
        self.assertEqual(type(caught.exception).__name__, "PermissionError")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, "data.csv"))
        self.assertEqual(str(caught.exception), "not here: /data.csv")

    def test_errors(self):
        self.write("d/f")
        for kind, arguments in ((FileExistsError, ("d/f", "x")), (IsADirectoryError, ("d",)),
                                (IsADirectoryError, ("d", "w")), (NotADirectoryError, ("d/f/g", "w")),
                                (FileNotFoundError, ("",))):
            with self.subTest(arguments), self.assertRaises(kind):
                self.open(*arguments)

    def test_kinds_of_paths(self):
        """str, bytes, PathLike; .. and . and // by their text; a name that is no UTF-8."""
        import pathlib
        self.write("/a/b/f")
        for path in (b"/a/b/f", pathlib.PurePosixPath("a/b/f"), "./a/../a//b/f", "../../a/b/f", "//a/b/f"):
            with self.subTest(path):
                self.assertEqual(self.read(path), "x")
        self.write(b"\xff")
        self.assertIn(b"\xff", self.tree.listdir(b"/"))

    def test_descriptors_of_the_kernel_are_the_kernels(self):
        read, write = os.pipe()
        with self.open(write, "w") as file:
            file.write("through")
        with self.open(read) as file:
            self.assertEqual(file.read(), "through")
        self.assertRaises(OSError, self.open, 12345)

    def test_two_openings_of_one_file(self):
        with self.open("f", "w") as out, self.open("f") as into:
            out.write("later")
            self.assertEqual(into.read(), "")
            out.flush()
            self.assertEqual(into.read(), "later")
            self.tree.remove("f")
            out.write(" still")
            out.flush()
            self.assertEqual(into.read(), " still")

    def test_null(self):
        self.write(os.devnull, "gone")
        self.assertEqual(self.read(os.devnull), "")

    def test_no_descriptor(self):
        """numpy and shutil ask for one, and do without where there is none."""
        with self.open("f", "wb") as file:
            self.assertRaises(io.UnsupportedOperation, file.fileno)


class Descriptors(FilesTest):
    def test_low_level(self):
        fd = self.tree.os_open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.assertTrue(self.tree.has(fd))
        self.assertEqual(self.tree.write(fd, b"abc"), 3)
        self.assertEqual(self.tree.lseek(fd, 1, os.SEEK_SET), 1)
        self.assertEqual(self.tree.read(fd, 10), b"bc")
        self.assertEqual(self.tree.fstat(fd).st_size, 3)
        self.tree.ftruncate(fd, 1)
        self.tree.close(fd)
        self.assertFalse(self.tree.has(fd))
        self.assertEqual(self.read("f"), "a")
        self.assertRaises(OSError, self.tree.read, fd, 1)
        self.assertRaises(FileExistsError, self.tree.os_open, "f", os.O_CREAT | os.O_EXCL)
        self.assertRaises(IsADirectoryError, self.tree.os_open, "/", os.O_TMPFILE | os.O_RDWR)

    def test_open_takes_one_over(self):
        fd = self.tree.os_open("f", os.O_RDWR | os.O_CREAT)
        with self.open(fd, "w", closefd=False) as file:
            file.write("kept")
        self.assertTrue(self.tree.has(fd))
        with self.open(fd, "r") as file:
            self.assertEqual(file.read(), "kept")
        self.assertFalse(self.tree.has(fd))


class Names(FilesTest):
    def test_a_directory_comes_with_its_first_file_and_is_listed(self):
        self.write("a/b/f")
        self.write("a/g")
        self.assertEqual(self.tree.listdir("/a"), ["b", "g"])
        with self.tree.scandir("a") as entries:
            told = [(e.name, e.path, e.is_dir(), e.is_file(), e.stat().st_size) for e in entries]
        self.assertEqual(told, [("b", "a/b", True, False, 0), ("g", "a/g", False, True, 1)])

    def test_nothing_is_listed_that_nobody_made(self):
        for path in ("/", ".", "/tmp", "/etc", "nowhere"):
            with self.subTest(path):
                self.assertRaises(PermissionError, self.tree.listdir, path)
        self.tree.mkdir("empty")
        self.assertEqual(self.tree.listdir("empty"), [])
        self.assertEqual(self.tree.listdir(), ["empty"])
        self.write("f")
        self.assertRaises(NotADirectoryError, self.tree.listdir, "f")

    def test_made_and_removed(self):
        self.tree.makedirs("a/b")
        self.tree.makedirs("a/b", exist_ok=True)
        self.assertRaises(FileExistsError, self.tree.makedirs, "a/b")
        self.assertRaises(FileExistsError, self.tree.mkdir, "a")
        self.write("a/b/f")
        self.assertRaises(OSError, self.tree.rmdir, "a/b")
        self.assertRaises(IsADirectoryError, self.tree.remove, "a/b")
        self.tree.remove("a/b/f")
        self.tree.rmdir("a/b")
        self.assertFalse(self.tree.access("a/b", os.F_OK))
        self.assertRaises(OSError, self.tree.rmdir, "/")
        self.assertRaises(PermissionError, self.tree.remove, "a/b/f")

    def test_renamed(self):
        self.write("a/x/f", "1")
        self.write("g", "2")
        self.tree.rename("a", "z/y")
        self.assertEqual(self.read("z/y/x/f"), "1")
        self.assertFalse(self.tree.access("a/x/f", os.F_OK))
        self.tree.rename("g", "z/y/x/f")
        self.assertEqual(self.read("z/y/x/f"), "2")
        self.tree.rename("z/y/x/f", "z/y/x/f")
        for source, target, kind in (("z", "z/y/w", OSError), ("none", "x", FileNotFoundError),
                                     ("z/y/x/f", "z", IsADirectoryError), ("z", "z/y/x/f", OSError)):
            with self.subTest(source=source, target=target), self.assertRaises(kind):
                self.tree.rename(source, target)
        self.assertEqual(self.tree.listdir("z/y/x"), ["f"])

    def test_a_link_is_the_same_file(self):
        self.write("f", "1")
        self.tree.link("f", "g")
        self.write("g", "more", "a")
        self.assertEqual(self.read("f"), "1more")

    def test_the_place_where_one_is(self):
        self.tree.mkdir("a")
        self.tree.chdir("a")
        self.write("f")
        self.assertEqual((self.tree.getcwd(), self.tree.listdir(), self.read("../a/f")), ("/a", ["f"], "x"))
        self.assertRaises(NotADirectoryError, self.tree.chdir, "f")
        self.assertRaises(FileNotFoundError, self.tree.chdir, "/etc")

    def test_status(self):
        self.write("f", "abc")
        self.tree.chmod("f", 0o600)
        self.tree.utime("f", ns=(5, 7_000_000_009))
        told = self.tree.stat("f")
        self.assertEqual((told.st_size, oct(told.st_mode), told.st_mtime_ns, int(told.st_mtime)),
                         (3, "0o100600", 7_000_000_009, 7))

    def test_who_asked_in_vain_is_told(self):
        self.assertRaises(NoFile, self.tree.stat, "x")
        self.assertFalse(self.tree.access("y", os.R_OK))
        self.write("z")
        self.tree.remove("z")
        self.assertRaises(NoFile, self.tree.stat, "z")
        self.assertEqual(self.asked, [("x", False), ("y", True)])

    def test_given_files_are_read_only(self):
        class Given:
            def get(self, path):
                return {"/g/f": Node(b"data", given=True), "/g": Node(given=True)}.get(path)

            def names(self, _path):
                return ["f"]

        tree = memory_tree.Tree(absent, print, Given())
        self.assertEqual(tree.open("/g/f").read(), "data")
        self.assertEqual(tree.listdir("/g"), ["f"])
        for action in (lambda: tree.open("/g/f", "w"), lambda: tree.open("/g/new", "w"),
                       lambda: tree.remove("/g/f"), lambda: tree.rename("/g/f", "x"),
                       lambda: tree.truncate("/g/f", 0), lambda: tree.open("/g/f", "r+"),
                       lambda: tree.os_open("/g/f", os.O_RDONLY | os.O_TRUNC)):
            self.assertRaises(OSError, action)
        self.assertEqual(tree.open("/g/f").read(), "data")
        with tree.open("mine", "w") as file:
            file.write("kept")
        self.assertRaises(OSError, tree.rename, "mine", "/g/f")
        self.assertEqual(tree.open("mine").read(), "kept")


class Limits(FilesTest):
    def test_the_number_of_files_is_limited(self):
        with self.assertRaises(OSError) as caught:
            for number in range(memory_tree.ENTRIES_MAX + 1):
                self.write(f"f{number}")
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        self.tree.remove("f0")
        self.write("again")

    def test_a_hole_that_is_too_large(self):
        with self.open("f", "wb", 0) as file:
            file.seek(1 << 62)
            self.assertRaises(MemoryError, file.write, b"x")
        self.assertEqual(self.read("f"), "")

    def test_threads(self):
        """Each thread's lines come whole, in files of its own and in one that all append to."""
        def work(number):
            for count in range(50):
                self.write(f"own/{number}-{count}", str(count))
                with self.open("all", "ab", 0) as file:
                    file.write(b"%d\n" % number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.tree.listdir("own")), 400)
        lines = self.read("all").splitlines()
        self.assertEqual(sorted(lines), [str(number) for number in range(8) for _ in range(50)])


if __name__ == "__main__":
    unittest.main()

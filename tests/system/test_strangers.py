"""Files of other users, and files that are none: nothing is written into a stranger's, nothing of it
is taken over, and nothing that never ends is waited for."""

import os
import pathlib
import signal
import stat
import subprocess
import threading
import time
import unittest

import patience
from harness import RLMD, GuardedTest, turn

STRANGER = 65533


class Strangers(GuardedTest):
    def given(self, *arguments, answer="x", **more):
        return self.replay([turn(f"FINAL({answer})")], "-q", *arguments, timeout=patience.hung(), **more)

    def left(self):
        """Things that lie about, that nobody asked for: temporary files."""
        return [path.name for path in self.dir.iterdir() if path.name.startswith(".")]


@unittest.skipUnless(os.getuid() == 0, "only root can make files of another user")
class Owned(Strangers):
    def check_refused(self, option, path):
        outcome = self.given(option, path)
        self.assertEqual((outcome.status, outcome.out), (2, ""), outcome.err)
        self.assertIn(f"{path} belongs to another user", outcome.err)
        self.assertIn("remove it, or name another file", outcome.err)

    def test_a_fifo(self):
        """Not written to, nor waited for: nobody reads it."""
        path = self.dir / "fifo"
        os.mkfifo(path, 0o666)
        os.chown(path, STRANGER, STRANGER)
        for option in ("-o", "--trace"):
            with self.subTest(option):
                self.check_refused(option, path)

    def test_a_file(self):
        """Neither its mode nor its place is taken."""
        path = pathlib.Path(self.write("file", "mine"))
        os.chmod(path, 0o666)
        os.chown(path, STRANGER, STRANGER)
        for option in ("-o", "--trace"):
            with self.subTest(option):
                self.check_refused(option, path)
                self.assertEqual((path.read_text(), path.stat().st_uid), ("mine", STRANGER))

    def test_a_link(self):
        """Wherever it leads."""
        mine = pathlib.Path(self.write("mine", "mine"))
        for target in (mine, "/dev/null", self.dir / "nothing"):
            path = self.dir / "link"
            os.symlink(target, path)
            os.lchown(path, STRANGER, STRANGER)
            for option in ("-o", "--trace"):
                with self.subTest(option, target=target):
                    self.check_refused(option, path)
            path.unlink()
        self.assertEqual(mine.read_text(), "mine")
        self.assertFalse((self.dir / "nothing").exists())

    def test_through_ones_own_link(self):
        path = pathlib.Path(self.write("file", "mine"))
        os.chown(path, STRANGER, STRANGER)
        os.symlink(path, self.dir / "link")
        self.check_refused("-o", self.dir / "link")

    def test_a_pipe_of_somebody_who_started_us(self):
        """As `sudo rlmd -o >(...)` has it: opened for us, so it is to be written to."""
        reader, writer = os.pipe()
        os.fchown(writer, STRANGER, STRANGER)
        outcome = self.given("-o", f"/dev/fd/{writer}", pass_fds=[writer])
        os.close(writer)
        with os.fdopen(reader) as pipe:
            self.assertEqual((outcome.status, pipe.read()), (0, "x\n"), outcome.err)


class Ones(Strangers):
    def test_a_fifo_of_ones_own(self):
        """Waited for until somebody reads."""
        for option in ("-o", "--trace"):
            with self.subTest(option):
                path = self.dir / ("fifo" + option)
                os.mkfifo(path)
                got = []
                reader = threading.Thread(target=lambda: got.append(path.read_text()))
                reader.start()
                outcome = self.given(option, path)
                self.assertEqual(outcome.status, 0, outcome.err)
                reader.join()
                self.assertIn("x\n" if option == "-o" else '"event":"result"', got[0])

    def test_a_fifo_that_nobody_reads(self):
        """A signal ends the wait."""
        path = self.dir / "fifo"
        os.mkfifo(path)
        for option in ("-o", "--trace"):
            with self.subTest(option):
                process = self.start("exec", "-p", "replay", "--replay", self.script(), option,
                                     path, "q")
                about = pathlib.Path(f"/proc/{process.pid}/stat")
                while not about.read_text().startswith(f"{process.pid} (rlmd) S"):
                    time.sleep(0.01)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(timeout=patience.hung()), 130, process.stderr.read())

    def test_what_a_shell_opens(self):
        """Process substitution, redirections and devices are written to as they are."""
        script = self.script(turn("FINAL(x)"))
        run = f"{RLMD} exec -q -p replay --replay {script}"
        for command, expected in (
            (f"{run} -o >(cat >got; echo >>got end) q; while ! grep -qs end got; do :; done; cat got",
             "x\nend\n"),
            (f"(echo before; {run} -o /dev/stdout q; echo after) >got; cat got", "before\nx\nafter\n"),
            (f"{run} -o /dev/stdout q | cat", "x\n"),
            (f"{run} -o /dev/fd/9 q 9>got; cat got", "x\n"),
            (f"{run} -o /dev/null q; echo $?", "0\n"),
            (f"{run} -o /dev/fd/9 q 9</dev/null; echo $?", "2\n"),
            (f"for n in 3 4 5 6; do {run} -o /dev/fd/$n q; echo $?; done", 4 * "2\n"),
            (f"{run} --trace >(cat >got; echo >>got end) -o /dev/null q; "
             "while ! grep -qs ^end got; do :; done; head -c9 got", '{"event":'),
        ):
            with self.subTest(command):
                done = subprocess.run(
                    ["bash", "-c", command], cwd=self.dir, env=self.environment(), timeout=patience.hung(),
                    stdin=subprocess.DEVNULL, capture_output=True, text=True)
                self.assertEqual(done.stdout, expected, done.stderr)
                (self.dir / "got").unlink(missing_ok=True)
        self.assertTrue(os.path.islink("/dev/stdout"))
        self.assertEqual(self.left(), [])

    def test_a_file_of_ones_own(self):
        """Replaced, and its mode kept, wide as it may be: it was chosen."""
        path = pathlib.Path(self.write("out", "old"))
        for mode in (0o600, 0o644, 0o666):
            path.chmod(mode)
            self.assertEqual(self.given("-o", path).status, 0)
            self.assertEqual((path.read_text(), stat.S_IMODE(path.stat().st_mode)), ("x\n", mode))
        self.assertEqual(self.left(), [])

    def test_no_file_to_read(self):
        """A FIFO that nobody writes to, wherever a file is to be read: refused at once."""
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        for status, arguments in (
            (2, ["--config", fifo]), (8, ["--task-file", fifo]), (8, ["-c", fifo]),
            (8, ["--price-table", fifo]), (4, ["-p", "openai", "--key-file", fifo]),
        ):
            with self.subTest(arguments):
                process = self.start("exec", *arguments, *(() if "--task-file" in arguments else ("q",)))
                _, err = process.communicate(timeout=patience.hung())
                self.assertEqual(process.returncode, status, err)
                self.assertIn(b"regular file", err)
        for command in ("plan", "trace"):
            process = self.start(command, fifo)
            _, err = process.communicate(timeout=patience.hung())
            self.assertEqual((process.returncode, b"regular file" in err), (8, True), err)

    def test_a_user_file_that_is_a_fifo(self):
        """The configuration is read unasked: that must not hang either."""
        home = self.dir / ".config" / "rlmd"
        home.mkdir(parents=True)
        os.mkfifo(home / "rlmd.conf")
        process = self.start("exec", "q", env=self.environment(XDG_CONFIG_HOME=str(self.dir / ".config")))
        _, err = process.communicate(timeout=patience.hung())
        self.assertEqual((process.returncode, b"regular file" in err), (2, True), err)


if __name__ == "__main__":
    unittest.main()

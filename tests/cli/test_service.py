"""rlmd serve --listen under a service manager: sockets that it opened, and what it is told."""

import os
import socket
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402
import patience  # noqa: E402
from harness import RLMD  # noqa: E402


class ServiceTest(client.ServeTest):
    def activate(self, *options, socket_at=None, count=1, pid="$$", **more):
        """As systemd starts it where somebody connects: its sockets are descriptors from 3 on."""
        self.path = socket_at or self.dir / "socket"
        self.opened = [socket.socket(socket.AF_UNIX) for _ in range(count)]
        for number, each in enumerate(self.opened):
            self.addCleanup(each.close)
            each.bind(str(self.path) if number == count - 1 else str(self.dir / f"other{number}"))
            each.listen(8)
        numbers = [3 + number for number in range(count)]

        def hand_over():
            copies = [os.dup(each.fileno()) for each in self.opened]
            high = [os.dup2(copy, 100 + number) for number, copy in enumerate(copies)]
            for copy, number in zip(high, numbers):
                os.dup2(copy, number)

        script = f'LISTEN_PID={pid} LISTEN_FDS={count} LISTEN_FDNAMES=a exec "$@"'
        return self.start("-c", script, "sh", RLMD, "serve", *options, program="/bin/sh",
                          preexec_fn=hand_over, pass_fds=numbers, **more)


class Sockets(ServiceTest):
    def test_it_is_taken_over(self):
        """Whatever others there are; its file stays the manager's."""
        for count in (1, 3):
            with self.subTest(count):
                path = self.dir / f"socket{count}"
                process = self.activate("--listen", f"unix:{path}", socket_at=path, count=count)
                peer = self.connect(process)
                session = peer.call("session.open")["session"]
                seen = peer.call("session.execute", session=session,
                                 code="import os; print('LISTEN_FDS' in os.environ)")
                self.assertEqual(seen["stdout"], "False\n")
                self.terminate(process)
                self.assertTrue(path.exists())

    def test_one_that_was_waiting(self):
        """A client that came before the server."""
        path = self.dir / "socket"
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        end.settimeout(patience.hung())
        process = self.activate("--listen", f"unix:{path}")
        end.connect(str(path))
        end.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
        self.assertIn(b"protocolVersion", end.recv(4096))
        self.terminate(process)

    def test_another_path(self):
        process = self.activate("--listen", f"unix:{self.dir}/elsewhere")
        self.assertEqual(process.wait(patience.hung()), 2)
        self.assertIn(b"ListenStream=", process.stderr.read())

    def test_sockets_of_another_process(self):
        """They are not for it: it makes its own."""
        process = self.activate("--listen", f"unix:{self.dir}/own", pid="1")
        self.path = self.dir / "own"
        self.assertIn(b"listening", process.stderr.readline())
        self.connect(process)


class Notices(client.ServeTest):
    def test_ready_and_stopping(self):
        for name in (str(self.dir / "manager"), f"\0rlmd-test-{os.getpid()}"):
            with self.subTest(name), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.settimeout(patience.hung())
                manager.bind(name)
                env = self.environment(NOTIFY_SOCKET=name.replace("\0", "@"))
                process = self.listen(env=env)
                self.assertEqual(manager.recv(100), b"READY=1")
                process.terminate()
                self.assertEqual(manager.recv(100), b"STOPPING=1")
                self.assertEqual(process.wait(patience.hung()), 0)

    def test_a_manager_that_is_gone(self):
        for name in (str(self.dir / "nobody"), "x" * 300, ""):
            with self.subTest(name):
                process = self.listen(env=self.environment(NOTIFY_SOCKET=name))
                self.terminate(process)


if __name__ == "__main__":
    unittest.main()

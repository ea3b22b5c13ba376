"""A server of PostgreSQL for a test: in a directory of its own, at a socket there, and nowhere else.

    server = PostgresServer(directory).start()
    server.url                 what rlmd's --store takes
    server.stop("immediate")   as if it had been killed; start() goes on with its data
"""

import ctypes
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import patience

FOUND = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
HOW = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
# Settings for data that are worth little; and no processes but those that are needed.
SETTINGS = {
    "listen_addresses": "", "fsync": "off", "full_page_writes": "off", "shared_buffers": "8MB",
    "max_connections": "40", "autovacuum": "off", "max_worker_processes": "0",
    "max_parallel_workers": "0", "wal_level": "minimal", "max_wal_senders": "0",
    "dynamic_shared_memory_type": "mmap",  # in its directory: other tests look at /dev/shm
}
PR_SET_PDEATHSIG = 1


def missing():
    """Why there can be none here; "": there can."""
    return "" if FOUND else "PostgreSQL's server is not installed (tools/setup --all installs it)"


class PostgresServer:
    def __init__(self):
        """Its data are made here, and gone after remove()."""
        self.programs = os.path.dirname(FOUND[-1])
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rlmd-postgres-"))
        self.process = None
        self.somebody = None
        if os.geteuid() == 0:  # whom it refuses
            self.somebody = pwd.getpwnam("nobody")
            os.chown(self.directory, self.somebody.pw_uid, self.somebody.pw_gid)
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "rlmd", "-N", "-E", "UTF8",
                 "--no-locale")

    @property
    def data(self):
        return self.directory / "data"

    @property
    def url(self):
        return f"postgresql://rlmd@/postgres?host={self.directory}"

    def command(self, name, *arguments):
        return [os.path.join(self.programs, name), *map(str, arguments)]

    def options(self):
        """Of its processes: whose they are, and that they end with the test."""
        libc = ctypes.CDLL(None)

        def begin():
            if self.somebody:
                os.setgroups([])
                os.setgid(self.somebody.pw_gid)
                os.setuid(self.somebody.pw_uid)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)

        return {"preexec_fn": begin, "cwd": self.directory, "stdin": subprocess.DEVNULL,
                "env": {"LC_ALL": "C", "PATH": os.environ["PATH"]}, "start_new_session": True}

    def run(self, name, *arguments):
        """One of its programs, to its end; gives what it printed."""
        done = subprocess.run(self.command(name, *arguments), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **self.options())
        assert done.returncode == 0, done.stdout
        return done.stdout

    def ask(self, sql):
        """The output of psql for it, without heads."""
        return self.run("psql", "-XAtq", "-h", self.directory, "-U", "rlmd", "postgres", "-c",
                        sql).strip()

    def start(self):
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command("postgres", "-D", self.data, "-k", self.directory, *settings),
                stdout=log, stderr=log, **self.options())
        begun = time.monotonic()
        while self.answers():
            assert self.process.poll() is None, (self.directory / "log").read_text("utf-8")
            assert time.monotonic() - begun < patience.hung(), "PostgreSQL does not start"
            time.sleep(patience.POLL)
        return self

    def answers(self):
        """0: it takes connections."""
        return subprocess.run(self.command("pg_isready", "-q", "-h", self.directory),
                              check=False, **self.options()).returncode

    def stop(self, how="fast"):
        """`fast` ends connections, `immediate` does not even write what is in memory."""
        self.process.send_signal(HOW[how])
        self.process.wait()
        self.process = None

    def remove(self):
        if self.process:
            self.stop("immediate")
        shutil.rmtree(self.directory)

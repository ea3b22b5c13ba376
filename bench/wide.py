#!/usr/bin/env python3
"""A context with one emoji beside one of ASCII, until the first request arrives: time and memory.

usage: wide.py VERDICT RLMD PYTHON SAMPLES

Both are logs of 200 MB. The memory is that of the program and of its processes: what is theirs
alone, and the memory files that they share.
"""
import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import measure

TARGET = 1.2
LINE = "2026-11-22 10:00:01 GET /index 200 ok, all is well here and everywhere\n"
MEGABYTES = 200
MEGABYTE = 1 << 20


class Server(http.server.ThreadingHTTPServer):
    """Notes when a request arrives, and never answers."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.arrived = threading.Event()
        self.time = 0
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.time = time.perf_counter()
        self.server.arrived.set()
        threading.Event().wait()

    def log_message(self, *_about):
        pass


def write(path, megabytes, character):
    """So much of a log, with the character in its midst."""
    piece = LINE * (MEGABYTE // len(LINE))
    with open(path, "w", encoding="utf-8") as file:
        for part in range(megabytes):
            file.write(piece)
            if part == megabytes // 2:
                file.write(character)


def own_memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def memory_files(pid):
    """{its number: its bytes} of each that the process has open."""
    found = {}
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(link).startswith("/memfd:"):
            status = link.stat()
            found[status.st_ino] = status.st_blocks * 512
    return found


def memory_of(pid):
    """In MB: of a program and those that it has started."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    shared = sum(memory_files(pid).values())
    return (shared + sum(map(own_memory, [pid, *children]))) / MEGABYTE


def first_request(server, command, environment):
    """(milliseconds until it arrives, MB by then)."""
    server.arrived.clear()
    start = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as program:
        while not server.arrived.wait(0.1):
            if program.poll() is not None:
                sys.exit(f"bench: {program.stderr.read().decode()}")
        memory = memory_of(program.pid)
        program.kill()  # a signal would have it ask for a last answer
    return (server.time - start) * 1e3, memory


def main(verdict, program, python, samples):
    times = measure.Row("24", "a log of 200 MB with an emoji, until the first request", "in ASCII")
    held = measure.Row("24", "the memory of that", "in ASCII", "MB")
    samples = int(samples)
    with tempfile.TemporaryDirectory() as room:
        wide, narrow = pathlib.Path(room, "wide.log"), pathlib.Path(room, "narrow.log")
        for path, character in ((wide, "🙂"), (narrow, "!")):
            write(path, MEGABYTES if samples > 1 else 2, character)
        environment = {"PATH": os.environ["PATH"], "HOME": room, "XDG_CACHE_HOME": room,
                       "OPENAI_API_KEY": "none"}
        server = Server()
        for sample in range(-1, samples):
            figures = [first_request(server, [program, "exec", "-q", "-p", "openai", "-m", "bench",
                                              "--base-url", server.url, "--python", python,
                                              "-c", path, "what is in there?"], environment)
                       for path in (wide, narrow)]
            if sample >= 0:  # warming up before
                times.add(figures[0][0], figures[1][0])
                held.add(figures[0][1], figures[1][1])
    return max(row.judge(verdict, at_most=TARGET) for row in (times, held))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

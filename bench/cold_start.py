#!/usr/bin/env python3
"""From nothing to an answer: the program as a shell starts it, beside a python3 of as many imports.

usage: cold_start.py VERDICT RLMD ANSWERS PYTHON WORKER_DIRECTORY SAMPLES

A run of one turn, whose block asks eight questions, over HTTP on loopback, until the program has
ended. The floor is `python3 -I -c` with the modules that workers find loaded. Bytecode has been
kept by a start before, as Python's own has. Beside it stand a start that keeps none, one over
TLS, and the first one of a home where the installation has the bytecode.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import measure

TARGET = 1.3
WARMING_UP = 3
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def imports(worker_directory):
    """The modules, as a program."""
    text = pathlib.Path(worker_directory, "library.py").read_text(encoding="ascii")
    names = re.search(r'^USUAL = """(.*?)"""', text, re.DOTALL | re.MULTILINE).group(1)
    return "import " + ", ".join(names.split())


def timed(command, environment):
    def run():
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)

    return measure.milliseconds(run)


@contextlib.contextmanager
def answering(server, *certificate):
    """The port of a server, which speaks TLS where it is told a file for its certificate."""
    command = [server, "0", *certificate]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as answers:
        try:
            yield int(answers.stdout.readline())
        finally:
            answers.kill()


@contextlib.contextmanager
def installed(worker_directory, room):
    """The bytecode that was kept in a room, as an installation has it."""
    place = pathlib.Path(worker_directory).parent / "bytecode"
    place.mkdir()
    try:
        for archive in pathlib.Path(room, "rlmd").iterdir():
            shutil.copy(archive, place)
        yield
    finally:
        shutil.rmtree(place)


def trusting(certificate):
    """The system's authorities, which take their time to read, and one more."""
    bundle = certificate.with_name("bundle.pem")
    system = AUTHORITIES.read_text() if AUTHORITIES.exists() else ""
    bundle.write_text(system + certificate.read_text())
    return {"SSL_CERT_FILE": bundle}


def middle(figures):
    return sorted(figures)[len(figures) // 2]


def main(verdict, program, server, python, worker_directory, samples):
    with tempfile.TemporaryDirectory() as room:
        certificate = pathlib.Path(room, "certificate.pem")
        with answering(server) as plain, answering(server, certificate) as tls:
            def ours(url):
                return [program, "exec", "-q", "-p", "openai", "-m", "bench",
                        "--base-url", url + "/v1", "--python", python, "turns=1"]

            usual, safe = ours(f"http://127.0.0.1:{plain}"), ours(f"https://127.0.0.1:{tls}")
            floor = [python, "-I", "-c", imports(worker_directory)]
            environment = {"PATH": os.environ["PATH"], "HOME": room, "OPENAI_API_KEY": "none"}
            kept = {**environment, "XDG_CACHE_HOME": room}
            none = {**environment, "XDG_CACHE_HOME": os.devnull}
            trusted = {**kept, **trusting(certificate)}
            row = measure.Row("3", "exec, one turn", "python3 -I -c, the same imports")
            without, over_tls = [], []
            for sample in range(-WARMING_UP, int(samples)):
                figures = timed(usual, kept), timed(floor, environment)
                others = timed(usual, none), timed(safe, trusted)
                if sample >= 0:
                    row.add(*figures)
                    without.append(others[0])
                    over_tls.append(others[1])
            first, later = [], []
            with installed(worker_directory, room):
                for sample in range(int(samples)):
                    new = {**environment, "XDG_CACHE_HOME": os.path.join(room, f"home{sample}")}
                    first.append(timed(usual, new))
                    later.append(timed(usual, kept))
            print(f"without a cache: {middle(without):.1f} ms; "
                  f"over TLS: {middle(over_tls):.1f} ms; first in a home, bytecode installed: "
                  f"{middle(first) - middle(later):+.1f} ms")
            return row.judge(verdict, at_most=TARGET)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

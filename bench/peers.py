#!/usr/bin/env python3
"""Whole runs beside the official library's: CPU time of one, and how many there are a second.

usage: peers.py VERDICT RLMD ANSWERS PEER_RLMS SAMPLES; RLMD_PEERS as tools/bench says

Both make three turns with eight calls at once in each, against the same server, which answers after
50 ms. Ours are operations of one `rlmd plan`; the library's are made one after the other in a
process, for it changes the working directory and standard output of its process, in as many
processes as get most of two cores. Both count what their start costs but the library's imports.
"""
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import measure

CPU_AT_LEAST = RATE_AT_LEAST = 20
OURS = 60       # runs of a plan
THEIRS = 2      # of a process
PROCESSES = 16  # of the library's: more of them get no more runs a second
DELAY_MS = 50


def plan_of(runs):
    operations = [{"id": f"run-{i}", "mode": "rlm", "input": "What do the parts say? turns=3"}
                  for i in range(runs)]
    return {"strategy": "Parallel", "maxParallel": runs, "operations": operations}


def used_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Ours:
    def __init__(self, program, url, room):
        self.plan = pathlib.Path(room, "plan.json")
        self.plan.write_text(json.dumps(plan_of(OURS)), encoding="ascii")
        self.command = [program, "plan", "-q", "-p", "openai", "-m", "bench", "--base-url", url,
                        "-j", str(8 * OURS), "--max-workers", str(OURS),
                        "--max-tokens", "100000000", self.plan]
        self.environment = {"PATH": os.environ["PATH"], "HOME": room, "XDG_CACHE_HOME": room,
                            "OPENAI_API_KEY": "none"}

    def sample(self):
        """CPU milliseconds and wall milliseconds of a run."""
        cpu, begun = used_by_children(), time.perf_counter()
        done = subprocess.run(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True)
        took, cpu = time.perf_counter() - begun, used_by_children() - cpu
        responses = [each["response"] for each in json.loads(done.stdout)["results"].values()]
        if responses != ["done"] * OURS:
            sys.exit(f"runs ended with {responses}")
        return cpu * 1e3 / OURS, took * 1e3 / OURS


class Theirs:
    def __init__(self, peers, script, url, stack):
        command = [peers / "bin/python", script, "runs", url, str(THEIRS)]
        self.processes = [stack.enter_context(self.started(command)) for _ in range(PROCESSES)]
        for process in self.processes:
            if process.stdout.readline() != "ready\n":
                sys.exit("the official library does not run here")

    @staticmethod
    @contextlib.contextmanager
    def started(command):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def sample(self):
        begun = time.perf_counter()
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        cpu = sum(float(process.stdout.readline()) for process in self.processes)
        took = time.perf_counter() - begun
        runs = PROCESSES * THEIRS
        return cpu * 1e3 / runs, took * 1e3 / runs


def main(verdict, program, server, script, samples):
    peers = pathlib.Path(os.environ.get("RLMD_PEERS", os.devnull))
    if not (peers / "bin/python").exists():
        how = "python3 -m venv DIR, DIR/bin/pip install rlms; RLMD_PEERS=DIR tools/bench peers"
        return max(measure.missing(row, "the official library", how) for row in ("11", "12"))
    with contextlib.ExitStack() as stack:
        room = stack.enter_context(tempfile.TemporaryDirectory())
        answers = stack.enter_context(subprocess.Popen([server, str(DELAY_MS)], text=True,
                                                       stdout=subprocess.PIPE))
        stack.callback(answers.kill)
        url = f"http://127.0.0.1:{int(answers.stdout.readline())}/v1"
        ours, theirs = Ours(program, url, room), Theirs(peers, script, url, stack)
        ours.sample()
        cpu = measure.Row("11", "CPU of a run of 27 calls", "rlms, one run after the other")
        rate = measure.Row("12", f"a run's share, {OURS} at once",
                           f"rlms in {PROCESSES} processes")
        for _ in range(int(samples)):
            mine, others = ours.sample(), theirs.sample()
            cpu.add(mine[0], others[0])
            rate.add(mine[1], others[1])
        return max(cpu.judge(verdict, at_least=CPU_AT_LEAST),
                   rate.judge(verdict, at_least=RATE_AT_LEAST))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""Jobs of a batch beside one program a job: what a job takes, and the memory of one at work.

usage: batch.py VERDICT RLMD ANSWERS SAMPLES

All ask the same server, which answers after 20 ms. A job is a task of one turn with eight calls. A
loop in the shell starts one `rlmd exec` after the other; GNU parallel eight at once. Starts count.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import measure

LOOP_AT_LEAST, PARALLEL_AT_LEAST, MEMORY_AT_MOST = 10, 5, 2.5
TASK = "What do the parts say? turns=1"
JOBS, AT_ONCE, EACH = 120, 40, 8
FEW, MANY = 10, 50  # jobs at work, of which the memory is compared
DELAY_MS, LONG_MS = 20, 3000


class Batch:
    """Starts of `rlmd` in a directory of their own, with a server to ask."""

    def __init__(self, program, server, delay, stack):
        self.room = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        answers = stack.enter_context(subprocess.Popen([server, str(delay)], text=True,
                                                       stdout=subprocess.PIPE))
        stack.callback(answers.kill)
        url = f"http://127.0.0.1:{int(answers.stdout.readline())}/v1"
        self.program = program
        self.options = ["-q", "-p", "openai", "-m", "bench", "--base-url", url]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.room),
                            "XDG_CACHE_HOME": str(self.room), "OPENAI_API_KEY": "none"}
        self.times = 0

    def command(self, jobs, at_once):
        """A batch that nobody has begun; and where its results come."""
        self.times += 1
        lines, results = (self.room / f"{name}-{self.times}.jsonl" for name in ("jobs", "results"))
        lines.write_text("".join(json.dumps({"custom_id": str(i), "task": TASK}) + "\n"
                                 for i in range(jobs)), encoding="ascii")
        return [self.program, "batch", *self.options, "-j", str(at_once), "--max-parallel",
                str(8 * at_once), "-o", results, lines], results

    def run(self, command):
        """Milliseconds until it has ended."""
        begun = time.perf_counter()
        subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - begun) * 1e3

    def batch(self):
        command, results = self.command(JOBS, AT_ONCE)
        took = self.run(command)
        outputs = [json.loads(line)["output"] for line in results.open(encoding="utf-8")]
        if outputs != ["done"] * JOBS:
            sys.exit(f"jobs ended with {outputs}")
        return took / JOBS

    def loop(self):
        execs = [self.program, "exec", *self.options, TASK]
        script = f'for i in $(seq {EACH}); do "$@" || exit; done'
        return self.run(["sh", "-c", script, "loop", *execs]) / EACH

    def parallel(self):
        execs = [self.program, "exec", *self.options]
        return self.run(["parallel", "--will-cite", "-j8", "-n0", *execs, f"'{TASK}'", ":::",
                         *map(str, range(EACH))]) / EACH

    def memory(self, at_once):
        """Megabytes of all its processes while so many jobs wait for answers."""
        command, results = self.command(at_once, at_once)
        with subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                while len(workers(process.pid)) < at_once:
                    time.sleep(0.02)
                return sum(proportional(pid) for pid in workers(process.pid) + [process.pid])
            finally:
                process.kill()


def children(pid):
    try:
        return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return []


def workers(pid):
    """All below it."""
    found = children(pid)
    return found + [each for child in found for each in workers(child)]


def proportional(pid):
    """Its share of memory, in megabytes; 0: it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.split("\nPss:")[1].split()[0]) / 1e3


def main(verdict, program, server, samples):
    with contextlib.ExitStack() as stack:
        quick = Batch(program, server, DELAY_MS, stack)
        slow = Batch(program, server, LONG_MS, stack)
        quick.batch()
        job = f"a job of a batch, {AT_ONCE} at once"
        loop = measure.Row("20", job, "a loop of `rlmd exec`")
        parallel = measure.Row("20", job, "GNU parallel, eight `rlmd exec` at once")
        memory = measure.Row("21", "memory of a further job at work", unit="MB")
        for _ in range(int(samples)):
            loop.add(quick.batch(), quick.loop())
            if shutil.which("parallel"):
                parallel.add(quick.batch(), quick.parallel())
            memory.add((slow.memory(MANY) - slow.memory(FEW)) / (MANY - FEW))
        return max(loop.judge(verdict, at_least=LOOP_AT_LEAST),
                   parallel.judge(verdict, at_least=PARALLEL_AT_LEAST) if parallel.samples else
                   measure.missing("20", "GNU parallel", "apt-get install parallel"),
                   memory.judge(verdict, at_most=MEMORY_AT_MOST))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""Jobs of a batch beside one program a job: what a job takes, and the memory of one at work.

usage: batch.py VERDICT RLMD ANSWERS SAMPLES

All ask the same server, which answers after 20 ms. A job is a task of one turn with eight calls. A
loop in the shell starts one `rlmd exec` after the other; GNU parallel eight at once. Starts count.
The CPU of a small job, supervisor and workers, is measured beside a fork of a bare Python and its
end.
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
CALLS = 9  # of such a job
SMALL_TASK = "Think. turns=1 alone=1"
SMALL, SMALL_FEW, SMALL_AT_MOST = 500, 100, 5  # jobs; how many forks they may cost
JOBS, AT_ONCE, EACH = 120, 40, 8
TRIED = 12          # jobs, where it is only tried whether this runs
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

    def command(self, jobs, at_once, task=TASK):
        """A batch that nobody has begun; and where its results come."""
        self.times += 1
        lines, results = (self.room / f"{name}-{self.times}.jsonl" for name in ("jobs", "results"))
        lines.write_text("".join(json.dumps({"custom_id": str(i), "task": task}) + "\n"
                                 for i in range(jobs)), encoding="ascii")
        return [self.program, "batch", *self.options, "-j", str(at_once), "--max-parallel",
                str(8 * at_once), "-o", results, lines], results

    def run(self, command):
        """Milliseconds until it has ended."""
        begun = time.perf_counter()
        subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - begun) * 1e3

    def batch(self, jobs=JOBS):
        command, results = self.command(jobs, AT_ONCE)
        took = self.run(command)
        check(results, jobs, CALLS)
        return took / jobs

    def small(self, jobs):
        """Milliseconds of CPU of a job of one turn."""
        def run(count):
            command, results = self.command(count, AT_ONCE, SMALL_TASK)
            self.run(command)
            check(results, count, 1)

        return cpu_of_one(jobs, run)

    def loop(self, jobs=EACH):
        execs = [self.program, "exec", *self.options, TASK]
        script = f'for i in $(seq {jobs}); do "$@" || exit; done'
        return self.run(["sh", "-c", script, "loop", *execs]) / jobs

    def parallel(self, jobs=EACH):
        execs = [self.program, "exec", *self.options]
        return self.run(["parallel", "--will-cite", "-j8", "-n0", *execs, f"'{TASK}'", ":::",
                         *map(str, range(jobs))]) / jobs

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


def check(results, jobs, calls):
    """That each job has its answer, by so many calls."""
    lines = [json.loads(line) for line in results.open(encoding="utf-8")]
    found = [(line["output"], line["usage"]["llmCalls"]) for line in lines]
    if found != [("done", calls)] * jobs:
        sys.exit(f"jobs ended with {found}")


def cpu_of_one(times, run):
    """Milliseconds of CPU that one takes, of which run(count) has so many done by a program: its
    start and end are taken off."""
    used = []
    for count in (times // 5, times):
        before = os.times()
        run(count)
        now = os.times()
        used.append(now.children_user + now.children_system
                    - before.children_user - before.children_system)
    return (used[1] - used[0]) * 1e3 / (times - times // 5)


FORKS = """
import os, sys
for _ in range(int(sys.argv[1])):
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
"""


def fork_of_python(times):
    """Milliseconds of CPU that a fork of a bare Python and its end take."""
    return cpu_of_one(times, lambda count: subprocess.run(
        [sys.executable, "-I", "-S", "-c", FORKS, str(count)], check=True))


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


def alone(program, server, samples, stack):
    """The rows of one process, filled."""
    quick = Batch(program, server, DELAY_MS, stack)
    slow = Batch(program, server, LONG_MS, stack)
    quick.batch(TRIED)
    job = f"a job of a batch, {AT_ONCE} at once"
    loop = measure.Row("20", job, "a loop of `rlmd exec`")
    parallel = measure.Row("20", job, "GNU parallel, eight `rlmd exec` at once")
    memory = measure.Row("21", "memory of a further job at work", unit="MB")
    small = measure.Row("28", "CPU of a batch's job of one turn, workers too",
                        "a bare python3 that forks, and the child's end")
    jobs, each = (JOBS, EACH) if samples > 1 else (TRIED, 2)
    for _ in range(samples):
        loop.add(quick.batch(jobs), quick.loop(each))
        if shutil.which("parallel"):
            parallel.add(quick.batch(jobs), quick.parallel(each))
        forks = SMALL if samples > 1 else SMALL_FEW
        small.add(quick.small(forks), fork_of_python(forks))
        memory.add((slow.memory(MANY) - slow.memory(FEW)) / (MANY - FEW))
    return loop, parallel, memory, small


def main(verdict, program, server, samples):
    with contextlib.ExitStack() as stack:
        loop, parallel, memory, small = alone(program, server, int(samples), stack)
        return max(
            loop.judge(verdict, at_least=LOOP_AT_LEAST),
            parallel.judge(verdict, at_least=PARALLEL_AT_LEAST) if parallel.samples else
            measure.missing("20", "GNU parallel", "apt-get install parallel"),
            memory.judge(verdict, at_most=MEMORY_AT_MOST),
            small.judge(verdict, at_most=SMALL_AT_MOST))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

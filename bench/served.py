#!/usr/bin/env python3
"""A job of one turn through `rlmd serve`, and by the package for Python, beside the C library's.

usage: served.py VERDICT RLMD HOSTED PACKAGES SAMPLES

The model is the client itself, or a function of the host's, and answers at once. Each sample is a
number of jobs, one after the other; HOSTED is bench/hosted, the floor of both.
"""
import json
import os
import subprocess
import sys

import measure

JOBS = 20
WORDS = "```python\nFINAL(6 * 7)\n```"
TARGETS = {"25": 1.3, "26": 1.5}


class Client:
    """The least that speaks to a server."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve", "--stdio"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.say(id=1, method="initialize", params={"protocolVersion": "1"})
        self.process.stdout.readline()

    def say(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def job(self):
        self.say(id=2, method="job.start", params={"task": "Multiply.", "model": "client"})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "model.request":
                self.say(id=message["id"], result={
                    "text": WORDS, "usage": {"inputTokens": 10, "outputTokens": 5}})
            if message.get("method") == "job.end":
                if message["params"]["result"].get("output") != "42":
                    sys.exit(f"served.py: {line}")
                return

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def of_floor(floor):
    floor.stdin.write(f"{JOBS}\n")
    floor.stdin.flush()
    return float(floor.stdout.readline())


def each(job):
    def several():
        for _ in range(JOBS):
            job()

    return measure.milliseconds(several) / JOBS


def main(verdict, program, hosted, packages, samples):
    sys.path.insert(0, packages)
    os.environ["RLMD_BIN"] = program
    import rlmd  # pylint: disable=import-outside-toplevel

    rows = [measure.Row("25", "a job of one turn through rlmd serve", "the C library's"),
            measure.Row("26", "the same, completion() in Python", "the C library's")]
    client, model = Client(program), rlmd.RLM(lambda messages, request: WORDS)
    with subprocess.Popen([hosted], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as floor:
        for sample in range(-1, int(samples)):
            beside = of_floor(floor)
            ours = each(client.job), each(lambda: model.completion("Multiply."))
            for row, figure in zip(rows, ours):
                if sample >= 0:
                    row.add(figure, beside)
        floor.stdin.close()
    client.close()
    return max(row.judge(verdict, at_most=TARGETS[row.number]) for row in rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

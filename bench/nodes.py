#!/usr/bin/env python3
"""Nodes that work on the jobs of a store in PostgreSQL, which waits for no disk here.

usage: nodes.py VERDICT RLMD ANSWERS SAMPLES

Four nodes that have four jobs at work each, whose calls take 200 ms, beside one: what they wait for
is what further nodes can take off. Two nodes that compute all the time, each with a part of a core
as if it had a machine of its own, beside one: there the store is what could be in the way. Its
transactions are counted. Of those two starts and ends are taken off.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import batch
import measure

TESTS = pathlib.Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "system")]
import postgres  # noqa: E402

CALL_MS = 200
TASK, CALLS = "What do the parts say? turns=2", 18
NODES, OF_A_NODE, NODES_AT_LEAST, TRANSACTIONS_AT_MOST = 4, 4, 3, 30
TRIED = 12  # jobs, where it is only tried whether this runs
SMALL_FEW, SMALL_MANY, SMALL_OF_A_NODE = 200, 1500, 150
SHARED_AT_LEAST, SMALL_TRANSACTIONS_AT_MOST = 1.9, 3
SHARES = 5  # samples, for each takes 25 seconds
PERIOD_US, SHARE_US = 20000, 8000  # of a core: the store and the models have the rest of two
JOIN = 'echo $$ > "$1" || exit; shift; exec "$@"'


class Nodes(batch.Batch):
    """Processes that work on the jobs of a store."""

    def __init__(self, program, server, stack):
        super().__init__(program, server, CALL_MS, stack)
        self.store = postgres.PostgresServer().start()
        stack.callback(self.store.remove)

    def transactions(self):
        return int(self.store.ask("SELECT sum(xact_commit) FROM pg_stat_database"))

    def work(self, jobs, nodes, at_once=OF_A_NODE, task=TASK, shares=()):
        """Milliseconds from the nodes' start to the end of all jobs, and the transactions."""
        command, _ = self.command(jobs, at_once, task)
        store = ["--store", self.store.url]
        self.run([*command[:2], "--submit", *store, *self.options, command[-1]])
        work = [self.program, "work", *store, *self.options, "-j", str(at_once),
                "--max-parallel", str(8 * at_once)]
        commands = [["sh", "-c", JOIN, "join", share, *work] for share in shares] or [work] * nodes
        before, begun = self.transactions(), time.perf_counter()
        processes = [subprocess.Popen(command, env=self.environment)
                     for command in commands[:nodes]]
        if any([process.wait() for process in processes]):
            sys.exit("a node failed")
        return (time.perf_counter() - begun) * 1e3, self.transactions() - before

    def small(self, nodes, shares, few, many):
        """Of a further job of one turn."""
        times, transactions = zip(*(self.work(jobs, nodes, SMALL_OF_A_NODE, batch.SMALL_TASK,
                                              shares) for jobs in (few, many)))
        return ((times[1] - times[0]) / (many - few),
                (transactions[1] - transactions[0]) / (many - few))


def shares_of_cores(stack):
    """Two cgroups with a part of a core each: the files by which they are joined."""
    own = dict(line.strip().split(":", 2)[1:]
               for line in pathlib.Path("/proc/self/cgroup").open(encoding="utf-8"))
    name = next((each for each in own if "cpu" in each.split(",")), "")
    for number in range(2):
        group = pathlib.Path("/sys/fs/cgroup", name, own[name].strip("/"),
                             f"bench{os.getpid()}-{number}")
        group.mkdir()
        stack.callback(group.rmdir)
        if name:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (group / "cpu.cfs_quota_us").write_text(str(SHARE_US), encoding="ascii")
        else:
            (group / "cpu.max").write_text(f"{SHARE_US} {PERIOD_US}", encoding="ascii")
        yield str(group / "cgroup.procs")


def waiting(nodes, samples):
    """The rows of nodes that wait for models, filled."""
    jobs = 4 * TRIED if samples > 1 else TRIED
    scale = measure.Row("22", "a job, four nodes", "one node")
    transactions = measure.Row("23", f"transactions of the store, a job of {CALLS} calls", unit="")
    for _ in range(samples):
        four, few = nodes.work(jobs, NODES)
        one, _ = nodes.work(jobs, 1)
        scale.add(four / jobs, one / jobs)
        transactions.add(few / jobs)
    return scale, transactions


def computing(nodes, samples, shares):
    """The rows of nodes that compute, filled."""
    few, many = (SMALL_FEW, SMALL_MANY) if samples > 1 else (TRIED, 2 * TRIED)
    scale = measure.Row("29", "a job of one turn, two nodes with 0.4 cores each", "one such node")
    transactions = measure.Row("23", "transactions of the store, a job of one turn", unit="")
    for _ in range(min(samples, SHARES)):
        two, asked = nodes.small(2, shares, few, many)
        one, _ = nodes.small(1, shares, few, many)
        scale.add(two, one)
        transactions.add(asked)
    return scale, transactions


def main(verdict, program, server, samples):
    if postgres.missing():
        return measure.missing("22", "PostgreSQL", "tools/setup --all")
    with contextlib.ExitStack() as stack:
        nodes = Nodes(program, server, stack)
        scale, transactions = waiting(nodes, int(samples))
        found = [scale.judge(verdict, at_least=NODES_AT_LEAST),
                 transactions.judge(verdict, at_most=TRANSACTIONS_AT_MOST)]
        try:
            shares = list(shares_of_cores(stack))
        except OSError as error:
            return max(*found, measure.missing("29", "cgroups that limit processors", str(error)))
        scale, transactions = computing(nodes, int(samples), shares)
        return max(*found, scale.judge(verdict, at_least=SHARED_AT_LEAST),
                   transactions.judge(verdict, at_most=SMALL_TRANSACTIONS_AT_MOST))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

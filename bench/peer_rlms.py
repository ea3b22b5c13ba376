"""bench/peer_rlms.py - the official library (rlms), in the environment where it is installed.

usage: peer_rlms.py blocks          as in_process.py: a line of code in, microseconds out; the model
                                    that llm_query() asks is a function in this process
       peer_rlms.py runs URL COUNT  says "ready"; for each line that comes then so many whole runs
                                    against URL, then the seconds of CPU time that all of them took
"""
import contextlib
import io
import os
import sys
import time

import rlm
from rlm.clients.base_lm import BaseLM
from rlm.core.lm_handler import LMHandler
from rlm.core.types import ModelUsageSummary, UsageSummary
from rlm.environments.local_repl import LocalREPL

ANSWER = ("The quick brown fox \"jumps\" over the lazy dog. " * 5)[:200]


class Echo(BaseLM):
    """Answers at once."""

    def completion(self, prompt):
        return ANSWER

    async def acompletion(self, prompt):
        return ANSWER

    def get_usage_summary(self):
        return UsageSummary(model_usage_summaries={})

    def get_last_usage(self):
        return ModelUsageSummary(total_calls=1, total_input_tokens=50, total_output_tokens=50)


def blocks():
    with LMHandler(Echo("echo")) as handler:
        repl = LocalREPL(lm_handler_address=handler.address, depth=1)
        for line in sys.stdin:
            code = line.replace("\\n", "\n")
            start = time.perf_counter()
            done = repl.execute_code(code)
            took = time.perf_counter() - start
            if done.stderr:
                sys.exit(done.stderr)
            print(took * 1e6, flush=True)


def one_run(url):
    client = rlm.RLM(backend="openai", backend_kwargs={
        "model_name": "bench", "base_url": url, "api_key": "none"})
    with contextlib.redirect_stdout(io.StringIO()):
        done = client.completion("What do the parts say?", root_prompt="Count them. turns=3")
    if done.response != "done":
        sys.exit(f"a run ended with {done.response!r}")


def runs(url, count):
    one_run(url)
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = os.times()
        for _ in range(int(count)):
            one_run(url)
        ended = os.times()
        print(sum(ended[:4]) - sum(begun[:4]), flush=True)


if __name__ == "__main__":
    {"blocks": blocks, "runs": runs}[sys.argv[1]](*sys.argv[2:])

"""Asks one question of a peer, in the peer's own environment: JSON in on stdin, a line of it out.

In: peer, model, baseUrl, question, context, turns, seconds; or peer and probe, to try only whether
it starts. Out: answer, error (null or a text), turns, calls, tokens, seconds.
"""

import json
import os
import sys
import time

KEY = os.environ.get("OPENAI_API_KEY", "none")


def ask_rlms(asked):
    """The official library. What its logger saw is told of a run that failed as well."""
    from rlm import RLM
    from rlm.logger import RLMLogger

    logger = RLMLogger()
    client = RLM(backend="openai", max_iterations=asked["turns"], max_timeout=asked["seconds"],
                 backend_kwargs={"model_name": asked["model"], "base_url": asked["baseUrl"],
                                 "api_key": KEY}, logger=logger)
    told = {}
    try:
        done = client.completion(asked["context"], root_prompt=asked["question"])
        used = done.usage_summary.model_usage_summaries.values()
        told = {"answer": str(done.response), "calls": sum(each.total_calls for each in used),
                "tokens": sum(each.total_input_tokens + each.total_output_tokens for each in used)}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    return {**told, "turns": len((logger.get_trajectory() or {}).get("iterations", []))}


def ask_dspy(asked):
    import dspy

    model = dspy.LM(f"openai/{asked['model']}", api_base=asked["baseUrl"], cache=False, api_key=KEY)
    dspy.configure(lm=model)
    told = {}
    try:
        client = dspy.RLM("context: str, question: str -> answer: str", max_iters=asked["turns"])
        done = client(context=asked["context"], question=asked["question"])
        told = {"answer": str(done.answer), "turns": len(getattr(done, "trajectory", []))}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    used = [each.get("usage") or {} for each in model.history]
    return {**told, "calls": len(used),
            "tokens": sum(each.get("total_tokens") or 0 for each in used)}


def probe_rlms():
    import rlm  # noqa: F401


def probe_dspy():
    """DSPy runs code in a Deno, which fetches modules when it starts for the first time."""
    from dspy.primitives.python_interpreter import PythonInterpreter

    with PythonInterpreter() as interpreter:
        interpreter.execute("print(1)")


def main():
    asked = json.load(sys.stdin)
    begun = time.monotonic()
    # What the library prints is not the answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if asked.get("probe"):
        {"rlms": probe_rlms, "dspy": probe_dspy}[asked["peer"]]()
        told = {}
    else:
        told = {"rlms": ask_rlms, "dspy": ask_dspy}[asked["peer"]](asked)
    print(json.dumps({"answer": "", "error": None, "turns": 0, "calls": 0, "tokens": 0,
                      "seconds": round(time.monotonic() - begun, 3), **told}), file=out, flush=True)


if __name__ == "__main__":
    main()

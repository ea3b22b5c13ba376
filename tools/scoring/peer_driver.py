"""Asks one question of a peer, in the peer's own environment: JSON in on stdin, a line of it out.

In: peer, model, baseUrl, question, context, turns, seconds. Out: answer, error (null or a text),
turns, calls, tokens, seconds.
"""

import json
import os
import sys
import time


def ask_rlms(asked):
    """The official library. It tells its calls; one of them is a turn, or a query of a turn."""
    from rlm import RLM

    turns = []
    client = RLM(backend="openai", max_iterations=asked["turns"], max_timeout=asked["seconds"],
                 backend_kwargs={"model_name": asked["model"], "base_url": asked["baseUrl"],
                                 "api_key": os.environ.get("OPENAI_API_KEY", "none")},
                 on_iteration_start=lambda *_: turns.append(1))
    try:
        done = client.completion(asked["context"], root_prompt=asked["question"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "turns": len(turns)}
    used = done.usage_summary.model_usage_summaries.values()
    return {"answer": str(done.response), "turns": len(turns),
            "calls": sum(each.total_calls for each in used),
            "tokens": sum(each.total_input_tokens + each.total_output_tokens for each in used)}


def ask_dspy(asked):
    import dspy

    model = dspy.LM(f"openai/{asked['model']}", api_base=asked["baseUrl"], cache=False,
                    api_key=os.environ.get("OPENAI_API_KEY", "none"))
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


def main():
    asked = json.load(sys.stdin)
    begun = time.monotonic()
    # What the library prints is not the answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    told = {"rlms": ask_rlms, "dspy": ask_dspy}[asked["peer"]](asked)
    print(json.dumps({"answer": "", "error": None, "turns": 0, "calls": 0, "tokens": 0,
                      "seconds": round(time.monotonic() - begun, 3), **told}), file=out, flush=True)


if __name__ == "__main__":
    main()

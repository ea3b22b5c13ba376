"""G6: other runs, of this program and of other ones, are neither seen nor disturbed."""

from attempts import Group

GROUP = Group("others", "--max-depth", "2")

GROUP.add("context_of_another_run", "held", "memory_lacks(*FACTS['neighbours'])")

GROUP.add("siblings_do_not_see_each_other", "held", """
# Each sub-run searches its own memory for the context of the other, and for its own.
marks = [f"sibling-{name}-{FACTS['salt']}" + "." * 100000 for name in ("one", "two")]
answers = batch_rlm_query([{"task": f"task-search {i}", "context": mark} for i, mark in enumerate(marks)])
check([str(answer) for answer in answers] == ["mine True other False"] * 2, answers)
""")

GROUP.add("pages_of_a_shared_context_are_ones_own", "held", """
# Its file is mapped by the sub-run too: what is written over it here is not seen there.
first = id(context) + sys.getsizeof("") - 1
assert ctypes.string_at(first, 6) == b"canary" and first % PAGE == 0, first
call("mprotect", first, PAGE, 3)
ctypes.memmove(first, b"forged", 6)
try:
    check(context.startswith("forged") and str(rlm_query("task-context")) == "canary", context[:6])
finally:
    ctypes.memmove(first, b"canary", 6)
""")

GROUP.add("a_sibling_that_dies_takes_nobody", "held", """
answers = batch_rlm_query(["task-die", "task-live", "task-die", "task-live"])
check([str(answer) for answer in answers] == ["died once", "alive", "died once", "alive"], answers)
""")

GROUP.add("a_sub_runs_words_stay_words", "held", """
answer = str(rlm_query("task-lie"))
check(answer == "lied once", answer)
""")

GROUP.add("variables_of_a_sub_run_are_not_ours", "held", """
mine = 1
check(str(rlm_query("task-overwrite")) == "overwritten" and mine == 1, mine)
""")

GROUP.add("the_seed_is_shared_and_random_is_not", "held", """
import random, uuid
answers = batch_rlm_query(["task-random"] * 4)
check(len({str(answer) for answer in answers}) == 4, answers)
""")

GROUP.add("sub_runs_by_the_hundred", "died", """
# Calls of four sub-runs each, as many as are let through at once: the runner counts the workers.
for i in range(60):
    say({"type": "rlm_query", "id": 5000 + i, "tasks": ["task-sleep"] * 4, "contexts": [None] * 4,
         "subsets": [], "models": [None] * 4})
time.sleep(2)
os._exit(0)
""")

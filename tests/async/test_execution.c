/* Strategies, failures, time-outs, races and cancellation of plans (SPEC-10, ASY-1 to ASY-39). */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(parts) (sizeof(parts) / sizeof *(parts))

static int set_up(void **state)
{
	static struct stage stage;

	virtual_now = 1000;
	stage_open(&stage);
	*state = &stage;
	return 0;
}

static int tear_down(void **state)
{
	stage_close(*state);
	return 0;
}

static void run(struct stage *stage, enum rlmd_plan_strategy strategy, struct part *parts,
		size_t count, const struct rlmd_plan_config *config)
{
	stage_start(stage, strategy, parts, count, config);
	stage_run(stage);
	assert_int_equal(stage->dones, 1);
	assert_int_equal(
		stage->summary.succeeded + stage->summary.failed + stage->summary.cancelled, count);
}

static void assert_status(const struct part *part, enum rlmd_plan_status status, const char *error)
{
	assert_int_equal(part->results, 1);
	assert_int_equal(part->result.status, status);
	assert_string_equal(part->result.error_name, error);
}

/* Four at once without being told otherwise, in priority order, all results collected
 * (ASY-4, ASY-5, ASY-7, ASY-17, ASY-26 to ASY-28). */
static void test_parallel(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 10, .tokens = 1}, {.id = "b", .ms = 10, .tokens = 2},
		{.id = "c", .ms = 10, .tokens = 3}, {.id = "d", .ms = 10, .fails = "no"},
		{.id = "e", .ms = 10, .tokens = 4}, {.id = "f", .ms = 10, .priority = 5},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_string_equal(stage->order, "f a b c d e ");
	assert_int_equal(stage->most, 4);
	assert_int_equal(stage->summary.duration_ms, 20);
	assert_int_equal(stage->summary.tokens, 10);
	assert_int_equal(stage->summary.succeeded, 5);
	assert_int_equal(stage->summary.winner, RLMD_PLAN_NOBODY);
	assert_int_equal(stage->summary.error, RLMD_PLAN_OK);
	assert_status(&parts[0], RLMD_PLAN_SUCCEEDED, "none");
	assert_string_equal(parts[0].answer, "a");
	assert_int_equal(parts[0].result.duration_ms, 10);
	assert_int_equal(parts[0].told, 1010);
	assert_status(&parts[3], RLMD_PLAN_FAILED, "throttled");
	assert_string_equal(parts[3].message, "no");
}

/* Parallel ignores dependencies, a cycle of them too (ASY-21). */
static void test_parallel_ignores_dependencies(void **state)
{
	static struct part parts[] = {
		{.id = "a", .needs = {"b"}, .ms = 10, .fails = "no"},
		{.id = "b", .needs = {"a", "b"}, .ms = 10},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_int_equal(stage->summary.duration_ms, 10);
	assert_status(&parts[1], RLMD_PLAN_SUCCEEDED, "none");
}

/* Each starts the moment its last dependency ends: there is no barrier (ASY-13, ASY-14). */
static void test_dependencies(void **state)
{
	static struct part parts[] = {
		{.id = "end", .needs = {"slow", "next"}, .ms = 1},
		{.id = "fast", .ms = 5},
		{.id = "slow", .ms = 50},
		{.id = "next", .needs = {"fast"}, .ms = 5},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_string_equal(stage->order, "fast slow next end ");
	assert_int_equal(parts[3].began, 1005);
	assert_int_equal(parts[0].began, 1050);
	assert_int_equal(stage->summary.duration_ms, 51);
}

/* One at a time, as listed but for what has to come before (ASY-19); priorities don't count. */
static void test_sequential(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 1},
		{.id = "c", .needs = {"b"}, .input = "{{b}}!", .ms = 1},
		{.id = "b", .ms = 1},
		{.id = "d", .ms = 1, .priority = 9},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_SEQUENTIAL, parts, COUNT(parts), NULL);
	assert_string_equal(stage->order, "a b c d ");
	assert_int_equal(stage->most, 1);
	assert_string_equal(parts[1].took, "b!");
}

/* A host that asked for it finds them after the end; else they go with their last reader. */
static void test_responses_are_kept(void **state)
{
	static struct part parts[] = {
		{.id = "a", .response = "one"},
		{.id = "b", .needs = {"a"}, .input = "{{a}}!"},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_string_equal(parts[1].took, "one!");
	assert_string_equal(stage_result(stage, 0).response.bytes, "one");
}

static void test_responses_are_forgotten(void **state)
{
	static struct part parts[] = {
		{.id = "a", .response = "one"},
		{.id = "b", .needs = {"a"}, .input = "{{a}}!"},
	};
	struct stage *stage = *state;

	stage->forgetful = true;
	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_string_equal(parts[1].took, "one!");
	assert_string_equal(stage_result(stage, 0).response.bytes, "");
}

/* `{{id}}` becomes the response; other braces stay, and a backslash makes it plain (ASY-13). */
static void test_substitution(void **state)
{
	static struct part parts[] = {
		{.id = "a.1", .response = "{{b}}"},
		{.id = "b", .response = ""},
		{.id = "c",
		 .needs = {"a.1", "b", "b"},
		 .input =
			 "{{a.1}}|{{ a.1 }}|{{{b}}}|\\{{b}}|\\\\{{b}}|\\\\\\{{b}}|\\n{x}{{}}{{ a b "
			 "}}{{!}}}}{{"},
		{.id = "d", .needs = {"c"}, .input = "\\{{c}}"},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_string_equal(parts[2].took, "{{b}}|{{b}}|{}|{{b}}|\\|\\{{b}}|\\n{x}{{}}{{ a b "
					   "}}{{!}}}}{{");
	assert_string_equal(parts[3].took, "{{c}}");
}

/* The size that an input grows to is limited before it is made. */
static void test_input_limit(void **state)
{
	static struct part parts[] = {
		{.id = "a", .response = "0123456789"},
		{.id = "fits", .needs = {"a"}, .input = "{{a}}{{a}}"},
		{.id = "not", .needs = {"a"}, .input = "{{a}}{{a}}."},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.input_max = 20});
	assert_status(&parts[1], RLMD_PLAN_SUCCEEDED, "none");
	assert_status(&parts[2], RLMD_PLAN_FAILED, "input");
	assert_int_equal(parts[2].starts, 0);
	assert_non_null(strstr(parts[2].message, "21 bytes"));
}

/* The text that responses are put into is there at once only for so many bytes; the others wait,
 * and each has its turn. */
static void test_inputs_limit(void **state)
{
	static char response[(8 << 20) + 1];
	static struct part parts[] = {
		{.id = "a", .response = response},
		{.id = "b", .needs = {"a"}, .input = "{{a}}", .ms = 10},
		{.id = "c", .needs = {"a"}, .input = "{{a}}", .ms = 10},
		{.id = "d", .needs = {"a"}, .input = "{{a}}", .ms = 10, .fails = "no"},
		{.id = "e", .needs = {"a"}, .input = "{{a}}", .ms = 20},
		{.id = "f", .needs = {"a"}, .input = "{{a}}", .ms = 10},
		{.id = "g", .needs = {"a"}, .input = "{{a}}", .ms = 10},
		{.id = "h", .needs = {"a"}, .input = "h", .ms = 10},
	};
	struct stage *stage = *state;

	memset(response, 'x', sizeof response - 1);
	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.max_parallel = 8});
	assert_int_equal(stage->most, 4);
	assert_int_equal(stage->summary.succeeded, 7);
	assert_int_equal(stage->summary.duration_ms, 20);
}

/* All that depend on a failure, however far, fail; the others go on (ASY-16, ASY-25). */
static void test_fail_dependents(void **state)
{
	static struct part parts[] = {
		{.id = "bad", .ms = 5, .fails = "no"},
		{.id = "x", .needs = {"bad"}},
		{.id = "y", .needs = {"x", "good"}},
		{.id = "z", .needs = {"x", "y"}},
		{.id = "good", .ms = 20},
		{.id = "last", .needs = {"good"}},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	for (int i = 1; i < 4; i++) {
		assert_status(&parts[i], RLMD_PLAN_FAILED, "dependency");
		assert_int_equal(parts[i].starts, 0);
		assert_int_equal(parts[i].told, 1005);
	}
	assert_string_equal(parts[2].message, "its dependency \"x\" failed");
	assert_status(&parts[5], RLMD_PLAN_SUCCEEDED, "none");
	assert_int_equal(stage->summary.error, RLMD_PLAN_OK);
	assert_int_equal(stage->summary.failed, 4);
}

/* The first failure ends everything at once; the partial results are there (ASY-16, ASY-25). */
static void test_fail_fast(void **state)
{
	static struct part parts[] = {
		{.id = "done", .ms = 1, .tokens = 1},
		{.id = "bad", .ms = 5, .fails = "no", .tokens = 2},
		{.id = "busy", .ms = 50, .tokens = 4},
		{.id = "behind", .needs = {"busy"}},
		{.id = "lined", .needs = {"done"}, .ms = 50},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.max_parallel = 2, .partial_failure = RLMD_PLAN_FAIL_FAST});
	assert_int_equal(stage->summary.duration_ms, 5);
	assert_string_equal(parts[0].answer, "done");
	for (int i = 2; i < 5; i++)
		assert_status(&parts[i], RLMD_PLAN_CANCELLED, "cancelled");
	assert_int_equal(parts[2].cancels, 1);
	assert_int_equal(parts[3].starts + parts[4].starts, 0);
	assert_string_equal(parts[3].message, "\"bad\" failed");
	assert_int_equal(stage->summary.tokens, 7);
	assert_true(stage->summary.estimated);
	assert_string_equal(stage->summary.error_name, "throttled");
	assert_string_equal(stage->message, "\"bad\" failed: no");
}

/* Dependents run with the error in place of the response (ASY-16). */
static void test_continue_on_error(void **state)
{
	static struct part parts[] = {
		{.id = "bad", .fails = "no way"},
		{.id = "slow", .ms = 100, .timeout = 7},
		{.id = "sum", .needs = {"bad", "slow"}, .input = "{{bad}}, {{slow}}"},
		{.id = "after", .needs = {"sum", "bad"}, .input = "{{sum}}"},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.partial_failure = RLMD_PLAN_CONTINUE_ON_ERROR});
	assert_string_equal(parts[2].took, "Error: no way, Error: timed out after 7 ms");
	assert_string_equal(parts[3].took, "sum");
	assert_string_equal(parts[0].answer, "");
	assert_int_equal(stage->summary.succeeded, 2);
}

/* A dependent whose dependency could not even start runs with its error too. */
static void test_continue_after_refusal(void **state)
{
	static struct part parts[] = {
		{.id = "a", .response = "xxxxxxxxxxxxxxxxxxxx"},
		{.id = "big", .needs = {"a"}, .input = "{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}"},
		{.id = "sum", .needs = {"big"}, .input = "{{big}}"},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.partial_failure = RLMD_PLAN_CONTINUE_ON_ERROR,
				       .input_max = 130});
	assert_int_equal(parts[1].starts, 0);
	assert_memory_equal(parts[2].took, "Error: its input", 16);
}

/* A time-out counts from the start, not from the wait in line; has a kind of its own; and its
 * tokens count (ASY-6, ASY-36). */
static void test_timeout(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 25, .timeout = -1},
		{.id = "b", .ms = 25, .timeout = 26},
		{.id = "c", .ms = 25, .tokens = 3},
		{.id = "d", .needs = {"c"}},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.max_parallel = 1, .timeout_ms = 10});
	assert_status(&parts[0], RLMD_PLAN_SUCCEEDED, "none");
	assert_status(&parts[1], RLMD_PLAN_SUCCEEDED, "none");
	assert_status(&parts[2], RLMD_PLAN_FAILED, "timeout");
	assert_int_equal(parts[2].result.error, RLMD_PLAN_ERROR_TIMEOUT);
	assert_int_equal(parts[2].cancels, 1);
	assert_int_equal(parts[2].result.duration_ms, 10);
	assert_status(&parts[3], RLMD_PLAN_FAILED, "dependency");
	assert_int_equal(stage->summary.tokens, 3);
	assert_int_equal(stage->summary.metrics->operations[0][RLMD_OUTCOME_TIMEOUT], 1);
	assert_int_equal(stage->summary.metrics->operations[0][RLMD_OUTCOME_DEPENDENCY], 1);
}

/* Thirty seconds where nobody said anything; none where that was asked for (ASY-28). */
static void test_default_timeout(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 1000000},
		{.id = "b", .ms = 1000000, .timeout = RLMD_PLAN_NO_TIMEOUT},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_string_equal(parts[0].message, "timed out after 30000 ms");
	assert_status(&parts[1], RLMD_PLAN_SUCCEEDED, "none");
}

static void assert_losers_closed(struct stage *stage, struct part *part)
{
	if (part->result.status != RLMD_PLAN_SUCCEEDED)
		return;
	assert_int_equal(stage->running, 0);
	assert_int_equal(stage_summary(stage).tokens, 111);
}

/* The first success wins; the losers are closed and counted before anybody is told
 * (ASY-8 to ASY-11). */
static void test_race(void **state)
{
	static struct part parts[] = {
		{.id = "bad", .ms = 1, .fails = "no", .tokens = 100},
		{.id = "fast", .ms = 10, .tokens = 10},
		{.id = "slow", .ms = 90, .tokens = 1},
		{.id = "late", .ms = 500, .priority = -1},
	};
	struct stage *stage = *state;

	stage->on_result = assert_losers_closed;
	run(stage, RLMD_PLAN_SPECULATIVE, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.partial_failure = RLMD_PLAN_FAIL_FAST});
	assert_int_equal(stage->summary.winner, 1);
	assert_string_equal(parts[1].answer, "fast");
	assert_status(&parts[0], RLMD_PLAN_FAILED, "throttled");
	assert_status(&parts[2], RLMD_PLAN_CANCELLED, "cancelled");
	assert_status(&parts[3], RLMD_PLAN_CANCELLED, "cancelled");
	assert_string_equal(parts[2].message, "\"fast\" won the race");
	assert_int_equal(stage->summary.duration_ms, 10);
	assert_int_equal(stage->summary.tokens, 111);
	assert_true(stage->summary.estimated);
	assert_int_equal(stage->summary.cancelled, 2);
	assert_int_equal(stage->summary.metrics->races_won, 1);
}

/* All failed is an error of its own, for a single alternative too (ASY-12). */
static void test_race_without_winner(void **state)
{
	static struct part parts[] = {{.id = "a", .ms = 1, .fails = "no"},
				      {.id = "b", .ms = 20, .timeout = 5}};
	static struct part alone[] = {{.id = "a", .fails = "no"}};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_SPECULATIVE, parts, COUNT(parts), NULL);
	assert_int_equal(stage->summary.error, RLMD_PLAN_ERROR_ALL_FAILED);
	assert_string_equal(stage->message, "all 2 alternatives failed; the last, \"b\": timed out "
					    "after 5 ms");
	assert_int_equal(stage->summary.winner, RLMD_PLAN_NOBODY);
	stage_close(stage);
	stage_open(stage);
	run(stage, RLMD_PLAN_SPECULATIVE, alone, 1, NULL);
	assert_int_equal(stage->summary.error, RLMD_PLAN_ERROR_ALL_FAILED);
	assert_string_equal(stage->message, "all 1 alternatives failed; the last, \"a\": no");
}

static void stop_at_three(struct stage *stage)
{
	if (stage->events == 3)
		stage_stop(stage);
}

/* Cancellation reaches everything at once, and still tells every result (ASY-35). */
static void test_stop(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 10, .tokens = 2},
		{.id = "b", .ms = 10, .tokens = 3},
		{.id = "c", .ms = 10},
		{.id = "d", .needs = {"a"}},
	};
	struct stage *stage = *state;

	stage->on_event = stop_at_three;
	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_int_equal(stage->summary.cancelled, 4);
	assert_int_equal(stage->summary.duration_ms, 0);
	assert_int_equal(stage->summary.tokens, 5);
	assert_int_equal(stage->summary.error, RLMD_PLAN_ERROR_CANCELLED);
	stage_stop(stage);
	assert_false(virtual_step(stage->base));
}

/* Before the loop has turned: nothing was asked for, and all is told as ever. */
static void test_stop_before_it_begins(void **state)
{
	static struct part parts[] = {{.id = "a"}, {.id = "b", .needs = {"a"}}};
	struct stage *stage = *state;

	stage_start(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	stage_set_max_parallel(stage, 2);
	stage_stop(stage);
	assert_null(stage->log);
	stage_run(stage);
	assert_int_equal(stage->dones, 1);
	assert_int_equal(stage->summary.cancelled, 2);
	assert_int_equal(parts[0].starts + parts[1].starts, 0);
	assert_non_null(strstr(stage->log, "plan_start"));
	assert_non_null(strstr(stage->log, "plan_end"));
}

/* The rest of the budget limits the parallelism, again after each end (ASY-3, ASY-22, ASY-23). */
static void test_budget(void **state)
{
	static struct part parts[8] = {{0}};
	static const char *const ids[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct stage *stage = *state;

	for (int i = 0; i < 8; i++)
		parts[i] = (struct part){.id = ids[i], .ms = 10 + i, .tokens = 10};
	stage->money = 75;
	stage->price = 10;
	stage_start(stage, RLMD_PLAN_PARALLEL, parts, 8,
		    &(struct rlmd_plan_config){.max_parallel = 10});
	assert_int_equal(rlmd_execution_parallelism(stage->execution), 0);
	event_base_loop(stage->base, EVLOOP_NONBLOCK);
	assert_int_equal(rlmd_execution_parallelism(stage->execution), 7);
	virtual_step(stage->base);
	assert_int_equal(stage->running, 6);
	assert_int_equal(rlmd_execution_parallelism(stage->execution), 6);
	virtual_step(stage->base);
	assert_int_equal(rlmd_execution_parallelism(stage->execution), 5);
	stage_run(stage);
	assert_int_equal(stage->most, 7);
	assert_int_equal(stage->summary.succeeded, 8);
	assert_true(parts[7].began > 1010);
	assert_true(stage->summary.metrics->budget_limited >= 5);
	assert_non_null(strstr(stage->log, "\"parallelism\",\"ms\":0,\"wanted\":8,\"parallel\":7,"
					   "\"remaining\":75,\"estimate\":10"));
}

/* With nothing left it goes on one at a time, each being asked for; and may be refused (ASY-24). */
static void test_exhausted(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 1}, {.id = "b", .ms = 1}, {.id = "c", .ms = 1}};
	static struct part free_parts[] = {{.id = "a", .ms = 1}, {.id = "b", .ms = 1}};
	struct stage *stage = *state;

	stage->price = 10;
	stage->money = 0;
	stage->admitted_from = 1;
	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_int_equal(stage->refusals, 3);
	for (int i = 0; i < 3; i++) {
		assert_status(&parts[i], RLMD_PLAN_FAILED, "budget");
		assert_string_equal(parts[i].message, "Token budget exhausted");
		assert_int_equal(parts[i].starts, 0);
	}
	stage_close(stage);
	stage_open(stage);
	stage->price = 10;
	run(stage, RLMD_PLAN_PARALLEL, free_parts, COUNT(free_parts), NULL);
	assert_int_equal(stage->most, 1);
	assert_int_equal(stage->summary.succeeded, 2);
	assert_int_equal(stage->summary.duration_ms, 2);
}

/* A manager without limits, or without an idea what an operation costs, limits nothing. */
static void test_budget_without_limits(void **state)
{
	static struct part parts[] = {{.id = "a", .ms = 1}, {.id = "b", .ms = 1}};
	static struct part again[] = {{.id = "a", .ms = 1}, {.id = "b", .ms = 1}};
	struct stage *stage = *state;

	stage->money = RLMD_PLAN_UNLIMITED;
	stage->price = 10;
	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_int_equal(stage->most, 2);
	stage_close(stage);
	stage_open(stage);
	stage->money = 1;
	stage->price = -1;
	run(stage, RLMD_PLAN_PARALLEL, again, COUNT(again), NULL);
	assert_int_equal(stage->most, 2);
}

static void change_course(struct stage *stage)
{
	if (stage->results != 1)
		return;
	stage_set_max_parallel(stage, 3);
	rlmd_execution_set_timeout(stage->execution, 5);
	rlmd_execution_set_partial_failure(stage->execution, RLMD_PLAN_FAIL_FAST);
}

/* Everything may be changed while it runs (ASY-29). */
static void test_reconfiguration(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 10, .fails = "no"},
		{.id = "b", .ms = 10},
		{.id = "c", .ms = 3},
		{.id = "d", .ms = 10},
		{.id = "e", .ms = 10},
	};
	struct stage *stage = *state;

	stage->on_event = change_course;
	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts),
	    &(struct rlmd_plan_config){.max_parallel = 1, .timeout_ms = 100});
	assert_int_equal(stage->most, 3);
	assert_status(&parts[2], RLMD_PLAN_SUCCEEDED, "none");
	assert_string_equal(parts[1].message, "timed out after 5 ms");
	assert_status(&parts[3], RLMD_PLAN_CANCELLED, "cancelled");
	assert_int_equal(stage->summary.duration_ms, 15);
	stage_set_max_parallel(stage, 0); /* too late */
	assert_int_equal(rlmd_execution_parallelism(stage->execution), 3);
}

/* An orchestrator that knows the answer may say so from inside start(). */
static void test_at_once(void **state)
{
	static struct part parts[] = {
		{.id = "a", .at_once = true},
		{.id = "b", .needs = {"a"}, .at_once = true, .input = "{{a}}"},
		{.id = "c", .needs = {"b"}, .at_once = true, .fails = "no"},
		{.id = "d", .needs = {"c"}, .at_once = true},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_string_equal(parts[1].took, "a");
	assert_status(&parts[2], RLMD_PLAN_FAILED, "throttled");
	assert_status(&parts[3], RLMD_PLAN_FAILED, "dependency");
}

/* Tokens that are no number of tokens, reports that come twice, errors without a word
 * (ASY-37). */
static void test_bad_orchestrator(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 1, .tokens = -5, .fails = ""},
		{.id = "b", .ms = 2, .tokens = INT64_MAX},
		{.id = "c", .ms = 3, .tokens = INT64_MAX},
	};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_int_equal(parts[0].result.tokens, 0);
	assert_string_equal(parts[0].message, "failed without a word");
	assert_true(stage->summary.tokens == INT64_MAX);
	rlmd_call_done(parts[1].call,
		       &(struct rlmd_plan_answer){.error = RLMD_PLAN_ERROR_OPERATION});
	assert_false(virtual_step(stage->base));
	assert_int_equal(stage_result(stage, 1).status, RLMD_PLAN_SUCCEEDED);
}

/* Callbacks are as rlmd/plan.h says: all come from the loop, and neither the log nor
 * the budget manager is heard before a start, a stop or a change has returned (the stage asserts
 * that). */
static void test_what_comes_at_once(void **state)
{
	static struct part parts[] = {{.id = "a", .ms = 10}, {.id = "b", .ms = 10}};
	struct stage *stage = *state;

	stage->price = stage->money = 1;
	stage_start(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts), NULL);
	assert_null(stage->log);
	event_base_loop(stage->base, EVLOOP_NONBLOCK);
	assert_non_null(strstr(stage->log, "\"plan_start\""));
	assert_non_null(strstr(stage->log, "\"parallelism\""));
	stage_set_max_parallel(stage, 1);
	stage_stop(stage);
	assert_int_equal(stage->results + stage->dones, 0);
	stage_run(stage);
	assert_int_equal(stage->dones, 1);
}

static void answer_nothing(void *owner, const struct rlmd_operation *operation,
			   struct rlmd_text input, struct rlmd_call *call)
{
	(void)owner, (void)operation, (void)input;
	rlmd_call_done(call, NULL);
}

static void hang(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		 struct rlmd_call *call)
{
	(void)owner, (void)operation, (void)input, (void)call;
}

/* LIB-26: what is missing is refused, or nothing, and nothing aborts. */
static void test_missing_arguments(void **state)
{
	const struct rlmd_operation operation = {.size = sizeof operation, .id = "a"};
	const struct rlmd_plan_description description = {
		.size = sizeof description,
		.operations = &operation,
		.count = 1,
	};
	struct rlmd_orchestrator orchestrator = RLMD_ORCHESTRATOR_INIT;
	struct rlmd_execution_options options = RLMD_EXECUTION_OPTIONS_INIT;
	struct rlmd_plan_result result = RLMD_PLAN_RESULT_INIT;
	struct rlmd_plan_summary summary = RLMD_PLAN_SUMMARY_INIT;
	struct rlmd_error err = {0};
	struct rlmd_plan *plan = rlmd_plan_new(&description, NULL);
	struct event_base *base = ((struct stage *)*state)->base;
	struct rlmd_execution *execution;
	char *text;

	assert_null(rlmd_execution_start(base, plan, NULL, NULL));
	assert_null(rlmd_execution_start(base, plan, &options, &err));
	assert_string_equal(err.text, "the orchestrator has no start()");
	options.orchestrator = &orchestrator;
	orchestrator.start = answer_nothing;
	orchestrator.size = 1;
	assert_null(rlmd_execution_start(base, plan, &options, &err));
	assert_non_null(strstr(err.text, "the size of struct rlmd_orchestrator is 1"));
	orchestrator.size = sizeof orchestrator;
	assert_null(rlmd_execution_start(NULL, plan, &options, NULL));
	assert_null(rlmd_execution_start(base, NULL, &options, NULL));
	execution = rlmd_execution_start(base, plan, &options, NULL);
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_true(rlmd_execution_result(execution, 0, &result));
	assert_int_equal(result.error, RLMD_PLAN_ERROR_OPERATION);
	assert_false(rlmd_execution_result(execution, 1, &result));
	assert_false(rlmd_execution_result(execution, 0, NULL));
	rlmd_execution_free(execution);
	orchestrator.start = hang;
	execution = rlmd_execution_start(base, plan, &options, NULL);
	event_base_loop(base, EVLOOP_NONBLOCK);
	rlmd_execution_stop(execution);
	assert_true(rlmd_execution_summary(execution, &summary));
	assert_int_equal(summary.cancelled, 1);
	rlmd_execution_free(execution);
	rlmd_plan_free(plan);

	rlmd_execution_stop(NULL);
	rlmd_execution_set_max_parallel(NULL, 1);
	rlmd_execution_set_timeout(NULL, 1);
	rlmd_execution_set_partial_failure(NULL, RLMD_PLAN_FAIL_FAST);
	assert_int_equal(rlmd_execution_parallelism(NULL), 0);
	assert_false(rlmd_execution_result(NULL, 0, &result));
	assert_false(rlmd_execution_summary(NULL, &summary));
	assert_null(rlmd_execution_plan(NULL));
	assert_null(rlmd_execution_json(NULL));
	assert_null(rlmd_plan_event_json(NULL));
	assert_null(rlmd_plan_event_json(&(struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_END}));
	rlmd_call_started(NULL);
	rlmd_call_done(NULL, NULL);
	rlmd_plan_metrics_add(NULL, NULL);
	rlmd_plan_metrics_free(NULL);
	assert_true(rlmd_plan_metrics_utilisation(NULL) + rlmd_plan_metrics_win_rate(NULL) == 0);
	text = rlmd_plan_metrics_text(NULL);
	assert_non_null(strstr(text, "rlmd_plan_tokens_total 0"));
	free(text);
}

/* Slots that dependencies keep empty count as not used. */
static void test_utilisation(void **state)
{
	static struct part parts[] = {{.id = "a", .ms = 10}, {.id = "b", .ms = 10, .needs = {"a"}}};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts), NULL);
	assert_int_equal(stage->summary.metrics->busy_ms, 20);
	assert_int_equal(stage->summary.metrics->slot_ms, 30);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(test_parallel),
		TEST(test_what_comes_at_once),
		TEST(test_missing_arguments),
		TEST(test_parallel_ignores_dependencies),
		TEST(test_dependencies),
		TEST(test_sequential),
		TEST(test_substitution),
		TEST(test_responses_are_kept),
		TEST(test_responses_are_forgotten),
		TEST(test_input_limit),
		TEST(test_inputs_limit),
		TEST(test_fail_dependents),
		TEST(test_fail_fast),
		TEST(test_continue_on_error),
		TEST(test_continue_after_refusal),
		TEST(test_timeout),
		TEST(test_default_timeout),
		TEST(test_race),
		TEST(test_race_without_winner),
		TEST(test_stop),
		TEST(test_stop_before_it_begins),
		TEST(test_budget),
		TEST(test_exhausted),
		TEST(test_budget_without_limits),
		TEST(test_reconfiguration),
		TEST(test_at_once),
		TEST(test_bad_orchestrator),
		TEST(test_utilisation),
	};

	return cmocka_run_group_tests_name("execution", tests, NULL, NULL);
}

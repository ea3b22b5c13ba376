/*
 * Plans of ten thousand operations: no recursion, however long a chain, and time
 * in proportion. How much time is for the reader; what is asserted is counted.
 */
#include <rlmd/plan.h>

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { COUNT = 10000, FAN = 10 };

/* Each answers from inside start(); number `bad` fails. */
struct crowd {
	struct event_base *base;
	struct rlmd_operation *operations;
	const char **needs;
	char (*ids)[16];
	size_t count, bad, starts, results, depth;
	bool done;
	struct rlmd_plan_summary summary;
};

static void start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		  struct rlmd_call *call)
{
	struct crowd *crowd = owner;
	struct rlmd_plan_answer answer = {.size = sizeof answer, .response = input, .tokens = 1};

	if ((size_t)operation->priority == crowd->bad)
		answer.error = RLMD_PLAN_ERROR_OPERATION;
	crowd->starts++;
	assert_int_equal(crowd->depth++, 0);
	rlmd_call_done(call, &answer);
	crowd->depth--;
}

static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct crowd *crowd = owner;

	if (result->status == RLMD_PLAN_SUCCEEDED)
		assert_ptr_equal(result->response.bytes, result->operation->input.bytes);
	crowd->results++;
}

static void on_done(void *owner, const struct rlmd_plan_summary *summary)
{
	struct crowd *crowd = owner;

	crowd->done = true;
	crowd->summary = *summary;
}

/* Each needs the one before, and others before it: `fan` in all. */
static void set_up_crowd(struct crowd *crowd, size_t count, size_t fan)
{
	unsigned random = 1;

	*crowd = (struct crowd){
		.base = event_base_new(),
		.operations = xcalloc(count, sizeof *crowd->operations),
		.needs = xcalloc(count * fan, sizeof *crowd->needs),
		.ids = xcalloc(count, sizeof *crowd->ids),
		.count = count,
		.bad = SIZE_MAX,
	};
	for (size_t i = 0; i < count; i++) {
		snprintf(crowd->ids[i], sizeof *crowd->ids, "%zu", i);
		crowd->operations[i] = (struct rlmd_operation){
			.size = sizeof *crowd->operations,
			.id = fan ? crowd->ids[i] : NULL,
			.input = {"input", 5},
			.priority = (int)i,
			.depends_on = crowd->needs + i * fan,
			.depends_count = i ? fan : 0,
		};
		for (size_t d = 0; i && d < fan; d++) {
			random = random * 1103515245 + 12345;
			crowd->needs[i * fan + d] = crowd->ids[d ? (random >> 8) % i : i - 1];
		}
	}
}

/* Returns the processor time that it took. */
static clock_t run_crowd(struct crowd *crowd, enum rlmd_plan_strategy strategy)
{
	const struct rlmd_plan_description description = {
		.size = sizeof description,
		.operations = crowd->operations,
		.count = crowd->count,
		.strategy = strategy,
	};
	const struct rlmd_plan_config config = {
		.size = sizeof config,
		.max_parallel = 8,
		.timeout_ms = RLMD_PLAN_NO_TIMEOUT,
	};
	const struct rlmd_orchestrator orchestrator = {
		.size = sizeof orchestrator,
		.start = start,
		.owner = crowd,
	};
	const struct rlmd_execution_options options = {
		.size = sizeof options,
		.config = &config,
		.orchestrator = &orchestrator,
		.on_result = on_result,
		.on_done = on_done,
		.owner = crowd,
	};
	clock_t began = clock();
	struct rlmd_plan *plan = rlmd_plan_new(&description, NULL);
	struct rlmd_execution *execution = rlmd_execution_start(crowd->base, plan, &options, NULL);

	event_base_dispatch(crowd->base);
	began = clock() - began;
	assert_true(crowd->done);
	assert_int_equal(crowd->results, crowd->count);
	rlmd_execution_free(execution);
	rlmd_plan_free(plan);
	event_base_free(crowd->base);
	free(crowd->operations);
	free(crowd->needs);
	free(crowd->ids);
	return began;
}

static void compare(const char *what, size_t fan, enum rlmd_plan_strategy strategy)
{
	struct crowd crowd;
	clock_t spent[2];

	for (int i = 0; i < 2; i++) {
		set_up_crowd(&crowd, i ? 2 * COUNT : COUNT, fan);
		spent[i] = run_crowd(&crowd, strategy);
		assert_int_equal(crowd.starts, crowd.count);
		assert_int_equal(crowd.summary.tokens, crowd.count);
	}
	print_message("# %s of %d: %.2f us each; twice as many take %.1f times as long\n", what,
		      COUNT, 1e6 * (double)spent[0] / CLOCKS_PER_SEC / COUNT,
		      (double)spent[1] / (double)(spent[0] + 1));
}

/* A batch: no names, nothing copied. */
static void test_batch(void **state)
{
	(void)state;
	compare("a batch", 0, RLMD_PLAN_PARALLEL);
}

static void test_chain(void **state)
{
	(void)state;
	compare("a chain", 1, RLMD_PLAN_DEPENDENCY_AWARE);
}

/* 100,000 dependencies. */
static void test_web(void **state)
{
	(void)state;
	compare("a web with ten dependencies each", FAN, RLMD_PLAN_DEPENDENCY_AWARE);
}

/* The failure of the first goes through the whole chain. */
static void test_failing_chain(void **state)
{
	struct crowd crowd;

	(void)state;
	set_up_crowd(&crowd, COUNT, 1);
	crowd.bad = 0;
	run_crowd(&crowd, RLMD_PLAN_DEPENDENCY_AWARE);
	assert_int_equal(crowd.starts, 1);
	assert_int_equal(crowd.summary.failed, COUNT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_web),
		cmocka_unit_test(test_failing_chain),
	};

	return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}

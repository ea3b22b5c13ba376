/*
 * An orchestrator with a line of its own: what waits there does not run. So its time-out rests, it
 * counts nowhere as running, and it can be put back when fewer may run.
 */
#include "stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int set_up(void **state)
{
	static struct stage stage;

	stage_open(&stage);
	stage.queues = true;
	*state = &stage;
	return 0;
}

static int tear_down(void **state)
{
	stage_close(*state);
	return 0;
}

/* A time-out counts from when it runs (ASY-6), and so do durations and sums (ASY-39). */
static void test_time(void **state)
{
	static struct part parts[] = {
		{.id = "patient", .waits = 1000, .ms = 9},
		{.id = "late", .waits = 5, .ms = 11, .tokens = 3},
		{.id = "refused", .waits = 100, .refused = true, .fails = "no"},
	};
	struct stage *stage = *state;

	stage_start(stage, RLMD_PLAN_PARALLEL, parts, COUNT(parts),
		    &(struct rlmd_plan_config){.timeout_ms = 10});
	stage_run(stage);
	assert_int_equal(parts[0].result.status, RLMD_PLAN_SUCCEEDED);
	assert_int_equal(parts[0].result.duration_ms, 9);
	assert_int_equal(parts[1].result.error, RLMD_PLAN_ERROR_TIMEOUT);
	assert_int_equal(parts[1].result.duration_ms, 10);
	assert_int_equal(parts[1].cancels, 1);
	assert_int_equal(parts[2].result.status, RLMD_PLAN_FAILED);
	assert_int_equal(parts[2].result.duration_ms, 0);
	assert_int_equal(stage->summary.metrics->parallel_highest, 1);
	assert_int_equal(stage->summary.metrics->busy_ms, 19);
	assert_int_equal(stage->summary.metrics->slot_ms, 3 * 15 + 2 * 85 + 909);
}

/* When the budget allows less, those that wait the longest to come stand in line again, at their
 * places; nobody runs who may not (ASY-23, ASY-24: set_going() in stage.c asserts it). */
static void test_put_back(void **state)
{
	static struct part parts[] = {
		{.id = "dear", .waits = 1, .ms = 1, .tokens = 85},
		{.id = "long", .waits = 0, .ms = 50},
		{.id = "b", .waits = 10, .ms = 10, .input = "{{dear}}", .needs = {"dear"}},
		{.id = "c", .waits = 10, .ms = 10},
		{.id = "d", .waits = 10, .ms = 10},
		{.id = "first", .waits = 10, .ms = 10, .priority = 1, .needs = {"dear"}},
	};
	struct stage *stage = *state;

	stage->money = 100;
	stage->price = 10;
	stage_start(stage, RLMD_PLAN_DEPENDENCY_AWARE, parts, COUNT(parts),
		    &(struct rlmd_plan_config){.max_parallel = 6});
	stage_run(stage);
	assert_int_equal(stage->summary.succeeded, 6);
	assert_int_equal(parts[3].put_back, 1);
	assert_int_equal(parts[4].put_back, 1);
	assert_int_equal(parts[2].put_back, 0);
	assert_string_equal(stage->order, "long dear first c d b ");
	assert_string_equal(parts[2].took, "dear");
	assert_int_equal(stage->most, 2);
	assert_int_equal(stage->summary.metrics->parallel_highest, 2);
}

/* A caller that waits may be cancelled, by a winner or by the caller, and had used nothing. */
static void test_cancelled(void **state)
{
	static struct part parts[] = {
		{.id = "quick", .ms = 5, .tokens = 1},
		{.id = "waits", .waits = 50, .tokens = 7},
	};
	struct stage *stage = *state;

	stage_start(stage, RLMD_PLAN_SPECULATIVE, parts, COUNT(parts), NULL);
	stage_run(stage);
	assert_int_equal(stage->summary.winner, 0);
	assert_int_equal(parts[1].result.status, RLMD_PLAN_CANCELLED);
	assert_int_equal(parts[1].result.duration_ms, 0);
	assert_int_equal(parts[1].put_back, 1);
	assert_int_equal(stage->summary.tokens, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		TEST(test_time),
		TEST(test_put_back),
		TEST(test_cancelled),
	};

	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}

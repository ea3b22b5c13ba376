/* async/report: what executions tell, as JSON: their events and their results (ASY-26, ASY-38). */
#include "async/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stage.h"

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

/* The log tells of start, winner and end in order (ASY-38). */
static void test_log(void **state)
{
	static struct part parts[] = {{.id = "a", .ms = 3, .tokens = 7}, {.id = "b", .ms = 9}};
	struct stage *stage = *state;

	run(stage, RLMD_PLAN_SPECULATIVE, parts, COUNT(parts), NULL);
	assert_string_equal(
		stage->log,
		"{\"event\":\"plan_start\",\"ms\":0,\"strategy\":\"Speculative\",\"operations\":2,"
		"\"wanted\":2} "
		"{\"event\":\"winner\",\"ms\":3,\"id\":\"a\",\"tokens\":7,\"duration\":3,\"error\":null,"
		"\"status\":\"succeeded\"} "
		"{\"event\":\"plan_end\",\"ms\":3,\"succeeded\":1,\"failed\":0,\"cancelled\":1,"
		"\"totalTokens\":7,\"duration\":3,\"error\":null} ");
}

/* The result as JSON: every operation, in order, with what became of it (ASY-26, ASY-27). */
static void test_json(void **state)
{
	static struct part parts[] = {
		{.id = "a", .ms = 2, .tokens = 7, .type = RLMD_OPERATION_VERIFY},
		{.id = "b", .ms = 1, .fails = "no"},
		{.id = "c", .ms = 9},
	};
	struct stage *stage = *state;
	char *json;

	run(stage, RLMD_PLAN_SPECULATIVE, parts, COUNT(parts), NULL);
	json = rlmd_execution_json(stage->execution);
	assert_string_equal(
		json,
		"{\"results\":{"
		"\"a\":{\"id\":\"a\",\"response\":\"a\",\"tokens\":7,\"duration\":2,\"error\":null,"
		"\"status\":\"succeeded\"},"
		"\"b\":{\"id\":\"b\",\"response\":null,\"tokens\":0,\"duration\":1,\"error\":{\"kind\":"
		"\"throttled\",\"message\":\"no\"},\"status\":\"failed\"},"
		"\"c\":{\"id\":\"c\",\"response\":null,\"tokens\":0,\"duration\":2,\"error\":{\"kind\":"
		"\"cancelled\",\"message\":\"\\\"a\\\" won the race\"},\"status\":\"cancelled\","
		"\"estimated\":true}},"
		"\"totalTokens\":7,\"duration\":2,\"winner\":\"a\",\"cancelled\":[\"c\"],"
		"\"error\":null,\"metrics\":{\"operations\":{\"Query\":{\"failed\":1,\"cancelled\":1},"
		"\"Verify\":{\"succeeded\":1}},\"tokens\":7,\"parallelHighest\":3,\"utilisation\":1.0,"
		"\"budgetLimited\":0,\"races\":1,\"winRate\":1.0}}");
	free(json);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(rlmd_plan_error_name(RLMD_PLAN_OK), "none");
	assert_string_equal(rlmd_plan_error_name(RLMD_PLAN_ERROR_ALL_FAILED), "all_failed");
	assert_string_equal(rlmd_plan_error_name((enum rlmd_plan_error_kind)99), "operation");
	assert_string_equal(report_event_name(RLMD_PLAN_EVENT_START), "plan_start");
	assert_string_equal(report_event_name(RLMD_PLAN_EVENT_END), "plan_end");
}

static void assert_event(const struct rlmd_plan_event *event, const char *wanted)
{
	char *json = rlmd_plan_event_json(event);

	assert_string_equal(json, wanted);
	free(json);
}

/* An operation without an id is named by its place. */
static void test_events(void **state)
{
	const struct rlmd_plan_result result = {
		.status = RLMD_PLAN_FAILED,
		.error = RLMD_PLAN_ERROR_TIMEOUT,
		.error_name = "timeout",
		.message = "too \xff late",
		.tokens = 3,
		.estimated = true,
	};
	struct rlmd_plan_event event = {.kind = RLMD_PLAN_EVENT_OPERATION_START, .index = 7};

	(void)state;
	assert_event(&event, "{\"event\":\"operation_start\",\"ms\":0,\"id\":\"operations[7]\"}");
	event.kind = RLMD_PLAN_EVENT_OPERATION_END;
	event.id = "a";
	event.result = &result;
	assert_event(&event,
		     "{\"event\":\"operation_end\",\"ms\":0,\"id\":\"a\",\"tokens\":3,"
		     "\"duration\":0,\"error\":{\"kind\":\"timeout\",\"message\":"
		     "\"too \xef\xbf\xbd late\"},\"status\":\"failed\",\"estimated\":true}");
	event = (struct rlmd_plan_event){.kind = RLMD_PLAN_EVENT_PARALLELISM, .parallel = 2};
	assert_event(&event, "{\"event\":\"parallelism\",\"ms\":0,\"wanted\":0,\"parallel\":2,"
			     "\"remaining\":0,\"estimate\":0}");
	event.kind = RLMD_PLAN_EVENT_END; /* without its summary */
	assert_null(rlmd_plan_event_json(&event));
	assert_null(rlmd_plan_event_json(NULL));
	assert_null(rlmd_execution_json(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_log, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}

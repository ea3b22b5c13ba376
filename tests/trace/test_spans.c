/* trace/spans: which spans the events of a trace are, and when they were. */
#include "trace/spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define HEAD "\"formatVersion\":1,\"program\":\"rlmd 9\",\"startedAt\":\"2026-01-02T03:04:05.678Z\""

static const char TRACE[] =
	"{\"event\":\"run\",\"seq\":0,\"ms\":0,\"run\":\"a\",\"parent\":null,\"depth\":0,"
	"\"model\":\"m\"," HEAD "}\n"
	"{\"event\":\"response\",\"seq\":1,\"ms\":30,\"run\":\"a\",\"model\":\"m\",\"startedMs\":10,"
	"\"duration\":15}\n"
	"{\"event\":\"run\",\"seq\":2,\"ms\":35,\"run\":\"b\",\"parent\":\"a\",\"depth\":1,\"model\":"
	"\"m\"}\n"
	"{\"event\":\"llm_call\",\"seq\":3,\"ms\":50,\"run\":\"b\",\"model\":\"n\",\"duration\":20,"
	"\"error\":{\"kind\":\"network\",\"message\":\"x\"}}\n"
	"{\"event\":\"end\",\"seq\":4,\"ms\":60,\"run\":\"b\",\"error\":null}\n"
	"{\"event\":\"code\",\"seq\":5,\"ms\":70,\"run\":\"a\",\"duration\":100,\"error\":\"Traceback\"}\n"
	"{\"event\":\"code\",\"seq\":6,\"ms\":80,\"run\":\"a\",\"duration\":5,\"error\":null}\n";

static void assert_span(const struct span *span, enum span_kind kind, const char *run,
			size_t number, int64_t start, int64_t end)
{
	assert_int_equal(span->kind, kind);
	assert_string_equal(span->run, run);
	assert_int_equal(span->number, number);
	assert_int_equal(span->start, start);
	assert_int_equal(span->end, end);
}

/* The root has no end: it lasts as long as the trace. */
static void test_events(void **state)
{
	struct spans spans;
	auto_free char *name = NULL;

	(void)state;
	assert_true(spans_read(text_of(TRACE), "t", &spans, NULL));
	assert_int_equal(spans.count, 6);
	assert_true(spans.started == 1767323045678);
	assert_string_equal(spans.program, "rlmd 9");
	assert_span(&spans.items[0], SPAN_RUN, "a", 1, 0, 80);
	assert_string_equal(spans_error(&spans.items[0]), "killed");
	assert_span(&spans.items[1], SPAN_TURN, "a", 1, 10, 25);
	assert_span(&spans.items[2], SPAN_RUN, "b", 1, 35, 60);
	assert_string_equal(spans.items[2].parent, "a");
	assert_null(spans_error(&spans.items[2]));
	assert_span(&spans.items[3], SPAN_CALL, "b", 1, 30, 50);
	assert_string_equal(spans_error(&spans.items[3]), "network");
	name = spans_name(&spans.items[3]);
	assert_string_equal(name, "chat n");
	assert_span(&spans.items[4], SPAN_BLOCK, "a", 1, 0, 70);
	assert_string_equal(spans_error(&spans.items[4]), "exception");
	assert_span(&spans.items[5], SPAN_BLOCK, "a", 2, 75, 80);
	spans_done(&spans);
}

/* A plan is a run of its own; one that a block has ordered is not. */
static void test_plans(void **state)
{
	static const char plan[] =
		"{\"event\":\"plan_start\",\"seq\":0,\"ms\":0,\"run\":\"p\"," HEAD "}\n"
		"{\"event\":\"run\",\"seq\":1,\"ms\":1,\"run\":\"a\",\"parent\":"
		"\"p\",\"model\":\"m\"}\n"
		"{\"event\":\"plan_start\",\"seq\":2,\"ms\":2,\"run\":\"a\"}\n"
		"{\"event\":\"plan_end\",\"seq\":3,\"ms\":3,\"run\":\"a\"}\n"
		"{\"event\":\"end\",\"seq\":4,\"ms\":4,\"run\":\"a\"}\n"
		"{\"event\":\"plan_end\",\"seq\":5,\"ms\":5,\"run\":\"p\"}\n";
	struct spans spans;

	(void)state;
	assert_true(spans_read(text_of(plan), "t", &spans, NULL));
	assert_int_equal(spans.count, 2);
	assert_span(&spans.items[0], SPAN_RUN, "p", 1, 0, 5);
	assert_null(spans.items[0].parent);
	assert_span(&spans.items[1], SPAN_RUN, "a", 1, 1, 4);
	spans_done(&spans);
}

static void test_none(void **state)
{
	static const char *const texts[] = {
		"",
		"{\"a\":1}\n",
		"words\n",
		"{\"event\":\"run\",\"seq\":0,\"ms\":0,\"run\":\"a\"}\n",
		"{\"event\":\"run\",\"seq\":0,\"ms\":0,\"run\":\"a\",\"startedAt\":\"yesterday\"}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct rlmd_error err = {0};
		struct spans spans;

		assert_false(spans_read(text_of(texts[i]), "t", &spans, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		spans_done(&spans);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* trace/trace: who is told of which events, their numbers, and how much of texts is kept. */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rlmd/rlmd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "trace/lines.h"

struct told {
	int count;
	enum trace_kind kind;
	json_t *event; /* owned: the last one */
};

static void on_event(void *owner, enum trace_kind kind, json_t *event)
{
	struct told *told = owner;

	told->count++;
	told->kind = kind;
	json_decref(told->event);
	told->event = json_incref(event);
}

static json_int_t integer(const struct told *told, const char *name)
{
	return json_integer_value(json_object_get(told->event, name));
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(trace_kind_of("llm_call"), TRACE_LLM_CALL);
	assert_int_equal(trace_kind_of("result"), TRACE_RESULT);
	assert_int_equal(trace_kind_of("nonsense"), TRACE_KINDS);
}

/* Numbers count all events, so that a reader sees where some were not told. */
static void test_kinds(void **state)
{
	struct told told = {0};
	struct trace *trace = trace_new(false, trace_only(TRACE_CODE), on_event, &told);

	(void)state;
	assert_false(trace_hears(trace, TRACE_RESPONSE));
	assert_true(trace_hears(trace, TRACE_CODE));
	trace_run(trace, TRACE_CODE, "r-1", "{s:i, s:s}", "block", 7, "run", "ignored");
	assert_int_equal(told.count, 1);
	assert_int_equal(told.kind, TRACE_CODE);
	assert_int_equal(integer(&told, "seq"), 1);
	assert_int_equal(integer(&told, "block"), 7);
	assert_true(integer(&told, "ms") >= 0);
	assert_string_equal(json_string_value(json_object_get(told.event, "event")), "code");
	assert_string_equal(json_string_value(json_object_get(told.event, "run")), "r-1");
	trace_run(trace, TRACE_END, "r-1", "{}");
	assert_int_equal(told.count, 1);
	trace_run(trace, TRACE_CODE, "r-1", "{}");
	assert_int_equal(integer(&told, "seq"), 3);
	assert_null(trace_tree(trace));
	trace_free(trace);
	trace_free(NULL);
	json_decref(told.event);
}

/* The first that is told has the form, also where one before it was not made. */
static void test_form(void **state)
{
	struct told told = {0};
	struct trace *trace = trace_new(false, trace_only(TRACE_CODE), on_event, &told);

	(void)state;
	assert_false(trace_hears(trace, TRACE_RUN));
	trace_run(trace, TRACE_CODE, "r", "{}");
	assert_int_equal(integer(&told, "formatVersion"), TRACE_FORMAT);
	assert_string_equal(json_string_value(json_object_get(told.event, "program")),
			    "rlmd " RLMD_VERSION);
	assert_int_equal(json_string_length(json_object_get(told.event, "startedAt")),
			 strlen("2026-03-01T12:00:00.250Z"));
	trace_run(trace, TRACE_CODE, "r", "{}");
	assert_null(json_object_get(told.event, "formatVersion"));
	trace_free(trace);
	json_decref(told.event);
}

/* The tree hears what it is made of, whoever else does. */
static void test_tree(void **state)
{
	struct trace *trace = trace_new(true, 0, NULL, NULL);

	(void)state;
	assert_true(trace_hears(trace, TRACE_RUN));
	assert_false(trace_hears(trace, TRACE_WARNING));
	assert_null(trace_tree(trace));
	trace_run(trace, TRACE_RUN, "r", "{s:n, s:i, s:s}", "parent", "depth", 0, "task", "t");
	assert_non_null(trace_tree(trace));
	trace_free(trace);
}

static void test_calls_are_bounded(void **state)
{
	struct trace *trace = trace_new(false, 0, NULL, NULL);
	int count = 0;

	(void)state;
	while (trace_admit_call(trace))
		count++;
	assert_int_equal(count, 20000);
	assert_false(trace_admit_call(trace));
	trace_free(trace);
}

/* 32 MiB of texts, as JSON has them, where control characters take six bytes. */
static void test_texts_are_bounded(void **state)
{
	enum { SIZE = 1 << 20 };
	struct trace *trace = trace_new(false, 0, NULL, NULL);
	auto_free char *bytes = xcalloc(SIZE, 1);
	int count = 0;

	(void)state;
	memset(bytes, 'a', SIZE);
	while (trace_admit_text(trace, text_from(bytes, SIZE), SIZE) == SIZE)
		count++;
	assert_int_equal(count, 32);
	assert_int_equal(trace_admit_text(trace, text_from(bytes, SIZE), SIZE), 200);
	assert_int_equal(trace_admit_text(trace, text_from(bytes, SIZE), 100), 100);
	trace_free(trace);
	trace = trace_new(false, 0, NULL, NULL);
	memset(bytes, 1, SIZE);
	for (count = 0; trace_admit_text(trace, text_from(bytes, SIZE), SIZE) == SIZE;)
		count++;
	assert_int_equal(count, 6);
	trace_free(trace);
}

static void assert_uuid(const char *uuid, char version)
{
	assert_int_equal(strlen(uuid), 36);
	for (size_t i = 0; i < 36; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(uuid[i], '-');
		else
			assert_non_null(strchr("0123456789abcdef", uuid[i]));
	assert_int_equal(uuid[14], version);
	assert_non_null(strchr("89ab", uuid[19]));
}

static void test_uuids(void **state)
{
	char one[37], other[37];

	(void)state;
	trace_uuid(one);
	trace_uuid(other);
	assert_uuid(one, '4');
	assert_string_not_equal(one, other);
	trace_uuid_of(text_of("a"), one);
	trace_uuid_of(text_of("a"), other);
	assert_uuid(one, '8');
	assert_string_equal(one, other);
	/* SHA-256 of "a", with the bits of version and variant */
	assert_string_equal(one, "ca978112-ca1b-8dca-bac2-31b39a23dc4d");
	trace_uuid_of(text_of("b"), other);
	assert_string_not_equal(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_calls_are_bounded),
		cmocka_unit_test(test_texts_are_bounded),
		cmocka_unit_test(test_uuids),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}

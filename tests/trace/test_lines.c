/* trace/lines: which lines are events, and which of them are those of the last trace. */
#include "trace/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rlmd/trace.h>

#include "base/buffer.h"
#include "base/cleanup.h"

#define FIRST                                                                                      \
	"{\"event\":\"run\",\"seq\":0,\"run\":\"a\"}\n{\"event\":\"end\",\"seq\":1,\"run\":\"a\"}\n"
#define LAST                                                                                       \
	"{\"event\":\"run\",\"seq\":0,\"run\":\"b\"}\n{\"event\":\"code\",\"seq\":1,\"run\":\"b\"}\n"

static void on_event(void *owner, const char *event, struct rlmd_text line)
{
	buffer_add_printf(owner, "%s of %zu bytes; ", event, line.size);
}

static bool told(const char *lines, const char *expected, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	bool ok = rlmd_trace_events(text_of(lines), "it", on_event, out, err);

	assert_string_equal(text_in(out).size ? text_in(out).bytes : "", expected);
	return ok;
}

static void test_the_last(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_true(told(FIRST, "run of 33 bytes; end of 33 bytes; ", &err));
	assert_true(told(FIRST LAST, "run of 33 bytes; code of 34 bytes; ", &err));
	/* Of the first half of a line is left: the next run began behind it. */
	assert_true(told("{\"event\":\"ru\n" LAST, "run of 33 bytes; code of 34 bytes; ", &err));
	assert_true(told(LAST "{\"event\":\"en", "run of 33 bytes; code of 34 bytes; ", &err));
}

static void test_no_trace(void **state)
{
	static const char *const rows[] = {"", "{}\n[]\n1\n", "{\"event\":1,\"seq\":0}\n", "x\n"};
	struct rlmd_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_false(told(rows[i], "", &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		assert_non_null(strstr(err.text, "it"));
	}
	assert_false(told(FIRST "{\"formatVersion\":2}\n", "", &err));
	assert_non_null(
		strstr(err.text, "it: line 3: a trace of form 2, written by another program;"));
	assert_false(rlmd_trace_events(text_of(FIRST), NULL, NULL, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_trace_events((struct rlmd_text){NULL, 3}, NULL, on_event, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last),
		cmocka_unit_test(test_no_trace),
	};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}

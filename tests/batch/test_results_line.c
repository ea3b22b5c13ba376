/* batch/results_line: written, read again, and known when it is cut. */
#include "batch/results_line.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

#define DIGEST "5c0e000000000000ffffffffffffffffffffffffffffffffffffffffffffffff"

static void assert_written(const struct results_line *line, const char *wanted)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *text = NULL;
	struct rlmd_error err;

	assert_true(results_line_write(line, out, &err));
	text = text_drain(out, NULL);
	assert_string_equal(text, wanted);
}

static void test_write(void **state)
{
	struct results_line line = {
		.custom_id = "a\"\n",
		.attempts = 2,
		.mark = results_line_mark(DIGEST),
		.result = text_of(" {\"success\":true,\n \"output\":\"x\\n\"}\n")};

	(void)state;
	assert_written(&line,
		       "{\"custom_id\":\"a\\\"\\n\",\"tenant\":null,\"attempts\":2,"
		       "\"job\":\"5c0e000000000001\",\"success\":true, \"output\":\"x\\n\"}\n");
	line = (struct results_line){.custom_id = "b", .tenant = "t", .result = text_of("{ }")};
	assert_written(&line, "{\"custom_id\":\"b\",\"tenant\":\"t\",\"attempts\":0 }\n");
}

static void test_write_refused(void **state)
{
	static const char *const table[] = {"", "{", "[]", "null", "{]"};
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct results_line line = {.custom_id = "b", .result = text_of(table[i])};

		assert_false(results_line_write(&line, out, &err));
	}
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_int_equal(evbuffer_get_length(out), 0);
}

static void test_read(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	const struct results_line line = {.custom_id = "\xc3\xa9\\",
					  .mark = results_line_mark(DIGEST),
					  .result = text_of("{\"success\":false}")};
	auto_free char *id = NULL, *other = NULL;
	struct rlmd_error err;
	uint64_t mark = 0;

	(void)state;
	assert_true(results_line_write(&line, out, &err));
	assert_true(results_line_read(text_in(out), &id, &mark, &err));
	assert_string_equal(id, "\xc3\xa9\\");
	assert_true(mark == line.mark);
	assert_true(
		results_line_read(text_of("{\"x\":1,\"job\":\"no\",\"custom_id\":\"a\\u0062\"}"),
				  &other, &mark, &err));
	assert_string_equal(other, "ab");
	assert_true(mark == 0);
}

static void test_read_refused(void **state)
{
	static const char *const table[][2] = {
		{"", "not JSON"},
		{"{\"custom_id\":\"a\"", "not JSON"},
		{"{}", "has no custom_id"},
		{"[\"custom_id\"]", "has no custom_id"},
		{"{\"custom_id\":7}", "has no custom_id"},
		{"{\"custom_id\":\"\"}", "has no custom_id"},
		{"{\"custom_id\":\"a\\u0000\"}", "has no custom_id"},
		{"{\"custom_id\":\"a\",\"custom_id\":\"b\"}", "duplicate"},
	};
	struct rlmd_error err;
	uint64_t mark;
	char *id = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		assert_false(results_line_read(text_of(table[i][0]), &id, &mark, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, table[i][1]))
			fail_msg("%s: %s", table[i][0], err.text);
	}
	assert_null(id);
}

/* A trace of many sub-runs nests deeper than what is read in one go. */
static void test_deep(void **state)
{
	char line[1200] = "{\"custom_id\":\"a\",\"trace\":";
	size_t head = strlen(line);
	struct rlmd_error err;
	uint64_t mark;
	char *id = NULL;

	(void)state;
	memset(line + head, '[', 500);
	memset(line + head + 500, ']', 500);
	strncat(line, "}", 2);
	assert_true(results_line_read(text_of(line), &id, &mark, &err));
	assert_string_equal(id, "a");
	free(id);
	line[head + 999] = ' ';
	assert_false(results_line_read(text_of(line), &id, &mark, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
}

static void test_rest(void **state)
{
	(void)state;
	assert_true(results_line_is_rest(text_from("", 0)));
	assert_true(results_line_is_rest(text_of("{\"cust")));
	assert_true(results_line_is_rest(text_of("{\"custom_id\":\"a\",\"x")));
	assert_true(results_line_is_rest(text_from("\0\0\0", 3)));
	assert_true(results_line_is_rest(text_from("{\"custom_\0\0", 11)));
	assert_false(results_line_is_rest(text_of("notes")));
	assert_false(results_line_is_rest(text_of("{\"task")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write), cmocka_unit_test(test_write_refused),
		cmocka_unit_test(test_read),  cmocka_unit_test(test_read_refused),
		cmocka_unit_test(test_deep),  cmocka_unit_test(test_rest),
	};

	alloc_install();
	return cmocka_run_group_tests_name("results_line", tests, NULL, NULL);
}

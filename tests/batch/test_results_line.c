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
#include "base/json.h"
#include "base/text.h"
#include "store/values.h"

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
	const struct store_job job = {
		.custom_id = text_of("a\"\n"),
		.attempts = 2,
		.digest = text_of(DIGEST),
		.result = text_of(" {\"success\":true,\n \"output\":\"x\\n\"}\n")};
	struct results_line line = results_line_of(&job);

	(void)state;
	assert_written(&line,
		       "{\"custom_id\":\"a\\\"\\n\",\"tenant\":null,\"attempts\":2,"
		       "\"job\":\"5c0e000000000001\",\"success\":true, \"output\":\"x\\n\"}\n");
	line = (struct results_line){.custom_id = text_of("b"),
				     .tenant = text_of("t"),
				     .job = "00000000000000ab",
				     .result = text_of("{ }")};
	assert_written(&line, "{\"custom_id\":\"b\",\"tenant\":\"t\",\"attempts\":0,"
			      "\"job\":\"00000000000000ab\" }\n");
}

static void test_write_refused(void **state)
{
	static const char *const table[] = {
		"",
		"{",
		"[]",
		"null",
		"{]",
		"{\"a\":1}\n{\"b\":2}",
		"{\"a\":1},{\"b\":2}",
		"{\"a\":\"x\ny\"}",
		"{\"success\":true,\"custom_id\":\"another\"}",
		"{\"success\":true,\"job\":\"00000000000000ab\"}",
	};
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct results_line line = {.custom_id = text_of("b"),
						  .result = text_of(table[i])};

		assert_false(results_line_write(&line, out, &err));
	}
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_int_equal(evbuffer_get_length(out), 0);
}

static void test_read(void **state)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	const struct store_job job = {.custom_id = text_of("\xc3\xa9\\"),
				      .digest = text_of(DIGEST),
				      .result = text_of("{\"success\":false}")};
	const struct results_line line = results_line_of(&job);
	struct results_line read;
	struct rlmd_error err;

	(void)state;
	assert_true(results_line_write(&line, out, &err));
	assert_true(results_line_read(text_in(out), &read, &err));
	assert_true(text_equal(read.custom_id, "\xc3\xa9\\"));
	assert_string_equal(read.job, line.job);
	assert_false(read.tenant.size || read.success);
	results_line_done(&read);
	assert_true(results_line_read(
		text_of("{\"x\":1,\"job\":\"00000000000000ab\",\"success\":true,"
			"\"attempts\":3,\"tenant\":\"t\",\"custom_id\":\"a\\u0062\"}"),
		&read, &err));
	assert_true(text_equal(read.custom_id, "ab") && text_equal(read.tenant, "t"));
	assert_string_equal(read.job, "00000000000000ab");
	assert_true(read.attempts == 3 && read.success);
	results_line_done(&read);
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
		{"{\"custom_id\":\"a\",\"task\":\"t\"}", "has no 'tenant'"},
		{"{\"custom_id\":\"a\",\"tenant\":7}", "has no 'tenant'"},
		{"{\"custom_id\":\"a\",\"tenant\":null}", "has no 'attempts'"},
		{"{\"custom_id\":\"a\",\"tenant\":null,\"attempts\":1,\"job\":\"x\"}",
		 "has no 'job'"},
		{"{\"custom_id\":\"a\",\"tenant\":null,\"attempts\":1,\"job\":\"00000000000000ab\"}",
		 "has no 'success'"},
		{"{\"tenant\":null,\"attempts\":1,\"job\":\"00000000000000ab\",\"success\":true}",
		 "has no custom_id"},
		{"{\"custom_id\":\"a\",\"attempts\":1,\"job\":\"00000000000000ab\",\"success\":true}",
		 "has no 'tenant'"},
		{"{\"custom_id\":\"a\",\"tenant\":null,\"job\":\"00000000000000ab\",\"success\":true}",
		 "has no 'attempts'"},
		{"{\"custom_id\":\"a\",\"tenant\":null,\"attempts\":1,\"success\":true}",
		 "has no 'job'"},
	};
	struct results_line line = {0};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		assert_false(results_line_read(text_of(table[i][0]), &line, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, table[i][1]))
			fail_msg("%s: %s", table[i][0], err.text);
	}
	assert_null(line.custom_id.bytes);
}

/* A store keeps what the line says: the very bytes, where this program has written it. */
static void test_outcome(void **state)
{
	static const struct {
		const char *rest, *error;
		int64_t cost, tokens;
	} table[] = {
		{"\"success\":true,\"usage\":{\"cost\":0.10,\"tokens\":7},\"stopReason\":\"final\"",
		 "", INT64_C(100000000000), 7},
		{"\"success\":true,\"stopReason\":\"final\"", "", 0, 0},
		{"\"success\":true,\"stopReason\":\"max_cost\"", STORE_DEGRADED, 0, 0},
		{"\"success\":false,\"stopReason\":\"max_cost\"", "internal", 0, 0},
		{"\"success\":false,\"error\":{\"kind\":\"schema\"}", "schema", 0, 0},
		{"\"success\":false,\"error\":null", "internal", 0, 0},
	};
	static const char *const heads[] = {
		"{\"custom_id\":\"a\",\"tenant\":null,\"attempts\":4,\"job\":\"00000000000000ab\",",
		"{\"attempts\":4,\"custom_id\":\"a\",\"tenant\":null,\"job\":\"00000000000000ab\","};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof table / sizeof *table; i++) {
		auto_free char *text = xasprintf("%s%s}", heads[i % 2], table[i / 2].rest);
		auto_free char *wanted = xasprintf("{%s}", table[i / 2].rest), *result = NULL;
		struct store_outcome outcome = {0};
		struct results_line line;
		struct rlmd_error err;

		assert_true(results_line_read(text_of(text), &line, &err));
		assert_true(results_line_outcome(text_of(text), &line, &outcome, &result, &err));
		if (i % 2) {
			json_auto_t *one = json_read(text_of(result), 9, &err);
			json_auto_t *other = json_read(text_of(wanted), 9, &err);

			assert_true(json_equal(one, other));
		} else {
			assert_string_equal(result, wanted);
		}
		assert_int_equal(outcome.succeeded, line.success);
		assert_true(text_equal(outcome.error, table[i / 2].error));
		assert_int_equal(outcome.cost, table[i / 2].cost);
		assert_int_equal(outcome.tokens, table[i / 2].tokens);
		assert_int_equal(outcome.attempts, 4);
		results_line_done(&line);
	}
}

/* A trace of many sub-runs nests deeper than what is read in one go. */
static void test_deep(void **state)
{
	char line[1200] = "{\"custom_id\":\"a\",\"tenant\":null,\"attempts\":1,"
			  "\"job\":\"00000000000000ab\",\"success\":true,\"trace\":";
	size_t head = strlen(line);
	struct results_line read;
	struct rlmd_error err;

	(void)state;
	memset(line + head, '[', 500);
	memset(line + head + 500, ']', 500);
	strncat(line, "}", 2);
	assert_true(results_line_read(text_of(line), &read, &err));
	assert_true(text_equal(read.custom_id, "a"));
	results_line_done(&read);
	line[head + 999] = ' ';
	assert_false(results_line_read(text_of(line), &read, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
}

/* However deep it is, a result does not say whose it is. */
static void test_deep_write_refused(void **state)
{
	static const char *const names[] = {"custom_id", "tenant", "attempts", "job", "other"};
	static char deep[1001];

	(void)state;
	memset(deep, '[', 500);
	memset(deep + 500, ']', 500);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		auto_evbuffer struct evbuffer *out = evbuffer_new();
		auto_free char *result = xasprintf("{\"trace\":%s,\"%s\":null}", deep, names[i]);
		const struct results_line line = {.custom_id = text_of("b"),
						  .result = text_of(result)};
		struct rlmd_error err;

		assert_int_equal(results_line_write(&line, out, &err), !strcmp(names[i], "other"));
	}
}

static void test_rest(void **state)
{
	(void)state;
	assert_true(results_line_is_rest(text_from("", 0)));
	assert_true(results_line_is_rest(text_of("{\"cust")));
	assert_true(results_line_is_rest(text_of("{\"custom_id\":\"a\\\"b")));
	assert_true(results_line_is_rest(text_of("{\"custom_id\":\"a\\\"\",\"tenant\":nu")));
	assert_true(results_line_is_rest(
		text_of("{\"custom_id\":\"a\",\"tenant\":\"t\",\"attempts\":1,\"job")));
	assert_true(results_line_is_rest(text_from("\0\0\0", 3)));
	assert_true(results_line_is_rest(text_from("{\"custom_\0\0", 11)));
	assert_false(results_line_is_rest(text_of("notes")));
	assert_false(results_line_is_rest(text_of("{\"task")));
	assert_false(results_line_is_rest(text_of("{\"custom_id\":\"a\",\"x")));
	assert_false(results_line_is_rest(text_of("{\"custom_id\":\"a\",\"task\":\"t\"}")));
	assert_false(results_line_is_rest(
		text_of("{\"custom_id\":\"a\",\"tenant\":\"t\",\"task\":\"t\"}")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write), cmocka_unit_test(test_write_refused),
		cmocka_unit_test(test_read),  cmocka_unit_test(test_read_refused),
		cmocka_unit_test(test_deep),  cmocka_unit_test(test_deep_write_refused),
		cmocka_unit_test(test_rest),  cmocka_unit_test(test_outcome),
	};

	alloc_install();
	return cmocka_run_group_tests_name("results_line", tests, NULL, NULL);
}

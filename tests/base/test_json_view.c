/* The value of a text, wherever it has escapes. */
#include "base/json_view.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#include "base/cleanup.h"
#include "base/json_scan.h"

static struct json_view view_of(const char *json)
{
	static const struct json_scan_bounds bounds = {.depth = 4, .any_number = true};
	struct json_view view = {0};
	struct json_scan scan;

	json_scan_init(&scan, text_of(json), &bounds);
	json_scan_value(&scan, &view);
	assert_true(json_scan_end(&scan, NULL));
	return view;
}

static void assert_text(const char *json, const char *bytes, size_t size)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	struct json_view view = view_of(json);
	auto_free char *owned = NULL;
	struct rlmd_text text = json_view_text(&view, &owned);

	assert_int_equal(text.size, size);
	assert_memory_equal(text.bytes, bytes, size);
	json_view_append(&view, out);
	assert_int_equal(evbuffer_get_length(out), size);
	assert_memory_equal(text_in(out).bytes, bytes, size);
	assert_int_equal(view.escaped, owned != NULL); /* nothing is copied without need */
}

static void test_text(void **state)
{
	(void)state;
	assert_text("\"\"", "", 0);
	assert_text(" \"plain\" ", "plain", 5);
	assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
	assert_text("\"a\\u0000b\"", "a\0b", 3);
	assert_text("\"\\u007f\\u0080\\u07ff\\u0800\\uFFFF\"",
		    "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 11);
	assert_text("\"x\\ud83d\\uDE00y\\udbff\\udfff\"", "x\xf0\x9f\x98\x80y\xf4\x8f\xbf\xbf", 10);
}

/* A value that is no string has no bytes, and is no string. */
static void test_no_text(void **state)
{
	static const char *const rows[] = {"1", "null", "true", "[\"a\"]", "{\"a\":\"a\"}"};
	struct json_view none = {0};
	char *owned;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct json_view view = view_of(rows[i]);

		assert_int_equal(json_view_text(&view, &owned).size, 0);
		assert_null(owned);
		assert_false(json_view_equal(&view, rows[i]));
		assert_false(json_view_has_nul(&view));
	}
	assert_int_equal(json_view_text(&none, &owned).size, 0);
	assert_false(json_view_equal(&none, ""));
}

static void test_equal(void **state)
{
	struct json_view plain = view_of("\"type\""), escaped = view_of("\"t\\u0079pe\"");
	struct json_view nul = view_of("\"a\\u0000\""), backslash = view_of("\"\\\\u0000\"");

	(void)state;
	assert_true(json_view_equal(&plain, "type"));
	assert_false(json_view_equal(&plain, "typ"));
	assert_false(json_view_equal(&plain, "typed"));
	assert_true(json_view_equal(&escaped, "type"));
	assert_false(json_view_equal(&escaped, "typ"));
	assert_false(json_view_equal(&escaped, "typed"));
	assert_false(json_view_equal(&escaped, "t"));
	assert_false(json_view_equal(&nul, "a"));
	assert_true(json_view_has_nul(&nul));
	assert_false(json_view_has_nul(&backslash));
	assert_true(json_view_equal(&backslash, "\\u0000"));
}

static void test_integer(void **state)
{
	struct json_view most = view_of("9223372036854775807");
	struct json_view least = view_of("-9223372036854775808");
	struct json_view zero = view_of("-0"), beyond = view_of("9223372036854775808");
	struct json_view real = view_of("1.0"), string = view_of("\"1\"");

	(void)state;
	assert_true(json_view_integer(&most, 0) == INT64_MAX);
	assert_true(json_view_integer(&least, 0) == INT64_MIN);
	assert_int_equal(json_view_integer(&zero, 7), 0);
	assert_int_equal(json_view_integer(&beyond, 7), 7);
	assert_int_equal(json_view_integer(&real, 7), 7);
	assert_int_equal(json_view_integer(&string, 7), 7);
}

static void test_number(void **state)
{
	struct json_view integer = view_of("12"), real = view_of("-1.25e2");
	struct json_view huge = view_of("1e999"), low = view_of("-1e999");
	struct json_view string = view_of("\"1\"");
	double number = 7;

	(void)state;
	assert_false(json_view_number(&string, &number));
	assert_true(number == 7);
	assert_true(json_view_number(&integer, &number) && number == 12);
	assert_true(json_view_number(&real, &number) && number == -125);
	assert_true(json_view_number(&huge, &number) && number == HUGE_VAL);
	assert_true(json_view_number(&low, &number) && number == -HUGE_VAL);
}

static void test_truth(void **state)
{
	struct json_view yes = view_of("true"), no = view_of("false"), null = view_of("null");

	(void)state;
	assert_true(json_view_is_true(&yes));
	assert_false(json_view_is_true(&no));
	assert_false(json_view_is_true(&null));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),   cmocka_unit_test(test_no_text),
		cmocka_unit_test(test_equal),  cmocka_unit_test(test_integer),
		cmocka_unit_test(test_number), cmocka_unit_test(test_truth),
	};

	return cmocka_run_group_tests_name("json_view", tests, NULL, NULL);
}

/* JSON from strangers is read strictly; JSON to them is always valid. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_refused(struct rlmd_text text, unsigned depth)
{
	struct rlmd_error err = {0};

	assert_null(json_read(text, depth, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BAD_REPLY);
	assert_true(err.text[0]);
}

/* Whatever RFC 8259 does not allow, and duplicate keys, is refused. */
static void test_refused(void **state)
{
	static const char *const rows[] = {
		"",
		" ",
		"{",
		"[1,]",
		"{\"a\":1,\"a\":2}",
		"{} x",
		"nul",
		"NaN",
		"1e999",
		"012",
		"'a'",
		"\"a\nb\"",
		"\"\\ud800\"",
		"\"\xff\"",
		"\"\xed\xa0\x80\"",
		"{a:1}",
		"[1] [2]",
		"\xef\xbb\xbf{}",
		"[1}",
		"\"open",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_refused(text_of(rows[i]), 8);
	assert_refused((struct rlmd_text){0}, 8);
}

/* Depth is limited before jansson recurses; brackets in strings do not count. */
static void test_depth(void **state)
{
	static char deep[1 << 20];
	json_t *value;

	(void)state;
	value = json_read(text_of("[[[\"]]]]\\\"[[[[\"]]]"), 3, NULL);
	assert_non_null(value);
	json_decref(value);
	assert_refused(text_of("[[[{}]]]"), 3);
	value = json_read(text_of("[[],[],{},{}]"), 2, NULL);
	assert_non_null(value);
	json_decref(value);
	memset(deep, '[', sizeof deep);
	assert_refused(text_from(deep, sizeof deep), 100);
}

/* What is in strings is no value, whatever it looks like. */
static void test_shape(void **state)
{
	struct json_shape shape;

	(void)state;
	shape = json_look(text_of("{\"a,b:[\": [1, 2, \"\\\",[{\"], \"c\": {}}"));
	assert_int_equal(shape.depth, 2);
	assert_int_equal(shape.values, 8); /* three brackets, three commas, two colons */
	shape = json_look((struct rlmd_text){0});
	assert_int_equal(shape.depth, 0);
	assert_int_equal(shape.values, 0);
}

/* Strings keep NUL; accessors answer for what is missing or of another type. */
static void test_accessors(void **state)
{
	struct rlmd_text text = text_of(
		"{\"s\": \"a\\u0000b\", \"i\": 9007199254740993, \"t\": true, "
		"\"r\": 1.5, \"n\": null}");
	json_t *object = json_read(text, 4, NULL);

	(void)state;
	assert_non_null(object);
	assert_int_equal(json_get_text(object, "s").size, 3);
	assert_memory_equal(json_get_text(object, "s").bytes, "a\0b", 3);
	assert_int_equal(json_get_integer(object, "i", 0), INT64_C(9007199254740993));
	assert_int_equal(json_get_integer(object, "r", 7), 7);
	assert_int_equal(json_get_integer(object, "none", 7), 7);
	assert_int_equal(json_get_integer(NULL, "i", 7), 7);
	assert_true(json_get_bool(object, "t", false));
	assert_true(json_get_bool(object, "n", true));
	assert_int_equal(json_get_text(object, "i").size, 0);
	assert_string_equal(json_get_string(object, "s"), "a");
	assert_string_equal(json_get_string(object, "i"), "");
	assert_string_equal(json_get_string(NULL, "s"), "");
	assert_int_equal(json_text(NULL).size, 0);
	json_decref(object);
}

/* Any value that JSON can be, alone. */
static void test_any_value(void **state)
{
	static const char *const rows[] = {"1", "\"a\"", "null", " true ", "-0.5e-3"};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *value = json_read(text_of(rows[i]), 1, NULL);

		assert_non_null(value);
		json_decref(value);
	}
}

/* Bytes that are no UTF-8 become U+FFFD on their way out, NUL stays. */
static void test_from_text(void **state)
{
	json_t *value = json_from_text(text_from("a\0\xff\xc3\xa9", 5));

	(void)state;
	assert_int_equal(json_string_length(value), 7);
	assert_memory_equal(json_string_value(value), "a\0\xef\xbf\xbd\xc3\xa9", 7);
	json_decref(value);
	value = json_from_text((struct rlmd_text){0});
	assert_int_equal(json_string_length(value), 0);
	json_decref(value);
}

static void assert_buffer(struct evbuffer *buffer, const char *expected)
{
	char *string = text_drain(buffer, NULL);

	assert_string_equal(string, expected);
	free(string);
}

/* Compact, in the order of insertion or sorted; one line is one line. */
static void test_write(void **state)
{
	struct evbuffer *out = evbuffer_new();
	json_t *object = json_pack("{s:i, s:[s, n, b], s:f}", "b", 1, "a", "x\n", 1, "c", 0.5);

	(void)state;
	json_write(object, false, out);
	assert_buffer(out, "{\"b\":1,\"a\":[\"x\\n\",null,true],\"c\":0.5}");
	json_write(object, true, out);
	assert_buffer(out, "{\"a\":[\"x\\n\",null,true],\"b\":1,\"c\":0.5}");
	json_write_line(object, out);
	assert_buffer(out, "{\"b\":1,\"a\":[\"x\\n\",null,true],\"c\":0.5}\n");
	json_write(json_null(), false, out);
	assert_buffer(out, "null");
	json_decref(object);
	evbuffer_free(out);
}

/* --- as jansson writes it, to the byte ------------------------------------------------- */

static unsigned random_state;

static unsigned below(unsigned bound)
{
	random_state = random_state * 1103515245 + 12345;
	return (random_state >> 16) % bound;
}

/* Of lengths around those at which it is written in another way. */
static json_t *some_string(void)
{
	static const char *const pieces[] = {
		"plain ", "\"", "\\", "\n", "\x01", "\xc3\xa9", "\xf0\x9f\x98\x80", "\x7f", "/"};
	static const unsigned lengths[] = {1, 4, 20, 200, 1200, 70000};
	struct evbuffer *text = evbuffer_new();
	size_t length = below(lengths[below(COUNT(lengths))]);
	json_t *string;

	while (evbuffer_get_length(text) < length) {
		const char *piece = pieces[below(2) ? 0 : below(COUNT(pieces))];

		evbuffer_add(text, piece, strlen(piece));
	}
	evbuffer_add(text, "", below(4) == 0);
	string = json_from_text(text_in(text));
	evbuffer_free(text);
	return string;
}

static json_t *some_value(unsigned depth)
{
	char key[16];
	json_t *value;

	switch (below(depth ? 8 : 6)) {
	case 0:
		return json_integer((json_int_t)below(3) * INT64_C(-3074457345618258602));
	case 1:
		return json_real(below(1000) / 7.0 * (below(2) ? 1e-9 : 1e20));
	case 2:
		return json_boolean(below(2));
	case 3:
		return json_null();
	case 6:
		value = json_array();
		for (unsigned i = below(6); i; i--)
			json_array_append_new(value, some_value(depth - 1));
		return value;
	case 7:
		value = json_object();
		for (unsigned i = below(6); i; i--) {
			snprintf(key, sizeof key, "%s%u", below(2) ? "k\"\n" : "", below(1000));
			json_object_set_new(value, key, some_value(depth - 1));
		}
		return value;
	default:
		return some_string();
	}
}

static void test_as_jansson_does(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 500; seed++) {
		for (int sorted = 0; sorted < 2; sorted++) {
			struct evbuffer *out = evbuffer_new();
			json_t *value;
			char *expected;

			random_state = seed;
			value = some_value(4);
			expected = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY |
							     JSON_REAL_PRECISION(JSON_DIGITS) |
							     (sorted ? JSON_SORT_KEYS : 0));
			json_write(value, sorted, out);
			assert_buffer(out, expected);
			free(expected);
			json_decref(value);
			evbuffer_free(out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_depth),
		cmocka_unit_test(test_shape),     cmocka_unit_test(test_accessors),
		cmocka_unit_test(test_any_value), cmocka_unit_test(test_from_text),
		cmocka_unit_test(test_write),     cmocka_unit_test(test_as_jansson_does),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}

/* JSON from strangers is read strictly; JSON to them is always valid. */
#include "base/json.h"

#include <event2/buffer.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json_view.h"
#include "child.h"

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

/* Text in strings is no value, whatever it looks like. */
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

static bool exhausted;
static json_t *object, *array;

static void *limited_malloc(size_t size)
{
	return exhausted ? NULL : malloc(size);
}

static void starve_object(void)
{
	json_make_object();
}

static void starve_array(void)
{
	json_make_array();
}

static void make_integer(void)
{
	json_make_integer(1);
}

static void make_real(void)
{
	json_make_real(0.5);
}

static void make_string(void)
{
	json_make_string("one");
}

static void make_copy(void)
{
	json_make_copy(object);
}

static void from_text(void)
{
	json_from_text(rlmd_text_of("one"));
}

static void make_nothing(void)
{
	json_make("{}");
}

static void make_member(void)
{
	json_make("{s:i, s:[f, s?]}", "one", 1, "two", 0.5, NULL);
}

static void starve_put(void)
{
	json_put(object, "new", json_true());
}

static void put_at(void)
{
	json_put_at(object, rlmd_text_of("new"), json_true());
}

static void starve_append(void)
{
	for (int i = 0; i < 100; i++)
		json_append(array, json_true());
}

static void starve_insert(void)
{
	for (int i = 0; i < 100; i++)
		json_insert(array, 0, json_true());
}

static void starve_update(void)
{
	exhausted = false;
	json_t *more = json_pack("{s:b}", "more", 1);

	exhausted = true;
	json_update(object, more);
}

static void update_missing(void)
{
	exhausted = false;
	json_t *more = json_pack("{s:b}", "more", 1);

	exhausted = true;
	json_update_missing(object, more);
}

static void starve_extend(void)
{
	for (int i = 0; i < 100; i++)
		json_extend(array, array);
}

static void view_number(void)
{
	struct json_view view = {.kind = JSON_VIEW_REAL, .text = rlmd_text_of("0.5")};
	double number;

	json_view_number(&view, &number);
}

/* In a child; the signal that ended it. */
static int starve(void (*step)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		close(STDERR_FILENO);
		object = json_pack("{s:i}", "one", 1);
		array = json_pack("[i]", 1);
		exhausted = true;
		step();
		child_exit(0);
	}
	assert_int_equal(child, waitpid(child, &status, 0));
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_no_memory(void **state)
{
	static const struct {
		const char *name;
		void (*step)(void);
	} steps[] = {
		{"object", starve_object},
		{"array", starve_array},
		{"integer", make_integer},
		{"real", make_real},
		{"string", make_string},
		{"copy", make_copy},
		{"from_text", from_text},
		{"make {}", make_nothing},
		{"make", make_member},
		{"starve_put", starve_put},
		{"put_at", put_at},
		{"starve_append", starve_append},
		{"starve_insert", starve_insert},
		{"starve_update", starve_update},
		{"update_missing", update_missing},
		{"starve_extend", starve_extend},
		{"view_number", view_number},
	};

	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		int signal = starve(steps[i].step);

		if (signal != SIGABRT)
			fail_msg("%s: signal %d", steps[i].name, signal);
	}
}

static void assert_json(const char *expected, json_t *value)
{
	char *text = json_to_string(value);

	assert_string_equal(expected, text);
	free(text);
	json_decref(value);
}

static void test_with_memory(void **state)
{
	json_t *value = json_make_object(), *list = json_make_array(), *more;

	(void)state;
	json_put(value, "b", json_make_integer(1));
	json_put_at(value, text_from("another", 1), json_make_real(0.5));
	json_append(list, json_make_string("x"));
	json_insert(list, 0, json_make_copy(value));
	json_extend(list, list);
	json_put(value, "l", list);
	more = json_make("{s:b, s:n}", "b", 1, "n");
	json_update_missing(value, more);
	assert_json(
		"{\"b\":1,\"a\":0.5,\"l\":[{\"b\":1,\"a\":0.5},\"x\",{\"b\":1,\"a\":0.5},\"x\"],"
		"\"n\":null}",
		json_incref(value));
	json_update(value, more);
	assert_true(json_is_true(json_object_get(value, "b")));
	json_decref(value);
	json_decref(more);
	assert_json("[1,2,0.5,true,null,\"s\",null,{\"k\":7}]",
		    json_make("[i, I, f, b, n, s, s?, o*, {s:O*, s:o}]", 1, (json_int_t)2, 0.5, 1,
			      "s", NULL, NULL, "left out", NULL, "k", json_make_integer(7)));
}

static void test_what_is_no_value(void **state)
{
	json_t *value = json_make_object(), *list = json_make_array();

	(void)state;
	assert_null(json_make_string(NULL));
	assert_null(json_make_copy(NULL));
	assert_null(json_make_real(NAN));
	assert_null(json_make_real(HUGE_VAL));
	assert_null(json_make("{s:s}", "a", NULL));
	assert_null(json_make("{s:o, s:i}", "a", NULL, "b", 1));
	assert_null(json_make("{s:f}", "a", HUGE_VAL));
	assert_null(json_make("{s:s}", "a", "\xff"));
	assert_json("\"\xef\xbf\xbd\"", json_make_string("\xff"));
	json_put(value, "a", NULL);
	json_put(value, NULL, json_make_integer(1));
	json_put(list, "a", json_make_integer(1));
	json_append(list, NULL);
	json_append(value, json_make_integer(1));
	json_insert(list, 1, json_make_integer(1));
	json_update(value, NULL);
	json_update_missing(value, list);
	json_extend(list, value);
	assert_json("{}", value);
	assert_json("[]", list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_accessors),
		cmocka_unit_test(test_any_value),
		cmocka_unit_test(test_from_text),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_as_jansson_does),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_with_memory),
		cmocka_unit_test(test_what_is_no_value),
	};

	json_set_alloc_funcs(limited_malloc, free);
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}

/* Reading without a tree takes what reading with one takes, and makes the same of it. */
#include "base/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "effort.h"
#include "fuzz/fuzz_json.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct json_scan_bounds bounds = {.depth = SCAN_DEPTH};

static void test_taken(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		" { \"a\" : [ 1 , 2.5 , -0 , -0.5e-3 , 1E+2 ] , \"b\" : { } }\r\n\t",
		"\"a\\u00e9\\ud83d\\ude00\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
		"[true,false,null,\"\",\"\\\\\",\"\\\"\"]",
		"[9223372036854775807,-9223372036854775808,0,-1]",
		"[1e308,1e-999,0.1,123456789012345678901234567890.5]",
		"{\"\":1,\"a\":2,\"A\":3,\"aa\":4}",
		"{\"a\":{\"a\":{\"a\":1},\"b\":1},\"b\":1}",
		"[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!read_by_both(text_of(rows[i])))
			fail_msg("refused: %s", rows[i]);
}

static void test_refused(void **state)
{
	static const char *const rows[] = {
		"",
		" ",
		"{",
		"[",
		"}",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"[1 2]",
		"[1}",
		"{]",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":1",
		"{\"a\":1,",
		"{\"a\":1,}",
		"{\"a\" 1}",
		"{a:1}",
		"{1:1}",
		"{\"a\":1 \"b\":2}",
		"{,}",
		"{\"a\"}",
		"{} x",
		"[1] [2]",
		"1 2",
		"nul",
		"nulL",
		"True",
		"tru",
		"NaN",
		"Infinity",
		"-Infinity",
		"-",
		"+1",
		"01",
		"-01",
		"1.",
		".5",
		"1.e1",
		"1e",
		"1e+",
		"0x10",
		"1_000",
		"1e999",
		"-1e999",
		"9223372036854775808",
		"-9223372036854775809",
		"10000000000000000000",
		"'a'",
		"\"open",
		"\"\\",
		"\"\\\"",
		"\"a\nb\"",
		"\"\x1f\"",
		"\"\\x41\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\\ud800\\u0041\"",
		"\"\\ud800\\ud800\"",
		"\"\\ud800x\\udc00\"",
		"\"\\ud83d\\ude0\"",
		"\"\xff\"",
		"\"\x80\"",
		"\"\xc3\"",
		"\"\xc0\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xe2\x82\"",
		"\xef\xbb\xbf{}",
		"\xc3\xa9",
		"{\"a\":1,\"a\":2}",
		"{\"a\":1,\"\\u0061\":2}",
		"{\"\\n\":1,\"\\u000a\":2}",
		"[{\"b\":{\"a\":1,\"b\":2,\"a\":3}}]",
		"{\"a\\u0000\":1}",
		"{\"\\u0000\":1}",
		"[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
		"// a\n1",
		"[1]\f",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (read_by_both(text_of(rows[i])))
			fail_msg("taken: %s", rows[i]);
	assert_false(read_by_both((struct rlmd_text){0}));
	assert_false(read_by_both(text_from("[1]\0", 4)));
	assert_false(read_by_both(text_from("\"a\0b\"", 5)));
	assert_false(read_by_both(text_from("\0", 1)));
}

/* Every place in a block, and every byte there, also beside the text's end. */
static void test_blocks(void **state)
{
	char text[40];

	(void)state;
	for (size_t size = 2; size < sizeof text; size += effort(1, 7))
		for (size_t place = 1; place < size - 1; place++)
			for (unsigned byte = 0; byte < 256; byte += (unsigned)effort(1, 5)) {
				memset(text, 'x', size);
				text[0] = text[size - 1] = '"';
				text[place] = (char)byte;
				read_by_both(text_from(text, size));
			}
}

/* Of two keys that are one each object is refused, however many it has and how they are written. */
static void test_many_keys(void **state)
{
	(void)state;
	for (size_t count = 1; count < 200; count += effort(3, 40))
		for (size_t twice = 0; twice <= count; twice += 1 + count / 4) {
			auto_evbuffer struct evbuffer *out = evbuffer_new();

			evbuffer_add(out, "[{", 2);
			for (size_t i = 0; i < count; i++)
				evbuffer_add_printf(out, "\"key%zu\":[{\"a\":1}],", i);
			evbuffer_add_printf(out, "\"%sey%zu\":0}]", twice % 2 ? "\\u006b" : "k",
					    twice);
			assert_int_equal(read_by_both(text_in(out)), twice == count);
		}
}

static uint32_t chance(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)*seed * below) >> 32);
}

/* Good texts with a few bytes of them changed: both readers find the same in all of them. */
static void test_changed(void **state)
{
	static const char *const texts[] = {
		"{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\\n\",null,true,false],\"b\":{\"c\":\"\"}}",
		"{\"content\":\"several words of a line, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"n\":18}",
		"[9223372036854775807,1e308,\"\\\\\\\"\\/\",[[[[[[[[[[[[[[]]]]]]]]]]]]]],{\"k\":0}]",
	};
	static const char bytes[] =
		"\"\\{}[]:,0123456789eE+-.ntu \t\n\r\x01\x7f\x80\xbf\xc3\xe0\xed\xf4";
	uint32_t seed = 1;
	size_t taken = 0, count = effort(40000, 400);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		auto_free char *text = xstrdup(texts[i % COUNT(texts)]);
		uint32_t size = (uint32_t)strlen(text);

		for (uint32_t changes = 1 + chance(&seed, 2); changes; changes--)
			text[chance(&seed, size)] = bytes[chance(&seed, sizeof bytes)];
		taken += read_by_both(text_from(text, size));
	}
	assert_in_range(taken, count / 20, count / 2);
}

/* A value that is not taken is skipped, and checked all the same. */
static void test_members(void **state)
{
	struct rlmd_text text = text_of(
		"{\"skip\":{\"a\":[1,{}],\"id\":8},\"id\":7,\"list\":[1,[2],3],\"more\":[]}");
	struct json_view key, value;
	struct json_scan scan;
	int64_t sum = 0;
	int members = 0;

	(void)state;
	json_scan_init(&scan, text, &bounds);
	assert_false(json_scan_enter(&scan, JSON_VIEW_ARRAY));
	assert_true(json_scan_enter(&scan, JSON_VIEW_OBJECT));
	while (json_scan_member(&scan, &key)) {
		members++;
		if (json_view_equal(&key, "id"))
			assert_true(json_scan_value(&scan, &value));
		if (!json_view_equal(&key, "list"))
			continue;
		assert_int_equal(json_scan_kind(&scan), JSON_VIEW_ARRAY);
		assert_true(json_scan_enter(&scan, JSON_VIEW_ARRAY));
		while (json_scan_element(&scan)) {
			struct json_view element;

			assert_true(json_scan_value(&scan, &element));
			assert_false(json_scan_value(&scan, &element)); /* it is taken */
			sum += json_view_integer(&element, 100);
		}
	}
	assert_true(json_scan_end(&scan, NULL));
	assert_int_equal(members, 4);
	assert_int_equal(json_view_integer(&value, 0), 7);
	assert_int_equal(sum, 104);
}

/* After an error every loop ends, and the place of the first one is told. */
static void test_error(void **state)
{
	struct rlmd_error err = {0};
	struct json_view view;
	struct json_scan scan;

	(void)state;
	json_scan_init(&scan, text_of("[1, 2, tru]"), &bounds);
	assert_true(json_scan_enter(&scan, JSON_VIEW_ARRAY));
	while (json_scan_element(&scan))
		;
	assert_false(json_scan_element(&scan));
	assert_false(json_scan_value(&scan, &view));
	assert_int_equal(json_scan_kind(&scan), JSON_VIEW_NONE);
	assert_false(json_scan_enter(&scan, JSON_VIEW_OBJECT));
	assert_false(json_scan_end(&scan, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BAD_REPLY);
	assert_string_equal(err.text, "not JSON: invalid token (byte 7)");
}

/* Takes that many values out of the levels that it goes into, and leaves the rest. */
static bool leave_early(struct rlmd_text text, int values)
{
	struct json_scan scan;
	struct json_view view;

	json_scan_init(&scan, text, &bounds);
	if (json_scan_enter(&scan, JSON_VIEW_OBJECT))
		while (values-- > 0 && json_scan_member(&scan, &view))
			if (json_scan_enter(&scan, JSON_VIEW_ARRAY))
				while (values-- > 0 && json_scan_element(&scan))
					json_scan_value(&scan, &view);
	return json_scan_end(&scan, NULL);
}

/* A text that nobody went through has to be JSON all the same, wherever it ends. */
static void test_left(void **state)
{
	struct rlmd_text text = text_of("{\"a\": [1, [2], {\"b\": 3}, 44], \"c\": {}}");

	(void)state;
	for (int values = 0; values < 8; values++) {
		assert_true(leave_early(text, values));
		for (size_t size = 0; size < text.size; size++)
			assert_false(leave_early(text_slice(text, 0, size), values));
	}
	assert_false(leave_early(text_of("{\"a\": [1], \"a\": 2}"), 1));
}

static bool is_within(const char *text, const struct json_scan_bounds *limits)
{
	struct json_scan scan;

	json_scan_init(&scan, text_of(text), limits);
	return json_scan_end(&scan, NULL);
}

/* Values are counted as json_look() counts them. */
static void test_bounds(void **state)
{
	const char *text = "{\"a,b:[\": [1, 2, \"\\\",[{\"], \"c\": {}}";
	struct json_shape shape = json_look(text_of(text));

	(void)state;
	assert_true(is_within(text, &(struct json_scan_bounds){2, shape.values, false}));
	assert_false(is_within(text, &(struct json_scan_bounds){2, shape.values - 1, false}));
	assert_false(is_within(text, &(struct json_scan_bounds){1, shape.values, false}));
	assert_true(is_within("1", &(struct json_scan_bounds){0, 0, false}));
	assert_false(is_within("[1e999]", &(struct json_scan_bounds){1, 0, false}));
	assert_true(
		is_within("[1e999, 9223372036854775808]", &(struct json_scan_bounds){1, 0, true}));
}

/* A scan of any depth and any number of levels open takes no stack. */
static void test_deep(void **state)
{
	static char deep[1 << 20];
	struct json_scan scan;

	(void)state;
	memset(deep, '[', sizeof deep);
	json_scan_init(&scan, text_from(deep, sizeof deep),
		       &(struct json_scan_bounds){.depth = JSON_SCAN_DEPTH});
	assert_false(json_scan_end(&scan, NULL));
}

enum { ID, WORDS, REASON, CHOICES, VIEWS };

static void test_fields(void **state)
{
	static const struct json_scan_field delta[] = {{"words", WORDS, NULL, NULL}, {0}};
	static const struct json_scan_field choice[] = {
		{"delta", VIEWS, delta, NULL}, {"reason", REASON, NULL, NULL}, {0}};
	static const struct json_scan_field top[] = {
		{"id", ID, NULL, NULL}, {"choices", CHOICES, NULL, choice}, {0}};
	struct json_view views[VIEWS + 1];
	struct rlmd_error err = {0};

	(void)state;
	assert_true(json_scan_fields(
		text_of("{\"x\":{\"id\":1},\"choices\":[{\"delta\":{\"x\":[],\"words\":\"hi\"},"
			"\"reason\":\"stop\"},{\"delta\":{\"words\":\"no\"}}],\"\\u0069d\":3}"),
		&bounds, top, views, VIEWS + 1, &err));
	assert_int_equal(json_view_integer(&views[ID], 0), 3);
	assert_true(json_view_equal(&views[WORDS], "hi"));
	assert_true(json_view_equal(&views[REASON], "stop"));
	assert_int_equal(views[VIEWS].kind, JSON_VIEW_OBJECT);
	assert_true(text_equal(views[VIEWS].text, "{\"x\":[],\"words\":\"hi\"}"));
	assert_int_equal(views[CHOICES].kind, JSON_VIEW_ARRAY);

	/* Of another shape than the table's: noted as what it is, and not gone into. */
	assert_true(json_scan_fields(text_of("{\"choices\":{\"delta\":{\"words\":\"hi\"}}}"),
				     &bounds, top, views, VIEWS + 1, &err));
	assert_int_equal(views[CHOICES].kind, JSON_VIEW_OBJECT);
	assert_int_equal(views[WORDS].kind, JSON_VIEW_NONE);
	assert_true(json_scan_fields(text_of("{\"choices\":[[1],{\"delta\":{\"words\":\"hi\"}}]}"),
				     &bounds, top, views, VIEWS + 1, &err));
	assert_int_equal(views[WORDS].kind, JSON_VIEW_NONE);
	assert_true(json_scan_fields(text_of("[1]"), &bounds, top, views, VIEWS + 1, &err));
	assert_int_equal(views[ID].kind, JSON_VIEW_NONE);
	assert_false(json_scan_fields(text_of("{\"id\":3,\"choices\":[{\"delta\":{}]}"), &bounds,
				      top, views, VIEWS + 1, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BAD_REPLY);
}

enum { LONGEST = 3000, PARTS = 12 };

/* An array of strings, long ones and short ones, of all that may stand in one. */
static char *strings(size_t *ret_size)
{
	static const char *const parts[PARTS] = {
		"word ",    "\\n",          "\\\"", "\\\\", "\\u00e9", "\\ud83d\\ude00",
		"\xc3\xa9", "\xe2\x82\xac", "[",    "{",    ",:",      "\xf0\x9f\x98\x80"};
	char *text = xcalloc(16 * (LONGEST + 32), 1);
	size_t size = 0;

	text[size++] = '[';
	for (int i = 0; i < 8; i++) {
		size_t end = size + (size_t)rand() % (i % 2 ? LONGEST : 40);

		size += (size_t)sprintf(text + size, "%s\"", i ? "," : "");
		while (size < end)
			size += (size_t)sprintf(text + size, "%s", parts[rand() % PARTS]);
		text[size++] = '"';
	}
	text[size++] = ']';
	*ret_size = size;
	return text;
}

static void test_ahead_is_the_same(void **state)
{
	(void)state;
	srand(5);
	for (int i = 0; i < 40; i++) {
		size_t size, wrong;
		char *text = strings(&size);

		assert_true(read_by_both(text_from(text, size)));
		wrong = (size_t)rand() % size;
		text[wrong] = '\x01';
		assert_false(read_by_both(text_from(text, size)));
		free(text);
	}
}

static bool reads(struct rlmd_text text, const struct json_ahead *ahead, struct json_view *ret)
{
	const struct json_scan_bounds with_ahead = {.depth = 4, .ahead = ahead};
	struct json_scan scan;

	json_scan_init(&scan, text, &with_ahead);
	json_scan_value(&scan, ret);
	return json_scan_end(&scan, NULL);
}

/* A reader does not look at what was gone over: shown by what could not stand there. */
static void test_once(void **state)
{
	enum { SIZE = 100000, PIECE = 1000 };
	struct json_ahead ahead = {0};
	char *text = xcalloc(SIZE, 1), *moved;
	struct json_view view;

	(void)state;
	memset(text, 'a', SIZE);
	text[0] = '"';
	memcpy(text + 500, "\\n", 2);
	for (size_t come = PIECE; come <= SIZE - PIECE; come += PIECE) {
		json_ahead_feed(&ahead, text_from(text, come));
		memset(text + come - PIECE / 2, '\x01', PIECE / 4);
	}
	text[SIZE - 1] = '"';
	assert_false(reads(text_from(text, SIZE), NULL, &view));
	assert_true(reads(text_from(text, SIZE), &ahead, &view));
	assert_true(view.escaped);
	assert_ptr_equal(view.text.bytes, text + 1);
	assert_int_equal(view.text.size, SIZE - 2);

	moved = xcalloc(SIZE, 1); /* as it is where it grows */
	memcpy(moved, text, SIZE);
	free(text);
	json_ahead_feed(&ahead, text_from(moved, SIZE));
	assert_true(reads(text_from(moved, SIZE), &ahead, &view));
	assert_ptr_equal(view.text.bytes, moved + 1);
	json_ahead_done(&ahead);
	assert_false(reads(text_from(moved, SIZE), &ahead, &view));
	free(moved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_blocks),  cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_changed), cmocka_unit_test(test_members),
		cmocka_unit_test(test_error),   cmocka_unit_test(test_left),
		cmocka_unit_test(test_bounds),  cmocka_unit_test(test_deep),
		cmocka_unit_test(test_fields),  cmocka_unit_test(test_ahead_is_the_same),
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests_name("json_scan", tests, NULL, NULL);
}

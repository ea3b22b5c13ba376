/* Long strings are gone over once, while they come, and what is read of them is the same. */
#include "base/json_ahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fuzz/fuzz_json.h"

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

static void test_same(void **state)
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
	const struct json_scan_bounds bounds = {.depth = 4, .ahead = ahead};
	struct json_scan scan;

	json_scan_init(&scan, text, &bounds);
	json_scan_value(&scan, ret);
	return json_scan_end(&scan, NULL);
}

/* Who reads the text does not look at what was gone over: shown by what could not stand there. */
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
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

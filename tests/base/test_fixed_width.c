/* The characters of a text, as Python has them, whatever its bytes and however it is cut. */
#include "base/fixed_width.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/text.h"

/* All characters, taken `step` at a time; new. Skipping them goes as far as taking them does. */
static uint32_t *characters_of(struct rlmd_text text, enum text_form form, size_t step,
			       size_t *ret_count)
{
	const uint8_t *begin = (const uint8_t *)text.bytes, *end = begin + text.size;
	const uint8_t *at = begin, *skipped = begin;
	uint32_t *raw = xcalloc(step + 1, sizeof *raw);
	uint32_t *points = xcalloc(text.size + 1, sizeof *points);
	size_t width = text_form_width(form), count = 0, taken, i;

	do {
		taken = fixed_width_take(form, &at, end, raw, step);
		assert_in_range(taken, 0, step);
		assert_int_equal(fixed_width_skip(&skipped, end, step), taken);
		assert_ptr_equal(at, skipped);
		for (i = 0; i < taken; i++) /* a machine of little endian */
			memcpy(&points[count + i], (char *)raw + i * width, width);
		assert_int_equal(*((char *)raw + taken * width), 0); /* nothing is behind them */
		memset(raw, 0, step * sizeof *raw);
		count += taken;
	} while (taken == step);
	assert_ptr_equal(at, end);
	free(raw);
	*ret_count = count;
	return points;
}

static void expect(const char *bytes, size_t size, const uint32_t *wanted, size_t count)
{
	struct text_scan scan = {0};
	size_t step, found, i;

	text_scan_feed(&scan, text_from(bytes, size));
	text_scan_end(&scan);
	assert_int_equal(scan.characters, count);
	for (step = 1; step <= size; step++) {
		uint32_t *points = characters_of(text_from(bytes, size), TEXT_UCS4, step, &found);

		assert_int_equal(found, count);
		for (i = 0; i < count; i++)
			assert_int_equal(points[i], wanted[i]);
		free(points);
	}
}

#define EXPECT(bytes, ...)                                                                         \
	expect(bytes, sizeof(bytes) - 1, (const uint32_t[]){__VA_ARGS__},                          \
	       sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* One of each length, first and last; taken one by one, and together. */
static void test_characters(void **state)
{
	(void)state;
	EXPECT("abcdefghi", 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i');
	EXPECT("\0\x7f", 0, 0x7f);
	EXPECT("\xc2\x80\xdf\xbf", 0x80, 0x7ff);
	EXPECT("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 0x800, 0xd7ff, 0xe000, 0xffff);
	EXPECT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 0x10000, 0x10ffff);
	EXPECT("12345678\xe2\x82\xac"
	       "12345678",
	       '1', '2', '3', '4', '5', '6', '7', '8', 0x20ac, '1', '2', '3', '4', '5', '6', '7',
	       '8');
}

/* Each byte of what is no UTF-8 by itself: overlong, a surrogate, too high, cut, out of place. */
static void test_not_utf8(void **state)
{
	(void)state;
	EXPECT("a\x80z", 'a', 0xdc80, 'z');
	EXPECT("\xc0\xaf\xc1\xbf", 0xdcc0, 0xdcaf, 0xdcc1, 0xdcbf);
	EXPECT("\xe0\x9f\xbf", 0xdce0, 0xdc9f, 0xdcbf);
	EXPECT("\xed\xa0\x80", 0xdced, 0xdca0, 0xdc80);
	EXPECT("\xf0\x8f\xbf\xbf", 0xdcf0, 0xdc8f, 0xdcbf, 0xdcbf);
	EXPECT("\xf4\x90\x80\x80", 0xdcf4, 0xdc90, 0xdc80, 0xdc80);
	EXPECT("\xf5\xff", 0xdcf5, 0xdcff);
	EXPECT("\xe2\x82z", 0xdce2, 0xdc82, 'z');
	EXPECT("\xe2\x82\xe2\x82\xac", 0xdce2, 0xdc82, 0x20ac);
	EXPECT("\xc3", 0xdcc3);
	EXPECT("z\xf0\x9f\x99", 'z', 0xdcf0, 0xdc9f, 0xdc99);
}

/* Long ones, in each width, beside the same text in the widest. */
static void test_large(void **state)
{
	static const struct {
		const char *piece;
		enum text_form form;
	} rows[] = {{"0123456789abcde\xc3\xbf", TEXT_LATIN1},
		    {"x\xe2\x82\xac", TEXT_UCS2},
		    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		     "0123456789abcdef0123456789abcdef0123456789abcdef\xe2\x82\xac",
		     TEXT_UCS2}};
	size_t row, i;

	(void)state;
	for (row = 0; row < sizeof rows / sizeof rows[0]; row++) {
		size_t length = strlen(rows[row].piece), size = 10000 * length, found, same;
		char *bytes = xcalloc(size, 1);
		uint32_t *narrow, *wide;

		for (i = 0; i < size; i++)
			bytes[i] = rows[row].piece[i % length];
		narrow = characters_of(text_from(bytes, size), rows[row].form, 777, &found);
		wide = characters_of(text_from(bytes, size), TEXT_UCS4, size, &same);
		assert_int_equal(found, same);
		assert_memory_equal(narrow, wide, found * sizeof *wide);
		free(narrow);
		free(wide);
		free(bytes);
	}
}

static void test_forms(void **state)
{
	(void)state;
	assert_int_equal(text_form_of(0), TEXT_ASCII);
	assert_int_equal(text_form_of(0x7f), TEXT_ASCII);
	assert_int_equal(text_form_of(0x80), TEXT_LATIN1);
	assert_int_equal(text_form_of(0xff), TEXT_LATIN1);
	assert_int_equal(text_form_of(0x100), TEXT_UCS2);
	assert_int_equal(text_form_of(0xffff), TEXT_UCS2);
	assert_int_equal(text_form_of(0x10000), TEXT_UCS4);
	assert_string_equal(text_form_name(TEXT_UTF8), "utf-8");
	assert_string_equal(text_form_name(TEXT_UCS4), "ucs-4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_not_utf8),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_forms),
	};

	return cmocka_run_group_tests_name("fixed_width", tests, NULL, NULL);
}

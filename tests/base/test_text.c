/* Bytes with a length, UTF-8, and what they hold. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_text(struct rlmd_text text, const char *expected)
{
	if (!text_equal(text, expected))
		fail_msg("[%.*s] is not [%s]", (int)text.size, text.bytes ? text.bytes : "",
			 expected);
}

/* The empty text is the same whether it has bytes or not. */
static void test_empty(void **state)
{
	struct rlmd_text none = {0};

	(void)state;
	assert_int_equal(text_of(NULL).size, 0);
	assert_true(text_equal(none, ""));
	assert_false(text_equal(none, "a"));
	assert_true(text_starts(none, ""));
	assert_false(text_starts(none, "a"));
	assert_null(text_find(none, "a"));
	assert_int_equal(text_trim(none).size, 0);
	assert_int_equal(text_clip(none, 5).size, 0);
	assert_int_equal(text_tokens(none), 0);
	assert_true(text_is_utf8(none));
}

static void test_compare_and_find(void **state)
{
	struct rlmd_text text = text_from("ab\0cd", 5);

	(void)state;
	assert_false(text_equal(text, "ab"));
	assert_true(text_starts(text, "ab"));
	assert_false(text_starts(text_of("a"), "ab"));
	assert_ptr_equal(text_find(text, "cd"), text.bytes + 3);
	assert_null(text_find(text_from("abc", 2), "c"));
}

static void test_trim(void **state)
{
	(void)state;
	assert_text(text_trim(text_of(" \t\r\n\v\f a b \n")), "a b");
	assert_text(text_trim(text_of(" \n ")), "");
	assert_int_equal(text_trim(text_from("\0 ", 2)).size, 1);
}

static void test_last_line(void **state)
{
	struct rlmd_text none = {0};

	(void)state;
	assert_text(text_last_line(text_of("a\nb\n c \n\n")), " c");
	assert_text(text_last_line(text_of("one")), "one");
	assert_text(text_last_line(text_of("\n\n")), "");
	assert_int_equal(text_last_line(none).size, 0); /* nothing is added to no address */
	assert_text(text_error_line(text_of("Traceback\nMemoryError\nHint: del it.\n")),
		    "MemoryError");
	assert_text(text_error_line(text_of("Traceback\nKeyError: 'Hint: '\n")),
		    "KeyError: 'Hint: '");
	assert_text(text_error_line(text_of("Hint: alone")), "");
	assert_int_equal(text_error_line(none).size, 0);
}

/* A clip never cuts a character, and never loses more than the one it would have cut. */
static void test_clip(void **state)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 2 3 4 1 */
	static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++)
		assert_int_equal(text_clip(text_of(text), i).size, expected[i]);
	/* A text without characters can be cut anywhere. */
	assert_int_equal(text_clip(text_of("a\x80\x80\x80\x80"), 2).size, 2);
	assert_int_equal(text_clip(text_of("\x80\x80\x80\x80\x80\x80"), 5).size, 5);
	assert_int_equal(text_clip(text_of("\xc3\xa9\x80\x80"), 3).size, 3);
}

/* Nothing that could steer a terminal passes. */
static void test_escape(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain \xc3\xa9", "plain \xc3\xa9"},
		{"a\nb\tc\rd", "a\\nb\\tc\\rd"},
		{"\x1b[31m\x7f\x07", "\\x1b[31m\\u007f\\x07"},
		{"\xc2\x9b", "\\u009b"},
		{"\xe2\x80\xae\xe2\x81\xa6", "\\u202e\\u2066"},
		{"\xff\xc3", "\\xff\\xc3"},
		{"a\xd8\x9c\xc2\xad\xef\xbb\xbf", "a\\u061c\\u00ad\\ufeff"},
		{"a\xe2\x80\x8b\xe2\x80\x8d\xef\xb8\x8f", "a\\u200b\\u200d\\ufe0f"},
		{"\xf3\xa0\x81\x81", "\\udb40\\udc41"},         /* a tag: U+E0041 */
		{"\xf3\xa0\x84\x80", "\\udb40\\udd00"},         /* a variation selector */
		{"\xe3\x85\xa4\xe2\x81\xa2", "\\u3164\\u2062"}, /* a filler, invisible times */
		{"\xef\xbf\xb9x\xef\xbf\xbb", "\\ufff9x\\ufffb"},
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
		{"\xc0\xaf", "\\xc0\\xaf"},          /* an overlong slash */
	};
	char out[64], small[6];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		text_escape(text_of(rows[i].in), out, sizeof out);
		assert_string_equal(out, rows[i].out);
	}
	text_escape(text_of("abc\x1b"), small, sizeof small);
	assert_string_equal(small, "abc");
	text_escape(text_of("abcdefgh"), small, sizeof small);
	assert_string_equal(small, "abcde");
}

/* Persian, a family, a heart: what is needed to write them passes, one behind a character. */
static void test_escape_joined(void **state)
{
	static const char *const honest[] = {
		"\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xb1\xd9\x88\xd9\x85",
		"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
		"\xe2\x9d\xa4\xef\xb8\x8f",
		"\xd8\x80", /* a mark of numbers that is drawn */
		"\xe4\xbd\xa0\xe5\xa5\xbd \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < COUNT(honest); i++) {
		text_escape(text_of(honest[i]), out, sizeof out);
		assert_string_equal(out, honest[i]);
	}
	text_escape(text_of("\xe2\x9d\xa4\xef\xb8\x8f\xef\xb8\x8e"), out, sizeof out);
	assert_string_equal(out, "\xe2\x9d\xa4\xef\xb8\x8f\\ufe0e");
}

static void assert_buffer(struct evbuffer *buffer, const char *expected)
{
	size_t size;
	char *string = text_drain(buffer, &size);

	assert_int_equal(size, strlen(expected));
	assert_string_equal(string, expected);
	assert_int_equal(evbuffer_get_length(buffer), 0);
	free(string);
}

static void test_escape_lines(void **state)
{
	struct evbuffer *out = evbuffer_new();

	(void)state;
	text_escape_lines(text_of("a\n\tb\x1b[2J\r\n\xc3\xa9\xff"), out);
	assert_buffer(out, "a\n\tb\\x1b[2J\\r\n\xc3\xa9\\xff");
	text_escape_lines((struct rlmd_text){0}, out);
	assert_buffer(out, "");
	evbuffer_free(out);
}

/* One U+FFFD for each maximal part of a sequence: what Python's errors="replace" does. */
static void test_repair(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"ok \xe2\x82\xac", "ok \xe2\x82\xac"},
		{"\xff", "?"},
		{"a\xe2\x82z", "a?z"},
		{"\xf0\x9f\x98", "?"},
		{"\xf0\x9f\x98\xf0\x9f\x98\x80", "?\xf0\x9f\x98\x80"},
		{"\xed\xa0\x80", "???"},
		{"\xc0\xaf", "??"},
		{"\xf5\x80\x80", "???"},
		{"\xf4\x90\x80\x80", "????"},
		{"\xe0\x80\x80", "???"},
	};
	struct evbuffer *out = evbuffer_new(), *expected = evbuffer_new();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *want;

		for (const char *at = rows[i].out; *at; at++)
			evbuffer_add(expected, *at == '?' ? "\xef\xbf\xbd" : at,
				     *at == '?' ? 3 : 1);
		want = text_drain(expected, NULL);
		text_repair(text_of(rows[i].in), out);
		assert_buffer(out, want);
		free(want);
		assert_int_equal(text_is_utf8(text_of(rows[i].in)), i == 0);
	}
	evbuffer_free(expected);
	evbuffer_free(out);
}

static struct text_scan scan_of(struct rlmd_text text, size_t piece)
{
	struct text_scan scan = {0};

	for (size_t at = 0; at < text.size; at += piece) {
		size_t size = text.size - at < piece ? text.size - at : piece;

		text_scan_feed(&scan, text_from(text.bytes + at, size));
	}
	text_scan_end(&scan);
	return scan;
}

/* LIB-8, LIB-9: characters as Python counts them, in whatever pieces the bytes come. */
static void test_scan(void **state)
{
	static const struct {
		const char *text;
		size_t characters, invalid;
		uint32_t highest;
	} rows[] = {
		{"", 0, 0, 0},
		{"only ascii, longer than a word", 30, 0, 0},
		{"na\xc3\xafve", 5, 0, 0xef},
		{"\xe4\xb8\xad\xe6\x96\x87, \xf0\x9f\x98\x80 and more", 14, 0, 0x1f600},
		{"a\xff\xfe", 3, 2, 0xdcff},
		{"\xe2\x82", 2, 2, 0xdcff},
		{"\xe2\x82\xc3\xa9", 3, 2, 0xdcff},
		{"\xf0\x9f\x98X", 4, 3, 0xdcff},
		{"\xed\xa0\x80", 3, 3, 0xdcff},
		{"\xf4\x90\x80\x80 12345678 \xc1\xbf", 16, 6, 0xdcff},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t piece = 1; piece < 20; piece++) {
			struct text_scan scan = scan_of(text_of(rows[i].text), piece);

			assert_int_equal(scan.bytes, strlen(rows[i].text));
			assert_int_equal(scan.characters, rows[i].characters);
			assert_int_equal(scan.invalid, rows[i].invalid);
			assert_int_equal(scan.highest, rows[i].highest);
		}
}

static void test_line_feeds(void **state)
{
	static const char text[] = "\na\n\n\xf0\x9f\x98\n\r\n";

	(void)state;
	for (size_t piece = 1; piece < 12; piece++) {
		struct text_scan scan = scan_of(text_of(text), piece), both = scan;

		assert_int_equal(scan.line_feeds, 5);
		text_scan_add(&both, &scan);
		assert_int_equal(both.line_feeds, 10);
	}
}

/* Of texts of many sizes, up to two of the parts (255 * 16 bytes) that are counted together: of
 * line feeds alone, and of characters of one to four bytes. */
static void test_counts(void **state)
{
	static const char word[] = "a\xc3\xa9\n\xe4\xb8\xad\xf0\x9f\x98\x80";
	enum { SIZE = 8300, PART = 4080, WORD = sizeof word - 1 };
	auto_free char *alike = xreallocarray(NULL, SIZE, 1), *mixed = xreallocarray(NULL, SIZE, 1);
	size_t characters = 0, line_feeds = 0;

	(void)state;
	memset(alike, '\n', SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		if (i % PART < 33 || i % 97 == 0) {
			struct text_scan scan = scan_of(text_from(alike, i), SIZE);
			struct text_scan other = scan_of(text_from(mixed, i), SIZE);

			assert_int_equal(scan.line_feeds, i);
			assert_int_equal(text_characters(text_from(alike, i)), i);
			assert_int_equal(other.line_feeds, line_feeds);
			assert_int_equal(text_characters(text_from(mixed, i)), characters);
		}
		mixed[i] = word[i % WORD];
		line_feeds += mixed[i] == '\n';
		characters += ((unsigned char)mixed[i] & 0xc0) != 0x80;
	}
}

/* The memory of a str: one, two or four bytes a character (PEP 393). */
static void test_python_size(void **state)
{
	size_t empty = 0;
	struct text_scan scan = scan_of(text_of(""), 1);

	(void)state;
	empty = text_scan_python_size(&scan);
	scan = scan_of(text_of("abcd"), 4);
	assert_int_equal(text_scan_python_size(&scan), empty + 4);
	scan = scan_of(text_of("abc\xc3\xa9"), 4);
	assert_int_equal(text_scan_python_size(&scan), empty + 4);
	scan = scan_of(text_of("abc\xe2\x82\xac"), 4);
	assert_int_equal(text_scan_python_size(&scan), empty + 8);
	scan = scan_of(text_of("abc\xff"), 4);
	assert_int_equal(text_scan_python_size(&scan), empty + 8);
	scan = scan_of(text_of("abc\xf0\x9f\x98\x80"), 4);
	assert_int_equal(text_scan_python_size(&scan), empty + 16);
}

static void test_copy(void **state)
{
	char *copy = text_copy(text_from("a\0b", 3));

	(void)state;
	assert_memory_equal(copy, "a\0b", 4);
	free(copy);
	copy = text_copy((struct rlmd_text){0});
	assert_string_equal(copy, "");
	free(copy);
}

static void test_lines(void **state)
{
	struct rlmd_text text = text_of("ab\n\nc");

	(void)state;
	assert_int_equal(text_line_end(text, 0), 3);
	assert_int_equal(text_line_end(text, 2), 3);
	assert_int_equal(text_line_end(text, 3), 4);
	assert_int_equal(text_line_end(text, 4), 5);
	assert_text(text_slice(text, 1, 4), "b\n\n");
	assert_int_equal(text_slice(text, 5, 5).size, 0);
}

static void test_caseless(void **state)
{
	(void)state;
	assert_true(text_equal_caseless(text_of("PyThon3.a"), "python3.A"));
	assert_true(text_equal_caseless(text_from(NULL, 0), ""));
	assert_false(text_equal_caseless(text_of("python"), "python3"));
	assert_false(text_equal_caseless(text_of("python3"), "python"));
	assert_true(text_starts_caseless(text_of("HTTPS://a"), "https://"));
	assert_true(text_starts_caseless(text_from(NULL, 0), ""));
	assert_false(text_starts_caseless(text_from("https", 4), "https"));
	assert_false(
		text_starts_caseless(text_of("h[tp"), "h{tp")); /* 0x20 apart, but no letters */
}

static void assert_disarmed(const char *text, const char *wanted)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *got = NULL;

	text_disarm(text_of(text), "(", out);
	got = text_drain(out, NULL);
	assert_string_equal(got, wanted);
}

static void test_disarm(void **state)
{
	(void)state;
	assert_disarmed("", "");
	assert_disarmed("a[1] # [b] #[c] ## [d]", "a[1] # [b] #[c] ## [d]");
	assert_disarmed("##[a]##[", "##(a]##(");
	assert_disarmed("x ##vso[task.x]", "x ##vso(task.x]");
	assert_disarmed("###Az[1]##a1[", "###Az(1]##a1[");
	assert_disarmed("[##", "[##");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_caseless),
		cmocka_unit_test(test_empty),         cmocka_unit_test(test_compare_and_find),
		cmocka_unit_test(test_trim),          cmocka_unit_test(test_last_line),
		cmocka_unit_test(test_clip),          cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_joined), cmocka_unit_test(test_escape_lines),
		cmocka_unit_test(test_repair),        cmocka_unit_test(test_scan),
		cmocka_unit_test(test_line_feeds),    cmocka_unit_test(test_python_size),
		cmocka_unit_test(test_copy),          cmocka_unit_test(test_disarm),
		cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

/* Texts as strings of JSON: whole, and in pieces that come to the same. */
#include "base/json_quote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "effort.h"

static void assert_quoted(struct rlmd_text text, const char *expected)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	auto_free char *string = NULL;

	json_quote(text, out);
	string = text_drain(out, NULL);
	assert_string_equal(string, expected);
	assert_int_equal(json_quoted_size(text) + 2, strlen(expected));
}

static void test_quote(void **state)
{
	(void)state;
	assert_quoted(text_of("a\"\\\n\t\r\b\f\x1b\x7f/\xe2\x82\xac"),
		      "\"a\\\"\\\\\\n\\t\\r\\b\\f\\u001B\x7f/\xe2\x82\xac\"");
	assert_quoted(text_from("\0\v\x0e\x1f", 4), "\"\\u0000\\u000B\\u000E\\u001F\"");
	assert_quoted(text_of("\xff"), "\"\xef\xbf\xbd\"");
	assert_quoted(text_of("\xe2\x82"), "\"\xef\xbf\xbd\"");
	assert_quoted(text_of("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_quoted(text_of("\xf0\x9f\x98\x80\xf0\x9f\x98x"),
		      "\"\xf0\x9f\x98\x80\xef\xbf\xbdx\"");
	assert_quoted((struct rlmd_text){0}, "\"\"");
}

/* jansson reads it as the text, once that is repaired. */
static void assert_reads_back(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	json_auto_t *expected = json_from_text(text), *value = NULL;

	json_quote(text, out);
	value = json_read(text_in(out), 1, NULL);
	assert_true(value && json_equal(value, expected));
	assert_int_equal(json_quoted_size(text) + 2, evbuffer_get_length(out));
}

/* Every byte at every place of a block, before and behind plain ones and such as are not. */
static void test_every_byte(void **state)
{
	static const char *const fillings[] = {"x", "\xc3\xa9", "\n", "\x80"};
	char text[24];

	(void)state;
	for (size_t filling = 0; filling < 4; filling++)
		for (size_t place = 0; place < sizeof text; place += effort(1, 5))
			for (unsigned byte = 0; byte < 256; byte += (unsigned)effort(1, 7)) {
				for (size_t i = 0; i < sizeof text; i++)
					text[i] = fillings[filling][i % strlen(fillings[filling])];
				text[place] = (char)byte;
				assert_reads_back(text_from(text, sizeof text));
			}
}

static const char mixed[] =
	"plain words, \"quoted\" ones\n\x1f\xc3\xa9t\xc3\xa9 \xe4\xb8\xad\xe6"
	"\x96\x87\xf0\x9f\x98\x80\xff\xe2\x82 and \xf0\x9f more of them at the end";

/* In pieces of any size, that is filled as far as a character fits. */
static void test_some(void **state)
{
	struct rlmd_text text = text_from(mixed, sizeof mixed - 1);
	auto_evbuffer struct evbuffer *whole = evbuffer_new();

	(void)state;
	json_quote(text, whole);
	for (size_t room = JSON_QUOTE_ROOM; room < 2 * sizeof mixed; room++) {
		auto_evbuffer struct evbuffer *out = evbuffer_new();
		struct rlmd_text rest = text;

		evbuffer_add(out, "\"", 1);
		while (rest.size) {
			auto_free char *piece = malloc(room); /* of its size, for sanitizers */
			size_t size = json_quote_some(&rest, piece, room);

			assert_in_range(size, 1, room);
			assert_true(!rest.size || size > room - JSON_QUOTE_ROOM);
			evbuffer_add(out, piece, size);
		}
		evbuffer_add(out, "\"", 1);
		assert_int_equal(evbuffer_get_length(out), evbuffer_get_length(whole));
		assert_memory_equal(text_in(out).bytes, text_in(whole).bytes,
				    evbuffer_get_length(out));
	}
}

/* Wherever text_clip() cuts, what was cut takes as much as the whole. */
static void test_size_of_halves(void **state)
{
	struct rlmd_text text = text_from(mixed, sizeof mixed - 1);

	(void)state;
	for (size_t cut = 0; cut <= text.size; cut++) {
		struct rlmd_text head = text_clip(text, cut);

		assert_int_equal(json_quoted_size(head) +
					 json_quoted_size(text_slice(text, head.size, text.size)),
				 json_quoted_size(text));
	}
}

/* A text of any length, through the pieces in which a buffer grows. */
static void test_long(void **state)
{
	size_t count = effort(20000, 2000);
	auto_evbuffer struct evbuffer *text = evbuffer_new();

	(void)state;
	for (size_t i = 0; i < count; i++)
		evbuffer_add_printf(text, "line \"%zu\"\t\xe2\x82\xac\n", i);
	assert_reads_back(text_in(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quote), cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_some),  cmocka_unit_test(test_size_of_halves),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests_name("json_quote", tests, NULL, NULL);
}

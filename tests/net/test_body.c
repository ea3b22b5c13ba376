/* The body of a request: measured and read in pieces of any size, it is what it would be at once.
 */
#include "net/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "effort.h"

enum { LONG_SIZE = 100000, MEASURED = 1000 };

/* Text that needs quoting at many places, and is longer than what is written at once. */
static struct rlmd_text long_text(void)
{
	static const char words[] = "some \"words\" \xe4\xb8\xad\n\xff\xf0\x9f\x98\x80 more\t";
	static char text[LONG_SIZE];

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = words[i % (sizeof words - 1)];
	return text_from(text, sizeof text);
}

static size_t measured(struct body *body, size_t slice)
{
	size_t slices = 1;

	while (!body_measure(body, slice))
		slices++;
	return slices;
}

/* All of it, read into rooms of that size; each piece but the last is nearly as large. */
static struct evbuffer *read_all(struct body *body, size_t room)
{
	struct evbuffer *all = evbuffer_new();
	auto_free char *piece = xcalloc(room, 1); /* of its size, for sanitizers */
	size_t size;

	while ((size = body_read(body, piece, room))) {
		assert_in_range(size, 1, room);
		evbuffer_add(all, piece, size);
		if (evbuffer_get_length(all) < body_size(body))
			assert_true(size > room - JSON_QUOTE_ROOM);
	}
	assert_int_equal(evbuffer_get_length(all), body_size(body));
	return all;
}

static void assert_is(struct evbuffer *got, struct evbuffer *expected)
{
	assert_int_equal(evbuffer_get_length(got), evbuffer_get_length(expected));
	assert_memory_equal(text_in(got).bytes, text_in(expected).bytes,
			    evbuffer_get_length(expected));
}

static void fill(struct body *body, struct evbuffer *expected)
{
	struct rlmd_text text = long_text(), brief = text_of("short\n"), none = {0};

	body_add(body, "[");
	body_quote(body, text);
	body_printf(body, ",%d,", 7);
	body_quote(body, brief);
	body_add(body, ",");
	body_quote(body, none);
	body_add(body, ",");
	body_quote(body, text_slice(text, 1, 50001));
	body_quote(body, text_slice(text, 3, 30003)); /* with nothing between */
	body_add(body, "]");

	evbuffer_add(expected, "[", 1);
	json_quote(text, expected);
	evbuffer_add(expected, ",7,\"short\\n\",\"\",", 16);
	json_quote(text_slice(text, 1, 50001), expected);
	json_quote(text_slice(text, 3, 30003), expected);
	evbuffer_add(expected, "]", 1);
}

static void test_pieces(void **state)
{
	(void)state;
	for (size_t room = JSON_QUOTE_ROOM; room < 300000; room += room * effort(1, 5) + 1) {
		auto_evbuffer struct evbuffer *expected = evbuffer_new(), *got = NULL,
					      *again = NULL;
		struct body *body = body_new();

		fill(body, expected);
		assert_true(measured(body, MEASURED + room) <= 180000 / MEASURED);
		assert_int_equal(body_size(body), evbuffer_get_length(expected));
		assert_null(body_whole(body).bytes);
		got = read_all(body, room);
		assert_is(got, expected);
		body_rewind(body);
		again = read_all(body, room);
		assert_is(again, expected);
		body_free(body);
	}
}

/* Begun anew in the middle of a text. */
static void test_rewind(void **state)
{
	auto_evbuffer struct evbuffer *expected = evbuffer_new(), *got = NULL;
	struct body *body = body_new();
	char piece[1000];

	(void)state;
	fill(body, expected);
	measured(body, SIZE_MAX);
	for (int i = 0; i < 150; i++)
		assert_true(body_read(body, piece, sizeof piece));
	body_rewind(body);
	got = read_all(body, sizeof piece);
	assert_is(got, expected);
	body_free(body);
}

/* A short body is whole at once. */
static void test_short(void **state)
{
	struct body *body = body_new();

	(void)state;
	body_add(body, "{\"a\":");
	body_quote(body, text_of("\"b\""));
	body_printf(body, ",\"%s\":%d}", "c", 1);
	assert_true(body_measure(body, 1));
	assert_true(text_equal(body_whole(body), "{\"a\":\"\\\"b\\\"\",\"c\":1}"));
	assert_int_equal(body_size(body), body_whole(body).size);
	body_free(body);
	body_free(NULL);
}

/* Many that are short come to a long one, of which not all is written at once either. */
static void test_both(void **state)
{
	static const size_t rooms[] = {JSON_QUOTE_ROOM, 100, 4096};
	struct rlmd_text texts[][2] = {
		{text_of("a \"b\""), text_of("c\n")},
		{long_text(), text_of("")},
		{text_of(""), long_text()},
		{long_text(), long_text()},
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
			auto_evbuffer struct evbuffer *joined = evbuffer_new(), *got;
			auto_evbuffer struct evbuffer *expected = evbuffer_new();
			struct body *body = body_new();

			evbuffer_add(joined, texts[i][0].bytes, texts[i][0].size);
			evbuffer_add(joined, "\n\n", 2);
			evbuffer_add(joined, texts[i][1].bytes, texts[i][1].size);
			evbuffer_add(expected, "[", 1);
			json_quote(text_in(joined), expected);
			evbuffer_add(expected, "]", 1);
			body_add(body, "[");
			body_quote_both(body, texts[i][0], texts[i][1]);
			body_add(body, "]");
			measured(body, MEASURED);
			got = read_all(body, rooms[k]);
			assert_is(got, expected);
			body_free(body);
		}
}

static void test_many(void **state)
{
	auto_evbuffer struct evbuffer *expected = evbuffer_new(), *got = NULL;
	struct rlmd_text text = text_slice(long_text(), 0, 1000);
	struct body *body = body_new();

	(void)state;
	for (int i = 0; i < 300; i++) {
		body_quote(body, text);
		json_quote(text, expected);
	}
	measured(body, MEASURED);
	assert_null(body_whole(body).bytes);
	got = read_all(body, 65536);
	assert_is(got, expected);
	body_free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces), cmocka_unit_test(test_rewind),
		cmocka_unit_test(test_short),  cmocka_unit_test(test_both),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}

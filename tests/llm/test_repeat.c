/* Texts that say the same without end, and those that only look so. */
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
#include "llm/reply.h"

/* `piece` until there are so many bytes, behind a head. */
static char *filled(const char *head, const char *piece, size_t size, size_t *ret_size)
{
	struct evbuffer *out = evbuffer_new();
	char *text;

	evbuffer_add(out, head, strlen(head));
	while (evbuffer_get_length(out) < size + strlen(head))
		evbuffer_add(out, piece, strlen(piece));
	text = text_drain(out, ret_size);
	evbuffer_free(out);
	return text;
}

static void pieces_without_end(void **state)
{
	static const char *const pieces[] = {
		"a",
		"ab",
		"no, wait. ",
		"print(context[:500])\n",
		"The answer is 42. Let me check again.\n\n",
		"\xe4\xbd\xa0\xe5\xa5\xbd",
	};

	(void)state;
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		size_t size;
		auto_free char *text = filled("So it began:", pieces[i], REPLY_REPEAT_TAIL, &size);
		size_t period = reply_period(text_from(text, size));

		assert_int_equal(period, strlen(pieces[i]));
		assert_int_equal(reply_period_start(text_from(text, size), period),
				 strlen("So it began:") + strlen(pieces[i]));
	}
}

/* A paragraph too, of a thousand bytes; but a text of two halves is none. */
static void long_pieces(void **state)
{
	char piece[1025];
	size_t size;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof piece - 1; i++)
		piece[i] = (char)('a' + (i * i + i / 7) % 26);
	piece[sizeof piece - 1] = '\0';
	text = filled("", piece, REPLY_REPEAT_TAIL, &size);
	assert_int_equal(reply_period(text_from(text, size)), 1024);
	assert_int_equal(reply_period(text_from(text, size - 1100)), 0);
	free(text);
}

/* Rulers, tables, base64 of zeros, similar lines: what is short, or not quite the same. */
static void what_may_be_meant(void **state)
{
	struct evbuffer *out = evbuffer_new();
	size_t size;
	char *text;

	(void)state;
	text = filled("", "-", 80, &size);
	assert_int_equal(reply_period(text_from(text, size)), 0);
	free(text);
	text = filled("data:;base64,", "A", REPLY_REPEAT_LEAST - 14, &size);
	assert_int_equal(reply_period(text_from(text, size)), 0);
	free(text);
	for (int i = 0; i < 2000; i++)
		evbuffer_add_printf(out, "- item %d\n", i);
	assert_int_equal(reply_period(text_in(out)), 0);
	evbuffer_drain(out, evbuffer_get_length(out));
	for (int i = 0; i < 500; i++)
		evbuffer_add_printf(out, "| %d | 0 | 0 | yes |\n", i * 7 % 13);
	for (int i = 0; i < 100; i++)
		evbuffer_add_printf(out, "rows.append([0, 0, 0])\n");
	assert_int_equal(reply_period(text_in(out)), 0);
	/* Texts with a part that is repeated, and then go on. */
	for (int i = 0; i < 1000; i++)
		evbuffer_add_printf(out, "again and ");
	evbuffer_add_printf(out, "so on, until it was done.");
	assert_int_equal(reply_period(text_in(out)), 0);
	evbuffer_free(out);
	assert_int_equal(reply_period(text_of("")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_without_end),
		cmocka_unit_test(long_pieces),
		cmocka_unit_test(what_may_be_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

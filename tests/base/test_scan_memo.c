/* A text that begins like the one before is scanned as if there had been none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/scan_memo.h"

enum { TEXTS = 400, LONGEST = 40000 };

static void check(struct scan_memo *memo, struct rlmd_text text)
{
	struct text_scan whole = {0}, scan = scan_memo_scan(memo, text);

	text_scan_feed(&whole, text);
	text_scan_end(&whole);
	assert_int_equal(scan.bytes, whole.bytes);
	assert_int_equal(scan.characters, whole.characters);
	assert_int_equal(scan.invalid, whole.invalid);
	assert_int_equal(scan.highest, whole.highest);
	assert_memory_equal(&scan.tokens.counts, &whole.tokens.counts, sizeof whole.tokens.counts);
}

/* Words, figures, characters of several bytes and halves of them; each text shares a beginning with
 * the last one, which ends anywhere, and may be longer than what is kept. */
static void test_same(void **state)
{
	static const char *const parts[] = {
		"word ", "Word", "3.14 ",   "\n\n", "\xc3\xa9", "\xe2\x82", "\xf0\x9f\x99\x82",
		"aB3",   "(x)",  "lengthy", "\xff"};
	enum { PARTS = sizeof parts / sizeof *parts };
	char *text = calloc(1, LONGEST + 16);
	struct scan_memo memo = {0};
	size_t size = 0;

	(void)state;
	srand(7);
	for (int i = 0; i < TEXTS; i++) {
		size_t wanted = (size_t)rand() % (i % 20 ? 3000 : LONGEST);

		size = size ? (size_t)rand() % size : 0;
		while (size < wanted) {
			const char *part = parts[rand() % PARTS];

			memcpy(text + size, part, strlen(part));
			size += strlen(part);
		}
		check(&memo, text_from(text, size));
		check(&memo, text_from(text, size));
	}
	scan_memo_done(&memo);
	free(text);
}

static void test_edges(void **state)
{
	struct scan_memo memo = {0};
	char text[257];

	(void)state;
	memset(text, 'a', sizeof text);
	check(&memo, text_of(""));
	for (size_t size = 126; size < sizeof text; size++)
		check(&memo, text_from(text, size));
	text[200] = '1';
	for (size_t size = sizeof text - 1; size > 126; size--)
		check(&memo, text_from(text, size));
	scan_memo_done(&memo);
	scan_memo_done(&memo);
	check(&memo, text_from(text, sizeof text));
	scan_memo_done(&memo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

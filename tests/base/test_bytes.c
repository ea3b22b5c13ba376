/* Bytes that grow in one piece: what is added stands there, in order, whatever moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static void test_nothing(void **state)
{
	struct bytes bytes = {0};

	(void)state;
	bytes_add(&bytes, (struct rlmd_text){0});
	assert_null(bytes.at);
	assert_non_null(bytes_text(&bytes).bytes);
	assert_int_equal(bytes_text(&bytes).size, 0);
	bytes_cut(&bytes, 0);
	bytes_done(&bytes);
}

static void test_grows(void **state)
{
	enum { TIMES = 3000 };
	struct bytes bytes = {0};
	char piece[TIMES], *expected = malloc(TIMES * TIMES), *taken;
	size_t size = 0;

	(void)state;
	for (size_t i = 0; i < TIMES; i++) {
		memset(piece, (int)('a' + i % 26), i);
		memcpy(expected + size, piece, i);
		size += i;
		bytes_add(&bytes, text_from(piece, i));
		assert_int_equal(bytes.size, size);
		assert_true(bytes.room < 256 || bytes.room <= 2 * size + 256);
	}
	assert_memory_equal(bytes_text(&bytes).bytes, expected, size);
	bytes_cut(&bytes, 5);
	bytes_add(&bytes, text_of("!"));
	assert_int_equal(bytes_text(&bytes).size, 6);
	assert_int_equal(bytes_text(&bytes).bytes[5], '!');
	taken = bytes_take(&bytes);
	assert_memory_equal(taken, expected, 5);
	assert_string_equal(taken + 5, "!");
	free(taken);
	bytes_done(&bytes);
	assert_null(bytes.at);
	free(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

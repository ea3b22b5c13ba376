/* Which calls are unanswered, and when there are enough of them. */
#include "pool/open_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A number is taken once, until it is answered; then it is free again. */
static void test_numbers(void **state)
{
	struct open_calls open = {0};

	(void)state;
	assert_false(open_calls_remove(&open, 1));
	assert_true(open_calls_add(&open, 1, 10));
	assert_true(open_calls_add(&open, 2, 20));
	assert_false(open_calls_add(&open, 1, 30));
	assert_int_equal(open.weight, 30);
	assert_true(open_calls_remove(&open, 1));
	assert_false(open_calls_remove(&open, 1));
	assert_int_equal(open.weight, 20);
	assert_true(open_calls_add(&open, 1, 0));
	assert_int_equal(open.count, 2);
}

/* Full is a number of calls, or a weight with any number. */
static void test_full(void **state)
{
	struct open_calls open = {0};

	(void)state;
	for (int i = 0; i < OPEN_CALLS_MAX; i++) {
		assert_false(open_calls_full(&open));
		assert_true(open_calls_add(&open, i, 0));
	}
	assert_true(open_calls_full(&open));
	assert_true(open_calls_remove(&open, 5));
	assert_false(open_calls_full(&open));
	assert_true(open_calls_add(&open, 5, OPEN_CALLS_WEIGHT_MAX));
	assert_true(open_calls_remove(&open, 6));
	assert_true(open_calls_full(&open));
	assert_int_equal(open_calls_room(&open), 0);
	assert_true(open_calls_remove(&open, 5));
	assert_int_equal(open_calls_room(&open), OPEN_CALLS_WEIGHT_MAX);
	assert_true(open_calls_add(&open, 5, OPEN_CALLS_WEIGHT_MAX - 1));
	assert_false(open_calls_full(&open));
	assert_int_equal(open_calls_room(&open), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests_name("open", tests, NULL, NULL);
}

/* Which calls are unanswered, and when there are enough of them. */
#include "pool/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A number is taken once, until it is answered; then it is free again. */
static void test_numbers(void **state)
{
	struct ledger ledger = {0};

	(void)state;
	assert_false(ledger_remove(&ledger, 1));
	assert_true(ledger_add(&ledger, 1, 10));
	assert_true(ledger_add(&ledger, 2, 20));
	assert_false(ledger_add(&ledger, 1, 30));
	assert_int_equal(ledger.weight, 30);
	assert_true(ledger_remove(&ledger, 1));
	assert_false(ledger_remove(&ledger, 1));
	assert_int_equal(ledger.weight, 20);
	assert_true(ledger_add(&ledger, 1, 0));
	assert_int_equal(ledger.count, 2);
}

/* Full is a number of calls, or a weight with any number. */
static void test_full(void **state)
{
	struct ledger ledger = {0};

	(void)state;
	for (int i = 0; i < LEDGER_CALLS_MAX; i++) {
		assert_false(ledger_full(&ledger));
		assert_true(ledger_add(&ledger, i, 0));
	}
	assert_true(ledger_full(&ledger));
	assert_true(ledger_remove(&ledger, 5));
	assert_false(ledger_full(&ledger));
	assert_true(ledger_add(&ledger, 5, LEDGER_WEIGHT_MAX));
	assert_true(ledger_remove(&ledger, 6));
	assert_true(ledger_full(&ledger));
	assert_int_equal(ledger_room(&ledger), 0);
	assert_true(ledger_remove(&ledger, 5));
	assert_int_equal(ledger_room(&ledger), LEDGER_WEIGHT_MAX);
	assert_true(ledger_add(&ledger, 5, LEDGER_WEIGHT_MAX - 1));
	assert_false(ledger_full(&ledger));
	assert_int_equal(ledger_room(&ledger), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

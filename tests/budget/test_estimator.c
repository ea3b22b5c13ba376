/* Upper bounds of what a call may be billed: pessimistic at first, then learned from bills. */
#include "budget/estimator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Before any bill: twice the estimate and 16 a message, or a token a byte where that is less. */
static void test_start(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	assert_int_equal(estimator_input(&estimator, 1000, 3500, 3), 2000 + 3 * 16);
	assert_int_equal(estimator_input(&estimator, 1000, 1500, 3), 1500 + 3 * 16);
	assert_int_equal(estimator_input(&estimator, 0, 0, 2), 2 * 16);
	assert_int_equal(estimator_output(&estimator, 4096), 4096);
}

/* After a bill: its ratio and a quarter more, rounded up; still never more than a token a byte. */
static void test_learns(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_input(&estimator, 984, 1200); /* 1200 / (984 + 16) = 1.2 */
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 2), 1500 + 2 * 16);
	assert_int_equal(estimator_input(&estimator, 1001, 10000, 2), 1502 + 2 * 16);
	assert_int_equal(estimator_input(&estimator, 1000, 1400, 2), 1400 + 2 * 16);
	estimator_learn_input(&estimator, 984, 3000);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 2), 3750 + 2 * 16);
}

/* Learning makes the bound little larger than the estimate, but not smaller. */
static void test_floor(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_input(&estimator, 1000, 400);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 1), 1150 + 16);
	estimator_learn_input(&estimator, 1000, 1);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 1), 1150 + 16);
}

/* The worst of the last eight bills counts; it is forgotten with the ninth after it. */
static void test_forgets(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_input(&estimator, 984, 2000);
	for (int i = 0; i < ESTIMATOR_BILLS - 1; i++) {
		estimator_learn_input(&estimator, 984, 1000);
		assert_int_equal(estimator_input(&estimator, 1000, 10000, 0), 2500);
	}
	estimator_learn_input(&estimator, 984, 1000);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 0), 1250);
}

/* The frames of a call of a few words are not taken for a property of all text. */
static void test_short_calls(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_input(&estimator, 1, 9);
	assert_int_equal(estimator_input(&estimator, 10000, 40000, 2), 11500 + 2 * 16);
}

/* Usage that is missing, negative or absurd teaches nothing that could divide, overflow or be
 * less than the estimate. */
static void test_bad_bills(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_input(&estimator, 0, 10);
	estimator_learn_input(&estimator, -1, 10);
	estimator_learn_input(&estimator, 10, 0);
	estimator_learn_input(&estimator, 10, -5);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 0, 10);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, -7, 10);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 10, -1);
	assert_int_equal(estimator.bills, 0);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 0), 2000);
	assert_int_equal(estimator_output(&estimator, 100), 100);

	estimator_learn_input(&estimator, 1, INT64_MAX);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 1, INT64_MAX);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 1), 10000 + 16);
	assert_int_equal(estimator_input(&estimator, INT64_MAX, INT64_MAX, SIZE_MAX / 32),
			 INT64_MAX);
	assert_int_equal(estimator_output(&estimator, 100), INT64_MAX);
}

/* The bills of one model do not make another one that shares its estimator cheaper, only
 * dearer.
 */
static void test_mixed(void **state)
{
	struct estimator estimator = {.mixed = true};

	(void)state;
	estimator_learn_input(&estimator, 984, 1000);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 0), 2000);
	estimator_learn_input(&estimator, 984, 3000);
	assert_int_equal(estimator_input(&estimator, 1000, 10000, 0), 3750);
}

/* Output beyond max_tokens is expected again, in proportion; output within it never changes it. */
static void test_output(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 1000, 1000);
	assert_int_equal(estimator_output(&estimator, 1000), 1000);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 1000, 1501);
	assert_int_equal(estimator_output(&estimator, 1000), 1501);
	assert_int_equal(estimator_output(&estimator, 100), 151);
	for (int i = 0; i < 100; i++)
		estimator_learn_output(&estimator, ESTIMATOR_TURN, 1000, 10);
	assert_int_equal(estimator_output(&estimator, 1000), 1501);
}

/* The use of replies is what the most of the last eight took, each use by itself. */
static void test_expected(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_CALL), 0);
	assert_int_equal(estimator_ample(&estimator, ESTIMATOR_CALL, 256), 256);
	estimator_learn_output(&estimator, ESTIMATOR_CALL, 8192, 800);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 8192, 8);
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_CALL), 800);
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_TURN), 8);
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_FORCED), 0);
	assert_int_equal(estimator_ample(&estimator, ESTIMATOR_CALL, 8192), 1000);
	assert_int_equal(estimator_ample(&estimator, ESTIMATOR_CALL, 256), 256);
	assert_int_equal(estimator_ample(&estimator, ESTIMATOR_TURN, 8192), ESTIMATOR_LEAST);
	assert_int_equal(estimator_ample(&estimator, ESTIMATOR_TURN, 10), 10);
	for (int i = 0; i < ESTIMATOR_BILLS - 1; i++)
		estimator_learn_output(&estimator, ESTIMATOR_CALL, 8192, 100);
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_CALL), 800);
	estimator_learn_output(&estimator, ESTIMATOR_CALL, 8192, 100);
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_CALL), 100);
	estimator.mixed = true;
	assert_int_equal(estimator_expected(&estimator, ESTIMATOR_CALL), 0);
}

/* All that fits while nothing is known, or nothing scarce; else a power of two, at least twice
 * what is expected, and what leaves enough for others. */
static void test_limit(void **state)
{
	struct estimator estimator = {0};

	(void)state;
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 100), 5000);
	estimator_learn_output(&estimator, ESTIMATOR_CALL, 8192, 300);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_TURN, 5000, 100), 5000);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 8192, 8192), 8192);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 100), 1024);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 0), 1024);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 1023), 1024);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 2047), 1024);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 2048), 2048);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 4999), 4096);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 900, 100), 900);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 600, 100), 600);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 200, 25), 200);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, INT64_MAX, INT64_MAX - 1),
			 INT64_C(1) << 62);
	estimator_learn_output(&estimator, ESTIMATOR_CALL, 1024,
			       1024); /* cut: the next may be longer */
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_CALL, 5000, 100), 2048);
	estimator_learn_output(&estimator, ESTIMATOR_TURN, 1024, 1);
	assert_int_equal(estimator_limit(&estimator, ESTIMATOR_TURN, 5000, 0), ESTIMATOR_LEAST);
}

/* Over any tokenizer whose ratio to the estimate stays within a tenth of its middle, with real
 * frames of 7 tokens a message: no bill is above its bound once one was learned from. */
static void test_holds(void **state)
{
	(void)state;
	for (int middle = 30; middle <= 300; middle += 10) {
		struct estimator estimator = {0};
		uint64_t random = (uint64_t)middle;

		for (int call = 0; call < 1000; call++) {
			int64_t estimate, billed, ratio;
			size_t messages;

			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			estimate = 200 + (int64_t)(random >> 33) % 20000;
			messages = 2 + (random >> 40) % 20;
			ratio = middle * (90 + (int64_t)(random >> 45) % 21) / 100;
			billed = estimate * ratio / 100 + 7 * (int64_t)messages;
			if (estimator.bills)
				assert_true(billed <= estimator_input(&estimator, estimate,
								      INT64_MAX, messages));
			estimator_learn_input(&estimator, estimate, billed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),       cmocka_unit_test(test_learns),
		cmocka_unit_test(test_floor),       cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_short_calls), cmocka_unit_test(test_bad_bills),
		cmocka_unit_test(test_output),      cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_holds),       cmocka_unit_test(test_expected),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests_name("estimator", tests, NULL, NULL);
}

/* Upper bounds of what a call may be billed: pessimistic at first, then learned from bills. */
#include "budget/gauge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Before any bill: twice the estimate and 16 a message, or a token a byte where that is less. */
static void test_start(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	assert_int_equal(gauge_input(&gauge, 1000, 3500, 3), 2000 + 3 * 16);
	assert_int_equal(gauge_input(&gauge, 1000, 1500, 3), 1500 + 3 * 16);
	assert_int_equal(gauge_input(&gauge, 0, 0, 2), 2 * 16);
	assert_int_equal(gauge_output(&gauge, 4096), 4096);
}

/* After a bill: its ratio and a quarter more, rounded up; still never more than a token a byte. */
static void test_learns(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_input(&gauge, 984, 1200); /* 1200 / (984 + 16) = 1.2 */
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 2), 1500 + 2 * 16);
	assert_int_equal(gauge_input(&gauge, 1001, 10000, 2), 1502 + 2 * 16);
	assert_int_equal(gauge_input(&gauge, 1000, 1400, 2), 1400 + 2 * 16);
	gauge_learn_input(&gauge, 984, 3000);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 2), 3750 + 2 * 16);
}

/* What it learned makes the bound as small as little more than the estimate, but not smaller. */
static void test_floor(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_input(&gauge, 1000, 400);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 1), 1150 + 16);
	gauge_learn_input(&gauge, 1000, 1);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 1), 1150 + 16);
}

/* The worst of the last eight bills counts; it is forgotten with the ninth after it. */
static void test_forgets(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_input(&gauge, 984, 2000);
	for (int i = 0; i < GAUGE_BILLS - 1; i++) {
		gauge_learn_input(&gauge, 984, 1000);
		assert_int_equal(gauge_input(&gauge, 1000, 10000, 0), 2500);
	}
	gauge_learn_input(&gauge, 984, 1000);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 0), 1250);
}

/* The frames of a call of a few words are not taken for a property of all text. */
static void test_short_calls(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_input(&gauge, 1, 9);
	assert_int_equal(gauge_input(&gauge, 10000, 40000, 2), 11500 + 2 * 16);
}

/* Usage that is missing, negative or absurd teaches nothing that could divide, overflow or be
 * less than the estimate. */
static void test_bad_bills(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_input(&gauge, 0, 10);
	gauge_learn_input(&gauge, -1, 10);
	gauge_learn_input(&gauge, 10, 0);
	gauge_learn_input(&gauge, 10, -5);
	gauge_learn_output(&gauge, GAUGE_TURN, 0, 10);
	gauge_learn_output(&gauge, GAUGE_TURN, -7, 10);
	gauge_learn_output(&gauge, GAUGE_TURN, 10, -1);
	assert_int_equal(gauge.bills, 0);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 0), 2000);
	assert_int_equal(gauge_output(&gauge, 100), 100);

	gauge_learn_input(&gauge, 1, INT64_MAX);
	gauge_learn_output(&gauge, GAUGE_TURN, 1, INT64_MAX);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 1), 10000 + 16);
	assert_int_equal(gauge_input(&gauge, INT64_MAX, INT64_MAX, SIZE_MAX / 32), INT64_MAX);
	assert_int_equal(gauge_output(&gauge, 100), INT64_MAX);
}

/* What one model was billed does not make another one that shares its gauge cheaper, only dearer.
 */
static void test_mixed(void **state)
{
	struct gauge gauge = {.mixed = true};

	(void)state;
	gauge_learn_input(&gauge, 984, 1000);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 0), 2000);
	gauge_learn_input(&gauge, 984, 3000);
	assert_int_equal(gauge_input(&gauge, 1000, 10000, 0), 3750);
}

/* Output beyond max_tokens is expected again, in proportion; output within it never changes it. */
static void test_output(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	gauge_learn_output(&gauge, GAUGE_TURN, 1000, 1000);
	assert_int_equal(gauge_output(&gauge, 1000), 1000);
	gauge_learn_output(&gauge, GAUGE_TURN, 1000, 1501);
	assert_int_equal(gauge_output(&gauge, 1000), 1501);
	assert_int_equal(gauge_output(&gauge, 100), 151);
	for (int i = 0; i < 100; i++)
		gauge_learn_output(&gauge, GAUGE_TURN, 1000, 10);
	assert_int_equal(gauge_output(&gauge, 1000), 1501);
}

/* What replies take is what the most of the last eight took, each use by itself. */
static void test_expected(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	assert_int_equal(gauge_expected(&gauge, GAUGE_CALL), 0);
	assert_int_equal(gauge_ample(&gauge, GAUGE_CALL, 256), 256);
	gauge_learn_output(&gauge, GAUGE_CALL, 8192, 800);
	gauge_learn_output(&gauge, GAUGE_TURN, 8192, 8);
	assert_int_equal(gauge_expected(&gauge, GAUGE_CALL), 800);
	assert_int_equal(gauge_expected(&gauge, GAUGE_TURN), 8);
	assert_int_equal(gauge_expected(&gauge, GAUGE_FORCED), 0);
	assert_int_equal(gauge_ample(&gauge, GAUGE_CALL, 8192), 1000);
	assert_int_equal(gauge_ample(&gauge, GAUGE_CALL, 256), 256);
	assert_int_equal(gauge_ample(&gauge, GAUGE_TURN, 8192), GAUGE_LEAST);
	assert_int_equal(gauge_ample(&gauge, GAUGE_TURN, 10), 10);
	for (int i = 0; i < GAUGE_BILLS - 1; i++)
		gauge_learn_output(&gauge, GAUGE_CALL, 8192, 100);
	assert_int_equal(gauge_expected(&gauge, GAUGE_CALL), 800);
	gauge_learn_output(&gauge, GAUGE_CALL, 8192, 100);
	assert_int_equal(gauge_expected(&gauge, GAUGE_CALL), 100);
	gauge.mixed = true;
	assert_int_equal(gauge_expected(&gauge, GAUGE_CALL), 0);
}

/* All that fits while nothing is known, or nothing scarce; else a power of two, at least twice
 * what is expected, and what leaves enough for others. */
static void test_limit(void **state)
{
	struct gauge gauge = {0};

	(void)state;
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 100), 5000);
	gauge_learn_output(&gauge, GAUGE_CALL, 8192, 300);
	assert_int_equal(gauge_limit(&gauge, GAUGE_TURN, 5000, 100), 5000);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 8192, 8192), 8192);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 100), 1024);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 0), 1024);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 1023), 1024);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 2047), 1024);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 2048), 2048);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 4999), 4096);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 900, 100), 900);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 600, 100), 600);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 200, 25), 200);
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, INT64_MAX, INT64_MAX - 1), INT64_C(1)
											    << 62);
	gauge_learn_output(&gauge, GAUGE_CALL, 1024, 1024); /* cut: the next may be longer */
	assert_int_equal(gauge_limit(&gauge, GAUGE_CALL, 5000, 100), 2048);
	gauge_learn_output(&gauge, GAUGE_TURN, 1024, 1);
	assert_int_equal(gauge_limit(&gauge, GAUGE_TURN, 5000, 0), GAUGE_LEAST);
}

/* Over any tokenizer whose ratio to the estimate stays within a tenth of its middle, with real
 * frames of 7 tokens a message: no bill is above its bound once one was learned from. */
static void test_holds(void **state)
{
	(void)state;
	for (int middle = 30; middle <= 300; middle += 10) {
		struct gauge gauge = {0};
		uint64_t random = (uint64_t)middle;

		for (int call = 0; call < 1000; call++) {
			int64_t estimate, billed, ratio;
			size_t messages;

			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			estimate = 200 + (int64_t)(random >> 33) % 20000;
			messages = 2 + (random >> 40) % 20;
			ratio = middle * (90 + (int64_t)(random >> 45) % 21) / 100;
			billed = estimate * ratio / 100 + 7 * (int64_t)messages;
			if (gauge.bills)
				assert_true(billed <=
					    gauge_input(&gauge, estimate, INT64_MAX, messages));
			gauge_learn_input(&gauge, estimate, billed);
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

	return cmocka_run_group_tests_name("gauge", tests, NULL, NULL);
}

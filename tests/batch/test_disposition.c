/* batch/disposition: what is tried again, and when. */
#include "batch/disposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_kinds(void **state)
{
	static const enum rlmd_error_kind later[] = {RLMD_ERROR_THROTTLED, RLMD_ERROR_OVERLOADED,
						     RLMD_ERROR_NETWORK, RLMD_ERROR_WORKER};
	static const enum rlmd_error_kind never[] = {RLMD_ERROR_SCHEMA, RLMD_ERROR_REFUSED,
						     RLMD_ERROR_INPUT, RLMD_ERROR_BUDGET};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(disposition_of(later[i]), DISPOSITION_RETRY);
		assert_int_equal(disposition_of(never[i]), DISPOSITION_FAIL);
	}
	assert_int_equal(disposition_of(RLMD_ERROR_AUTH), DISPOSITION_BREAKER);
	assert_int_equal(disposition_of(RLMD_ERROR_BILLING), DISPOSITION_BREAKER);
	assert_int_equal(disposition_of(RLMD_ERROR_CANCELLED), DISPOSITION_BACK);
}

static void test_delays(void **state)
{
	(void)state;
	assert_int_equal(disposition_delay(1, 0), 1000);
	assert_int_equal(disposition_delay(1, UINT32_MAX), 500);
	assert_int_equal(disposition_delay(4, 0), 8000);
	assert_int_equal(disposition_delay(INT64_MAX, 0), 300000);
	assert_int_equal(disposition_delay(INT64_MAX, UINT32_MAX), 150000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_delays),
	};

	return cmocka_run_group_tests_name("disposition", tests, NULL, NULL);
}

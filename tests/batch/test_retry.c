/* batch/retry: what is tried again, and when. */
#include "batch/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Each kind, as docs/batch.md has them. */
static void test_kinds(void **state)
{
	static const enum rlmd_error_kind later[] = {
		RLMD_ERROR_THROTTLED, RLMD_ERROR_OVERLOADED, RLMD_ERROR_NETWORK, RLMD_ERROR_TIMEOUT,
		RLMD_ERROR_BAD_REPLY, RLMD_ERROR_WORKER,     RLMD_ERROR_SANDBOX,
	};
	static const enum rlmd_error_kind never[] = {
		RLMD_ERROR_INTERNAL,  RLMD_ERROR_USAGE,
		RLMD_ERROR_NOT_FOUND, RLMD_ERROR_BAD_REQUEST,
		RLMD_ERROR_BUDGET,    RLMD_ERROR_INPUT,
		RLMD_ERROR_NO_ANSWER, RLMD_ERROR_CONTEXT_OVERFLOW,
		RLMD_ERROR_REFUSED,   RLMD_ERROR_SCHEMA,
		RLMD_ERROR_REPLAY,    RLMD_ERROR_FUNCTION,
	};

	(void)state;
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		assert_int_equal(retry_of(later[i]), RETRY_LATER);
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		assert_int_equal(retry_of(never[i]), RETRY_NEVER);
	assert_int_equal(retry_of(RLMD_ERROR_AUTH), RETRY_WITH_ANOTHER_KEY);
	assert_int_equal(retry_of(RLMD_ERROR_BILLING), RETRY_WITH_ANOTHER_KEY);
	assert_int_equal(retry_of(RLMD_ERROR_MACHINE), RETRY_WITH_FEWER);
	assert_int_equal(retry_of(RLMD_ERROR_CANCELLED), RETRY_UNCOUNTED);
}

/* After these the same answers would fail again; all others go on from what they have paid. */
static void test_whose_journals_go(void **state)
{
	(void)state;
	for (int kind = RLMD_ERROR_NONE; kind <= RLMD_ERROR_MACHINE; kind++)
		assert_int_equal(retry_asks_anew((enum rlmd_error_kind)kind),
				 kind == RLMD_ERROR_SCHEMA || kind == RLMD_ERROR_NO_ANSWER ||
					 kind == RLMD_ERROR_WORKER);
}

static void test_delays(void **state)
{
	(void)state;
	assert_int_equal(retry_delay(1, 0), 1000);
	assert_int_equal(retry_delay(1, UINT32_MAX), 500);
	assert_int_equal(retry_delay(4, 0), 8000);
	assert_int_equal(retry_delay(INT64_MAX, 0), 300000);
	assert_int_equal(retry_delay(INT64_MAX, UINT32_MAX), 150000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_whose_journals_go),
		cmocka_unit_test(test_delays),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}

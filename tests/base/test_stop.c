/* Why a run stopped: names that programs read, and words that people know. */
#include "base/stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char BUDGET[] = "Budget exhausted, answer was forced";

/* LIB-24's words, ENG-20's warnings, the names of the result object, and the kind of error. */
static void test_rows(void **state)
{
	static const struct {
		enum rlmd_stop stop;
		const char *name, *words, *warning;
		enum rlmd_error_kind kind;
	} rows[] = {
		{RLMD_STOP_MAX_COST, "max_cost", "Cost budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_TOKENS, "max_tokens", "Token budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_TIME, "max_time", "Time budget exhausted", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_ITERATIONS, "max_iterations", "Max iterations reached", BUDGET,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_CALLS, "max_calls", "Max calls reached", BUDGET, RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_DEPTH, "max_depth", "Max depth reached", NULL, RLMD_ERROR_BUDGET},
		{RLMD_STOP_MAX_SUBRUNS, "max_subruns", "Max sub-runs reached", NULL,
		 RLMD_ERROR_BUDGET},
		{RLMD_STOP_NO_CODE, "no_code",
		 "three turns in a row had neither code nor an answer",
		 "No code and no answer, answer was forced", RLMD_ERROR_NO_ANSWER},
		{RLMD_STOP_INTERRUPTED, "interrupted", "Interrupted",
		 "Interrupted, answer was forced", RLMD_ERROR_CANCELLED},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_string_equal(rlmd_stop_name(rows[i].stop), rows[i].name);
		assert_string_equal(stop_words(rows[i].stop), rows[i].words);
		assert_int_equal(error_of_stop(rows[i].stop), rows[i].kind);
		if (rows[i].warning)
			assert_string_equal(stop_warning(rows[i].stop), rows[i].warning);
		else
			assert_null(stop_warning(rows[i].stop));
	}
}

/* No answer is forced for what ends a run by itself, and nothing is said of what goes on. */
static void test_not_forced(void **state)
{
	static const enum rlmd_stop ends[] = {RLMD_STOP_FINAL, RLMD_STOP_PROVIDER_ERROR,
					      RLMD_STOP_SANDBOX_ERROR, RLMD_STOP_REFUSED};

	(void)state;
	assert_null(rlmd_stop_name(RLMD_STOP_NONE));
	assert_null(stop_words(RLMD_STOP_NONE));
	for (size_t i = 0; i < COUNT(ends); i++) {
		assert_non_null(rlmd_stop_name(ends[i]));
		assert_null(stop_words(ends[i]));
		assert_null(stop_warning(ends[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_not_forced),
	};

	return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}

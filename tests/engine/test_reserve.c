/* engine/reserve: what is kept of a budget for the forced answer, by the rule of docs/budget.md. */
#include "engine/reserve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/estimators.h"
#include "engine/scope.h"

enum {
	BRIEF = 1000, /* tokens that a short request is estimated at */
	WHOLE = 4000, /* and one with the whole conversation */
};

/* The fake's price is one for each token: of cost and tokens the same is kept. */
static struct rlmd_amount kept(int64_t limit, struct estimators *estimators, bool answered)
{
	const struct budget_limits limits = {
		.cost = limit, .tokens = limit, .time_ms = 1000, .calls = 1, .subruns = 1};
	const struct scope scope = {.estimators = estimators};
	struct budget *budget = budget_new(&limits, NULL, NULL);
	struct reserve reserve;
	struct rlmd_amount amount;

	reserve_set(&reserve, &scope, budget, "fake", BRIEF);
	if (answered) {
		reserve.whole = WHOLE;
		reserve_adjust(&reserve);
	}
	amount = reserve.reservation.most;
	assert_int_equal(budget_remaining(budget).tokens,
			 limit == BUDGET_UNLIMITED ? limit : limit - amount.tokens);
	reserve_drop(&reserve);
	reserve_adjust(&reserve);
	assert_int_equal(budget_remaining(budget).tokens, limit);
	budget_free(budget);
	return amount;
}

static void assert_kept(const int64_t (*rows)[2], size_t count, struct estimators *estimators,
			bool answered)
{
	for (size_t i = 0; i < count; i++) {
		struct rlmd_amount amount = kept(rows[i][0], estimators, answered);

		assert_int_equal(amount.tokens, rows[i][1]);
		assert_int_equal(amount.cost, rows[i][1]);
	}
}

/* A tenth; 1,500 tokens and 500 where that is more; but at most a quarter. */
static void test_before_the_first_answer(void **state)
{
	static const int64_t rows[][2] = {{100000, 10000}, {16000, 2000}, {8000, 2000},
					  {4000, 1000},    {0, 0},        {BUDGET_UNLIMITED, 0}};
	struct estimators estimators = {0};

	(void)state;
	assert_kept(rows, sizeof rows / sizeof *rows, &estimators, false);
}

/*
 * Bills are as the estimates were, so a quarter more and 16 tokens for each of two messages are
 * expected: the whole conversation takes 5,157 with an answer like those before it, a short request
 * 1,407 with such an answer and 1,782 with 500 tokens of it.
 */
static void test_once_the_model_has_answered(void **state)
{
	static const int64_t rows[][2] = {
		{100000, 5157}, /* whole, below a tenth */
		{40000, 1782},  /* short, with room for the answer, below a twentieth */
		{30000, 1500},  /* a twentieth of it */
		{20000, 1407},  /* short, below a quarter */
		{4000, 1000},   /* a quarter */
		{BUDGET_UNLIMITED, 0},
	};
	struct estimators estimators = {0};
	struct estimator *estimator = estimators_learn(&estimators, "fake");

	(void)state;
	estimator_learn_input(estimator, 984, 1000);
	estimator_learn_output(estimator, ESTIMATOR_TURN, 1000, 100);
	assert_kept(rows, sizeof rows / sizeof *rows, &estimators, true);
	estimators_done(&estimators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_the_first_answer),
		cmocka_unit_test(test_once_the_model_has_answered),
	};

	return cmocka_run_group_tests_name("reserve", tests, NULL, NULL);
}

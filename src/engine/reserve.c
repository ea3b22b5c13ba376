#include "engine/reserve.h"

#include "base/money.h"
#include "base/number.h"
#include "engine/scope.h"
#include "llm/llm.h"

enum {
	MOST = 4,     /* a quarter of the budget, at most, is kept for the least request; */
	WHOLE = 10,   /* a tenth for the whole conversation, and while little is known; */
	BRIEF = 20,   /* and a twentieth for a short request with room for its answer */
	INPUT = 1500, /* tokens of a short request, until more is known ... */
	OUTPUT = 500, /* ... and of an answer to it that has room */
	MESSAGES = 2, /* of a short request */
};

/* Where no answer was forced yet, a turn's response is the nearest to it. */
int64_t reserve_output(const struct scope *scope, const char *model, int64_t most)
{
	const struct estimator *estimator = estimators_look(scope->estimators, model);
	bool forced = estimator_expected(estimator, ESTIMATOR_FORCED);

	return estimator_ample(estimator, forced ? ESTIMATOR_FORCED : ESTIMATOR_TURN, most);
}

static struct rlmd_amount amount_of(const struct reserve *reserve, int64_t input, int64_t output)
{
	struct rlmd_amount amount = {.tokens = money_add(input, output)};

	/* Without a price there is no limit on cost, or nothing is asked. */
	llm_price(reserve->scope->llm, reserve->model, input, output, &amount.cost);
	return amount;
}

/* The most that the request may be billed, as far as that is known; nothing is known before
 * the first bill. */
static struct rlmd_amount brief_with(const struct reserve *reserve, int64_t output)
{
	const struct estimator *estimator = estimators_look(reserve->scope->estimators,
							    reserve->model);
	int64_t input = INPUT;

	if (estimator->bills)
		input = estimator_input(estimator, reserve->brief, INT64_MAX, MESSAGES);
	return amount_of(reserve, input, output);
}

static struct rlmd_amount with_whole(const struct reserve *reserve)
{
	const struct estimator *estimator = estimators_look(reserve->scope->estimators,
							    reserve->model);

	if (!estimator->bills || !reserve->whole)
		return (struct rlmd_amount){reserve->had.cost / WHOLE, reserve->had.tokens / WHOLE};
	return amount_of(reserve, estimator_input(estimator, reserve->whole, INT64_MAX, MESSAGES),
			 reserve_output(reserve->scope, reserve->model, SCOPE_OUTPUT_FORCED));
}

/* Nothing can be set aside out of what is unlimited; and what is too little for the whole
 * conversation is no use for it. */
static int64_t keep(int64_t had, int64_t least, int64_t brief, int64_t whole)
{
	int64_t most = int64_min(least, had / MOST);

	if (had == BUDGET_UNLIMITED)
		return 0;
	if (whole <= had / WHOLE)
		most = int64_max(most, whole);
	return int64_max(most, int64_min(brief, had / BRIEF));
}

void reserve_adjust(struct reserve *reserve)
{
	struct rlmd_amount least, brief, whole, left, had = reserve->had;

	if (!reserve->budget)
		return;
	least = brief_with(reserve, reserve_output(reserve->scope, reserve->model, OUTPUT));
	brief = brief_with(reserve, OUTPUT);
	whole = with_whole(reserve);
	account_drop(&reserve->reservation);
	left = budget_remaining(reserve->budget);
	left.cost = int64_min(keep(had.cost, least.cost, brief.cost, whole.cost), left.cost);
	left.tokens = int64_min(keep(had.tokens, least.tokens, brief.tokens, whole.tokens),
				left.tokens);
	budget_reserve(reserve->budget, &reserve->reservation, left, NULL);
}

void reserve_set(struct reserve *reserve, const struct scope *scope, struct budget *budget,
		 const char *model, int64_t brief)
{
	*reserve = (struct reserve){.scope = scope,
				    .budget = budget,
				    .model = model,
				    .brief = brief,
				    .had = budget_remaining(budget)};
	reserve_adjust(reserve);
}

void reserve_drop(struct reserve *reserve)
{
	reserve->budget = NULL;
	account_drop(&reserve->reservation);
}

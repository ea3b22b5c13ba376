#include "engine/reserve.h"

#include "base/money.h"
#include "base/number.h"
#include "engine/ask.h"
#include "engine/job.h"
#include "llm/llm.h"

enum {
	MOST = 4,     /* a quarter of the purse, at most, is kept for the least request; */
	WHOLE = 10,   /* a tenth for the whole conversation, and while little is known; */
	BRIEF = 20,   /* and a twentieth for a short request with room for its answer */
	INPUT = 1500, /* tokens of a short request, until more is known ... */
	OUTPUT = 500, /* ... and of an answer to it that has room */
	MESSAGES = 2, /* of a short request */
};

/* Where no answer was forced yet, a turn's response is the nearest to it. */
int64_t reserve_output(const struct rlmd_job *job, const char *model, int64_t most)
{
	const struct estimator *estimator = estimators_look(job->estimators, model);
	bool forced = estimator_expected(estimator, ESTIMATOR_FORCED);

	return estimator_ample(estimator, forced ? ESTIMATOR_FORCED : ESTIMATOR_TURN, most);
}

static struct rlmd_amount amount_of(const struct reserve *reserve, int64_t input, int64_t output)
{
	struct rlmd_amount amount = {.tokens = money_add(input, output)};

	/* Without a price there is no limit on cost, or nothing is asked. */
	llm_price(reserve->job->llm, reserve->model, input, output, &amount.cost);
	return amount;
}

/* What the request may be billed with each message as far as it is known; nothing is known before
 * the first bill. */
static struct rlmd_amount brief_with(const struct reserve *reserve, int64_t output)
{
	const struct estimator *estimator = estimators_look(reserve->job->estimators,
							    reserve->model);
	int64_t input = INPUT;

	if (estimator->bills)
		input = estimator_input(estimator, reserve->brief, INT64_MAX, MESSAGES);
	return amount_of(reserve, input, output);
}

static struct rlmd_amount with_whole(const struct reserve *reserve)
{
	const struct estimator *estimator = estimators_look(reserve->job->estimators,
							    reserve->model);

	if (!estimator->bills || !reserve->whole)
		return (struct rlmd_amount){reserve->purse.cost / WHOLE,
					    reserve->purse.tokens / WHOLE};
	return amount_of(reserve, estimator_input(estimator, reserve->whole, INT64_MAX, MESSAGES),
			 reserve_output(reserve->job, reserve->model, ASK_TOKENS_FORCED));
}

/* Nothing can be set aside out of what is unlimited; and what is too little for the whole
 * conversation is no use for it. */
static int64_t keep(int64_t purse, int64_t least, int64_t brief, int64_t whole)
{
	int64_t most = int64_min(least, purse / MOST);

	if (purse == BUDGET_UNLIMITED)
		return 0;
	if (whole <= purse / WHOLE)
		most = int64_max(most, whole);
	return int64_max(most, int64_min(brief, purse / BRIEF));
}

void reserve_adjust(struct reserve *reserve)
{
	struct rlmd_amount least, brief, whole, left, purse = reserve->purse;

	if (!reserve->budget)
		return;
	least = brief_with(reserve, reserve_output(reserve->job, reserve->model, OUTPUT));
	brief = brief_with(reserve, OUTPUT);
	whole = with_whole(reserve);
	charge_drop(&reserve->charge);
	left = budget_remaining(reserve->budget);
	left.cost = int64_min(keep(purse.cost, least.cost, brief.cost, whole.cost), left.cost);
	left.tokens = int64_min(keep(purse.tokens, least.tokens, brief.tokens, whole.tokens),
				left.tokens);
	charge_take(&reserve->charge, reserve->budget, left, NULL);
}

void reserve_set(struct reserve *reserve, const struct rlmd_job *job, struct budget *budget,
		 const char *model, int64_t brief)
{
	*reserve = (struct reserve){.job = job,
				    .budget = budget,
				    .model = model,
				    .brief = brief,
				    .purse = budget_remaining(budget)};
	reserve_adjust(reserve);
}

void reserve_drop(struct reserve *reserve)
{
	reserve->budget = NULL;
	charge_drop(&reserve->charge);
}

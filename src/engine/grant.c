#include "engine/grant.h"

#include <assert.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "budget/budget.h"
#include "budget/gauge.h"
#include "engine/ask.h"
#include "engine/room.h"

enum { SUBRUN_PROMPT = 2000 }; /* tokens of a sub-run's first request, about */

void grant_init(struct grant *grant, const struct room *room, struct run *caller, size_t tasks)
{
	struct budget *budget = run_budget(caller);
	int percent = room->config->downgrade;
	const char *kind;

	*grant = (struct grant){.room = room, .caller = caller, .wanting = tasks};
	grant->blocked = budget_subcall_block(budget, run_depth(caller));
	if (grant->blocked)
		return;
	kind = budget_scarce(budget, percent);
	if (kind)
		snprintf(grant->scarce, sizeof grant->scarce, "less than %d %% of %s left", percent,
			 kind);
	else
		grant->pool = budget_new_pool(budget);
}

void grant_done(struct grant *grant)
{
	budget_free(take_pointer(&grant->pool));
}

/* A sub-run keeps up to a quarter of its share for its forced answer. */
static int64_t with_reserve(int64_t amount)
{
	return amount + amount / 3;
}

/* A share that does not pay for one turn buys nothing. */
static const char *too_small(const struct grant *grant)
{
	const struct room *room = grant->room;
	struct budget_amount left = budget_remaining(grant->pool);
	int64_t among = (int64_t)grant->wanting;
	int64_t input = gauge_input(gauges_look(&room->gauges, room->subcall_model), SUBRUN_PROMPT,
				    INT64_MAX, 2);
	int64_t cost;

	if (left.tokens != BUDGET_UNLIMITED &&
	    left.tokens / among < with_reserve(input + ASK_TOKENS_FLOOR))
		return "Token budget exhausted";
	if (left.cost != BUDGET_UNLIMITED &&
	    llm_price(room->llm, room->subcall_model, input, ASK_TOKENS_FLOOR, &cost) &&
	    left.cost / among < with_reserve(cost))
		return "Cost budget exhausted";
	return NULL;
}

enum way grant_way(const struct grant *grant, const char **ret_reason)
{
	const char *reason = grant->blocked;

	assert(grant->wanting);
	if (grant->scarce[0]) {
		*ret_reason = grant->scarce;
		return WAY_DOWNGRADED;
	}
	if (!reason)
		reason = budget_subcall_block(grant->pool, run_depth(grant->caller));
	if (!reason)
		reason = too_small(grant);
	*ret_reason = reason;
	return reason ? WAY_DIRECT : WAY_SUBRUN;
}

void grant_share(struct grant *grant, struct run_options *ret)
{
	ret->pool = grant->pool;
	ret->among = (int64_t)grant->wanting--;
}

void grant_decline(struct grant *grant)
{
	grant->wanting--;
}

#include "engine/grant.h"

#include <assert.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "budget/budget.h"
#include "budget/gauge.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/room.h"

enum { SUBRUN_PROMPT = 2000 }; /* tokens of a sub-run's first request, about */

void grant_init(struct grant *grant, struct caller *caller, size_t tasks, size_t calls)
{
	int percent = caller->room->config->downgrade;
	const char *kind;

	*grant = (struct grant){.caller = caller, .wanting = tasks};
	grant->blocked = budget_subcall_block(caller->budget, caller->depth);
	if (grant->blocked)
		return;
	if (!caller->run) {
		grant->pool = caller->budget;
		grant->calls = calls;
		return;
	}
	kind = budget_scarce(caller->budget, percent);
	if (kind)
		snprintf(grant->scarce, sizeof grant->scarce, "less than %d %% of %s left", percent,
			 kind);
	else
		grant->pool = grant->aside = budget_new_pool(caller->budget);
}

void grant_done(struct grant *grant)
{
	grant->pool = NULL;
	budget_free(take_pointer(&grant->aside));
}

/* Model calls need little, and together they leave the tasks at least half. */
static int64_t among(const struct grant *grant)
{
	return (int64_t)grant->wanting + (grant->calls > 0);
}

/* A sub-run keeps up to a quarter of its share for its forced answer. */
static int64_t with_reserve(int64_t amount)
{
	return amount + amount / 3;
}

/* A share that does not pay for one turn buys nothing. */
static const char *too_small(const struct grant *grant)
{
	const struct room *room = grant->caller->room;
	const char *model = grant->caller->model;
	struct budget_amount left = budget_remaining(grant->pool);
	int64_t shares = among(grant);
	int64_t input = gauge_input(gauges_look(&room->gauges, model), SUBRUN_PROMPT, INT64_MAX, 2);
	int64_t output = ask_output_floor(room, model, LLM_TURN);
	int64_t cost;

	if (left.tokens != BUDGET_UNLIMITED && left.tokens / shares < with_reserve(input + output))
		return "its share of the tokens would not pay for one turn";
	if (left.cost != BUDGET_UNLIMITED && llm_price(room->llm, model, input, output, &cost) &&
	    left.cost / shares < with_reserve(cost))
		return "its share of the cost would not pay for one turn";
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
		reason = budget_subcall_block(grant->pool, grant->caller->depth);
	if (!reason)
		reason = too_small(grant);
	*ret_reason = reason;
	return reason ? WAY_DIRECT : WAY_SUBRUN;
}

void grant_share(struct grant *grant, struct run_options *ret)
{
	ret->pool = grant->pool;
	ret->among = among(grant);
	grant->wanting--;
}

void grant_decline(struct grant *grant)
{
	grant->wanting--;
}

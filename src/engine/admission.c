#include "engine/admission.h"

#include <assert.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "budget/budget.h"
#include "budget/estimator.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/scope.h"

enum { SUBRUN_PROMPT = 2000 }; /* tokens of a sub-run's first request, about */

void admission_init(struct admission *admission, struct caller *caller, size_t tasks, size_t calls)
{
	int percent = caller->scope->config.downgrade;
	const char *kind;

	*admission = (struct admission){.caller = caller, .wanting = tasks};
	if (caller->late)
		caller_is_late(&admission->blocked);
	if (caller->late ||
	    budget_subcall_block(caller->budget, caller->depth, &admission->blocked))
		return;
	if (caller->depth < 0) { /* a plan */
		admission->pool = caller->budget;
		admission->calls = calls;
		return;
	}
	kind = budget_scarce(caller->budget, percent);
	if (kind)
		snprintf(admission->scarce, sizeof admission->scarce, "less than %d %% of %s left",
			 percent, kind);
	else
		admission->pool = admission->aside = budget_new_pool(caller->budget);
}

void admission_done(struct admission *admission)
{
	admission->pool = NULL;
	budget_free(take_pointer(&admission->aside));
}

/* Model calls need little, and together they leave the tasks at least half. */
static int64_t among(const struct admission *admission)
{
	return (int64_t)admission->wanting + (admission->calls > 0);
}

/* A sub-run keeps up to a quarter of its share for its forced answer. */
static int64_t with_reserve(int64_t amount)
{
	return amount + amount / 3;
}

/* A share that does not pay for one turn buys nothing. */
static const char *too_small(const struct admission *admission)
{
	const struct scope *scope = admission->caller->scope;
	const char *model = admission->caller->model;
	struct rlmd_amount left = budget_remaining(admission->pool);
	int64_t shares = among(admission);
	int64_t input = estimator_input(estimators_look(scope->estimators, model), SUBRUN_PROMPT,
					INT64_MAX, 2);
	int64_t output = ask_output_floor(scope, model, LLM_TURN);
	int64_t cost;

	if (left.tokens != BUDGET_UNLIMITED && left.tokens / shares < with_reserve(input + output))
		return "its share of the tokens would not pay for one turn";
	if (left.cost != BUDGET_UNLIMITED && llm_price(scope->llm, model, input, output, &cost) &&
	    left.cost / shares < with_reserve(cost))
		return "its share of the cost would not pay for one turn";
	return NULL;
}

enum way admission_way(const struct admission *admission,
		       char ret_reason[static ADMISSION_REASON_SIZE])
{
	struct rlmd_error blocked = admission->blocked;
	const char *reason = NULL;

	assert(admission->wanting);
	if (admission->scarce[0]) {
		snprintf(ret_reason, ADMISSION_REASON_SIZE, "%s", admission->scarce);
		return WAY_DOWNGRADED;
	}
	if (blocked.kind ||
	    budget_subcall_block(admission->pool, admission->caller->depth, &blocked))
		reason = blocked.text;
	else
		reason = too_small(admission);
	snprintf(ret_reason, ADMISSION_REASON_SIZE, "%.*s", ADMISSION_REASON_SIZE - 1,
		 reason ? reason : "");
	return reason ? WAY_DIRECT : WAY_SUBRUN;
}

int64_t admission_begin(struct admission *admission)
{
	int64_t shares = among(admission);

	admission->wanting--;
	return shares;
}

void admission_decline(struct admission *admission)
{
	admission->wanting--;
}

#include "engine/ask_private.h"

#include <inttypes.h>
#include <sys/queue.h>

#include "base/money.h"
#include "base/number.h"
#include "budget/estimator.h"
#include "engine/caller.h"
#include "engine/cut_reply.h"
#include "engine/reserve.h"

enum {
	SHARE = 8,  /* an eighth of what is left is no scarcity for the other calls */
	GROWTH = 2, /* times the limit that cut a reply */
};

bool ask_most(const struct ask *ask, int64_t max_tokens, struct rlmd_amount *ret)
{
	const char *model = ask->options.request.model;
	int64_t output = estimator_output(estimators_look(ask->job->estimators, model), max_tokens);

	*ret = (struct rlmd_amount){.tokens = money_add(ask->input, output)};
	return llm_price(ask->job->llm, model, ask->input, output, &ret->cost);
}

bool ask_has_sent(const struct rlmd_job *job, const struct caller *caller)
{
	const struct ask *ask;

	TAILQ_FOREACH (ask, &job->sent, entry)
		if (ask->options.caller == caller)
			return true;
	return false;
}

/* What a reply like the last ones takes, which a floor for replies of any size need not exceed. */
int64_t ask_output_floor(const struct rlmd_job *job, const char *model, enum llm_kind kind)
{
	if (kind == LLM_FORCED)
		return reserve_output(job, model, ASK_TOKENS_FLOOR);
	return estimator_ample(estimators_look(job->estimators, model), estimators_use(kind),
			       ASK_TOKENS_FLOOR);
}

int64_t ask_sensible(const struct ask *ask)
{
	int64_t most = llm_max_output(ask->job->llm, ask->options.request.model);

	return int64_max(int64_min(ask->wanted, most), int64_min(ask->wanted, ASK_TOKENS_FLOOR));
}

/* How much output this amount pays for, at most what is wanted. */
static int64_t affordable(const struct ask *ask, int64_t wanted, struct rlmd_amount left)
{
	int64_t fits = 0, beyond = wanted + 1, tokens = wanted;

	while (beyond - fits > 1) {
		struct rlmd_amount amount;

		ask_most(ask, tokens, &amount);
		if (amount.tokens <= left.tokens && amount.cost <= left.cost)
			fits = tokens;
		else
			beyond = tokens;
		tokens = fits + (beyond - fits) / 2;
	}
	return fits;
}

/* The last call of a run, and one that was cut for its low limit, have all that there is. */
static int64_t limit_of(const struct ask *ask, int64_t wanted, int64_t fits)
{
	const struct llm_request *request = &ask->options.request;
	struct rlmd_amount left = budget_remaining(ask->options.caller->budget);
	struct rlmd_amount share = {left.cost / SHARE, left.tokens / SHARE};

	if (request->kind == LLM_FORCED || ask->cut)
		return fits;
	return estimator_limit(estimators_look(ask->job->estimators, request->model),
			       estimators_use(request->kind), fits, affordable(ask, wanted, share));
}

int64_t ask_floor(const struct ask *ask, int64_t wanted)
{
	const struct llm_request *request = &ask->options.request;

	if (ask->cut)
		return int64_min(wanted, GROWTH * ask->cut->limit);
	return int64_min(wanted, ask_output_floor(ask->job, request->model, request->kind));
}

/* While others may give something back, a call waits for enough not to be cut. */
static bool may_wait_for_more(const struct ask *ask, int64_t wanted, int64_t fits)
{
	const struct llm_request *request = &ask->options.request;
	const struct estimator *estimator = estimators_look(ask->job->estimators, request->model);

	return estimator_expected(estimator, estimators_use(request->kind)) &&
	       fits < estimator_ample(estimator, estimators_use(request->kind), wanted) &&
	       ask_has_sent(ask->job, ask->options.caller);
}

/* The reason why an answer is forced is told already; what the purse lacks for it is not. */
static void tell_shortage(const struct ask *ask, struct rlmd_error *err)
{
	struct rlmd_amount left = budget_remaining(ask->options.caller->budget), needed;
	char has[32], needs[32];

	ask_most(ask, ask_floor(ask, ask_sensible(ask)), &needed);
	money_format(left.cost, has);
	money_format(needed.cost, needs);
	if (needed.cost > left.cost)
		error_limit(err, RLMD_STOP_MAX_COST, "the request may cost %s, and %s is left",
			    needs, has);
	else if (needed.tokens > left.tokens)
		error_limit(err, RLMD_STOP_MAX_TOKENS,
			    "the request may take %" PRId64 " tokens, and %" PRId64 " are left",
			    needed.tokens, left.tokens);
}

/* Gives up what is kept for the last call, for it; before others only what that needs no more. */
static void settle_reserve(const struct ask *ask)
{
	struct reserve *reserve = ask->options.caller->reserve;

	if (!reserve)
		return;
	if (ask->options.request.kind == LLM_FORCED)
		reserve_drop(reserve);
	else
		reserve_adjust(reserve);
}

bool ask_reserve(struct ask *ask, struct rlmd_error *err)
{
	struct llm_request *request = &ask->options.request;
	struct budget *budget = ask->options.caller->budget;
	struct rlmd_amount amount;
	int64_t fits, wanted = ask_sensible(ask);

	settle_reserve(ask);
	ask->input = estimators_bound(ask->job->estimators, request->model, request->messages,
				      request->message_count, &ask->counts);
	ask->input += text_tokens(request->schema);
	fits = affordable(ask, wanted, budget_remaining(budget));
	/* What does not fit is taken as it was wanted, so that the account says why not. */
	request->max_tokens = wanted;
	if (fits >= ask_floor(ask, wanted) && !may_wait_for_more(ask, wanted, fits))
		request->max_tokens = limit_of(ask, wanted, fits);
	request->lowered = request->max_tokens < fits;
	if (!ask_most(ask, request->max_tokens, &amount) &&
	    budget_remaining(budget).cost != BUDGET_UNLIMITED)
		return error_set(err, RLMD_ERROR_BUDGET,
				 "the price of model '%s' is not known, so the limit on "
				 "cost cannot be kept",
				 request->model);
	ask->is_short = !charge_take(&ask->charge, budget, amount, err);
	if (ask->is_short && request->kind == LLM_FORCED)
		tell_shortage(ask, err);
	return !ask->is_short;
}

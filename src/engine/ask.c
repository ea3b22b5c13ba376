#include "engine/ask.h"

#include <stdlib.h>

#include "async/scheduler.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "budget/account.h"
#include "engine/ask_private.h"
#include "engine/caller.h"
#include "engine/cut_reply.h"
#include "engine/learning.h"
#include "engine/request.h"
#include "trace/record.h"

/* A retry is the same call; the forced answer is what the last call is kept for. */
static bool ask_admit(struct ask *ask, struct rlmd_error *err)
{
	return ask->cut || ask->options.request.kind == LLM_FORCED ||
	       budget_admit_call(ask->options.caller->budget, err);
}

/*
 * Of `usage` and `cost`, which are of all attempts so far, the last one's part is settled. Where
 * it was cut before its usage was reported, the model may have worked out of sight on all that it
 * was allowed: an estimate of what arrived is good enough to be told, but the purse pays the most.
 */
static void settle_attempt(struct ask *ask, const struct llm_usage *usage, int64_t cost, bool cut)
{
	struct rlmd_amount billed = {cost, usage->input + usage->output};
	struct rlmd_amount last = {billed.cost - ask->settled.cost,
				   billed.tokens - ask->settled.tokens};

	if (cut && usage->estimated && last.tokens) {
		last.cost = int64_max(last.cost, ask->charge.amount.cost);
		last.tokens = int64_max(last.tokens, ask->charge.amount.tokens);
		caller_warn_once(ask->options.caller,
				 "Calls were cut off before their usage was reported: the most "
				 "that they may have cost is taken from the budget");
	}
	charge_settle(&ask->charge, last);
	ask->settled = billed;
}

static struct rlmd_account *account_above(const struct caller *caller)
{
	return budget_limits(caller->budget)->above;
}

/* The reservation was for one attempt: another one must be affordable beside what was billed. */
static bool may_retry(void *owner, const struct llm_usage *usage, int64_t cost)
{
	struct ask *ask = owner;
	struct rlmd_amount again = ask->charge.amount;

	settle_attempt(ask, usage, cost, true);
	if (!charge_take(&ask->charge, ask->options.caller->budget, again, NULL))
		return false;
	if (!account_uncovered(account_above(ask->options.caller), (struct rlmd_amount){0}))
		return true;
	charge_drop(&ask->charge);
	return false;
}

static void ask_settle(struct ask *ask, const struct llm_usage *usage, int64_t cost,
		       bool cost_known, bool cut)
{
	struct budget_usage used = {
		.cost = cost,
		.tokens = usage->input + usage->output,
		.input_tokens = usage->input,
		.output_tokens = usage->output,
		.cached_tokens = usage->cache_read,
		.llm_calls = !ask->cut,
		.cached_calls = ask->cached,
		.estimated = usage->estimated,
		.cost_complete = cost_known,
	};

	if (llm_recalled_paid(ask->options.request.recall)) {
		budget_count_again(ask->options.caller->budget, &used);
		return;
	}
	if (ask->charge.budget) /* else a retry was refused, and all is settled */
		settle_attempt(ask, usage, cost, cut);
	budget_count_call(ask->options.caller->budget, &used);
}

/* Turns that were answered are recorded by their run; all else that was sent is, here. */
static void ask_record(const struct ask *ask, const struct llm_response *response,
		       const struct rlmd_error *err)
{
	const struct llm_request *request = &ask->options.request;

	if (ask->options.number != ASK_TURN || err)
		record_call(ask->job->trace, ask->options.caller->id,
			    response->number ? *response->number : request->number,
			    ask->options.reason, request, response, err);
}

static void on_wait(void *owner, const struct llm_wait *wait)
{
	const struct ask *ask = owner;

	record_wait(ask->job->trace, ask->options.caller->id, ask->options.number,
		    &ask->options.request, wait);
}

/* While it waits for its provider others may ask theirs. */
static void on_rest(void *owner)
{
	const struct ask *ask = owner;

	permit_rest(ask->permit);
}

static bool on_rested(void *owner)
{
	const struct ask *ask = owner;

	permit_return(ask->permit);
	return false;
}

static void stand_in(struct ask *ask, struct ask_list *list)
{
	if (ask->list)
		TAILQ_REMOVE(ask->list, ask, entry);
	ask->list = list;
	if (list)
		TAILQ_INSERT_TAIL(list, ask, entry);
}

static void ask_free(struct ask *ask)
{
	stand_in(ask, NULL);
	account_wait_no_more(&ask->waiter);
	charge_drop(&ask->charge);
	permit_free(ask->permit);
	cut_reply_free(ask->cut);
	llm_recall_free((struct llm_recall *)ask->options.request.recall);
	free(ask);
}

static void on_permit(void *owner);

/* It may be affordable now; it comes before whoever comes later. */
static void retry(void *owner)
{
	struct ask *ask = owner;

	stand_in(ask, NULL);
	ask->permit = permits_ask_call(&ask->job->permits, true, on_permit, ask);
}

/* A call in flight has ended, and is settled: whoever waited for that tries again. */
static void retry_waiting(const struct ask *ended)
{
	const struct caller *caller = ended->options.caller;
	struct ask *ask, *next;

	for (ask = TAILQ_FIRST(&ended->job->waiting); ask; ask = next) {
		next = TAILQ_NEXT(ask, entry);
		if (ask->options.caller == caller)
			retry(ask);
	}
	account_end_call(account_above(caller), ended->flying);
}

/* What others hold of the account, or of one above the job, mostly comes back with the end of their
 * calls; and a cover is asked for. False: there is nothing to wait for. */
static bool wait_for_others(struct ask *ask)
{
	struct caller *caller = ask->options.caller;
	struct rlmd_account *account = NULL;
	struct rlmd_amount least;

	if (ask->bare) {
		account_wait(ask->bare, &ask->waiter, retry, ask);
	} else if (ask_has_sent(ask->job, caller)) {
		stand_in(ask, &ask->job->waiting);
	} else {
		ask_most(ask, ask_floor(ask, ask_sensible(ask)), &least);
		account = account_awaited(account_above(caller), least);
		if (!account)
			return false;
		account_wait(account, &ask->waiter, retry, ask);
	}
	permit_free(take_pointer(&ask->permit));
	return true;
}

/* The end of the call, in whatever way. Of one that was made again the first reply stands, cut as
 * it is, where the second attempt gave none. */
static void ask_end(struct ask *ask, const struct llm_response *response,
		    const struct rlmd_error *err)
{
	ask_done_fn *done = ask->done;
	void *owner = ask->owner;
	struct cut_reply *cut = take_pointer(&ask->cut);
	struct llm_recall *recall = take_pointer(&ask->options.request.recall); /* its answer */
	struct llm_response whole = *response;

	if (cut && err) {
		whole = cut->response;
		cut_reply_add(&whole, response);
		err = NULL;
	} else if (cut) {
		cut_reply_add(&whole, &cut->response);
	}
	if (ask->call_sent)
		ask_record(ask, &whole, err);
	ask_free(ask);
	done(owner, &whole, err);
	cut_reply_free(cut);
	llm_recall_free(recall);
}

static void on_llm(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct ask *ask = owner;

	ask->call = NULL;
	ask->job->calls_in_flight--;
	ask->cached = response->cached;
	ask_settle(ask, &response->usage, response->cost, response->cost_known, err);
	retry_waiting(ask);
	learning_take(ask->options.caller, &ask->options.request, &ask->counts, response);
	if (!err && response->lowered && !ask->cut) {
		stand_in(ask, NULL);
		ask->cut = cut_reply_new(response, response->lowered);
		ask->settled = (struct rlmd_amount){0};
		llm_recall_again((struct llm_recall *)ask->options.request.recall);
		on_permit(ask);
		return;
	}
	ask_end(ask, response, err);
}

/* What was had before; and what earlier attempts at the job have paid for nothing counts now. */
static void ask_recall(struct ask *ask)
{
	struct llm_request *request = &ask->options.request;
	struct llm_bill bill;

	if (!request->recall)
		request->recall = llm_recall(ask->job->llm, request, ask->options.caller->id);
	bill = llm_recall_bill((struct llm_recall *)request->recall);
	if (bill.calls)
		budget_count_again(ask->options.caller->budget,
				   &(struct budget_usage){
					   .cost = bill.cost,
					   .tokens = bill.usage.input + bill.usage.output,
					   .input_tokens = bill.usage.input,
					   .output_tokens = bill.usage.output,
					   .cached_tokens = bill.usage.cache_read,
					   .llm_calls = bill.calls,
					   .estimated = bill.usage.estimated,
					   .cost_complete = !bill.cost_unknown,
				   });
}

/* What this process may have spent when it dies is known beforehand to those that share the money.
 */
static bool ask_cover(struct ask *ask)
{
	ask->bare = account_uncovered(account_above(ask->options.caller), ask->charge.amount);
	if (ask->bare)
		charge_drop(&ask->charge);
	return !ask->bare;
}

/* What was paid before is there whatever the purse has. */
static bool may_be_sent(struct ask *ask, struct rlmd_error *err)
{
	const struct llm_recall *recall = ask->options.request.recall;
	const char *model = ask->options.request.model;

	if (!job_may_ask(ask->job, model))
		return error_set(err, RLMD_ERROR_USAGE,
				 "model '%.100s' is none of those that this job may use", model);
	ask->bare = NULL;
	return llm_recalled_paid(recall) ||
	       ((llm_recalled(recall) || (ask_reserve(ask, err) && ask_cover(ask))) &&
		ask_admit(ask, err));
}

static void on_permit(void *owner)
{
	struct ask *ask = owner;
	struct llm_request *request = &ask->options.request;
	struct rlmd_error err = {0};
	bool asks;

	if (ask->call) {
		llm_go_on(ask->call);
		return;
	}
	ask_recall(ask);
	asks = may_be_sent(ask, &err);
	if (!asks || llm_recalled(request->recall))
		permit_spare(ask->permit);
	if (asks) {
		ask->job->calls_in_flight++;
		ask->flying = ask->charge.amount;
		account_begin_call(account_above(ask->options.caller), ask->flying);
		ask->call_sent = true;
		ask->call_started = clock_ms();
		stand_in(ask, &ask->job->sent);
		if (ask->options.sent && !ask->cut)
			ask->options.sent(ask->owner);
		if (ask->cut && request->on_delta)
			request->on_delta(request->delta_owner, (struct rlmd_text){0});
		ask->call = llm_start(ask->job->llm, request, on_llm, ask);
		return;
	}
	if ((ask->is_short || ask->bare) && wait_for_others(ask))
		return;
	ask_end(ask, &(struct llm_response){.cost_known = true}, &err);
}

struct ask *ask_start(struct rlmd_job *job, const struct ask_options *options, ask_done_fn *done,
		      void *owner)
{
	struct ask *ask = xcalloc(1, sizeof *ask);
	struct llm_request *request = &ask->options.request;

	*ask = (struct ask){.job = job, .options = *options, .done = done, .owner = owner};
	ask->log = caller_call_log(options->caller, options->number, request);
	request_use_settings(request, &job->config);
	ask->wanted = request->asked_tokens = request->max_tokens;
	caller_place(options->caller, options->place, options->number, request, ask->place);
	request->may_retry = may_retry;
	request->on_wait = on_wait;
	request->on_rest = on_rest;
	request->on_rested = on_rested;
	request->rest_owner = ask;
	request->log = &ask->log;
	ask->permit = permits_ask_call(&job->permits, false, on_permit, ask);
	return ask;
}

struct llm_usage ask_cancel(struct ask *ask)
{
	struct rlmd_error err = {.kind = RLMD_ERROR_CANCELLED, .text = "cancelled"};
	struct llm_response response = {.cost_known = true};
	int64_t price;

	if (!ask)
		return response.usage;
	if (ask->call) {
		ask->job->calls_in_flight--;
		response.duration_ms = clock_ms() - ask->call_started;
		llm_cancel(ask->call, &response.usage, &response.cost);
		response.cost_known = llm_price(ask->job->llm, ask->options.request.model, 0, 0,
						&price);
		ask_settle(ask, &response.usage, response.cost, response.cost_known, true);
		retry_waiting(ask);
	}
	if (ask->cut)
		cut_reply_add(&response, &ask->cut->response);
	if (ask->call_sent)
		ask_record(ask, &response, &err);
	ask_free(ask);
	return response.usage;
}

#include "engine/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "async/scheduler.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/number.h"
#include "budget/account.h"
#include "budget/estimator.h"
#include "engine/caller.h"
#include "engine/reserve.h"
#include "engine/scope.h"
#include "llm/request.h"
#include "trace/record.h"

enum {
	SHARE = 8,  /* an eighth of what is left is no scarcity for the other calls */
	ROOMY = 8,  /* an eighth of a window is asked for, however long the input may be */
	GROWTH = 2, /* times the limit that cut a reply */
};

/* Priorities in the line for a permit: whoever had to wait for money comes first. */
enum { CALL_FIRST, CALL_AGAIN };

struct ask {
	struct scope *scope; /* lent */
	struct ask_options options;
	struct activity activity;
	struct log log; /* its caller's, with its number and kind */
	char position[CALLER_POSITION_SIZE];
	struct permit *permit; /* owned: our place among the calls at once, or in line for it */
	struct account_waiter waiter;   /* for what other calls give back, or for a cover */
	struct llm_call *call;          /* owned: once it was sent */
	struct reservation reservation; /* the attempt that is under way */
	struct rlmd_account *uncovered; /* lent: whose cover does not reach for it yet; or NULL */
	struct rlmd_amount settled;     /* what the attempts before it were billed */
	bool is_short;                  /* the account could not pay for it */
	int64_t wanted;                 /* max_tokens, as asked for */
	bool call_sent;                 /* at least once: it is recorded */
	bool cached;                    /* its answer was had before */
	int64_t call_started;           /* clock_ms() of the latest one */
	int64_t queued, started;        /* clock_ms() of the ask, and of the first one */
	struct cut_reply *cut;          /* owned: the attempt that was lowered too far; or NULL */
	struct token_counts counts;     /* what the input is made of */
	int64_t input;                  /* the most that they should be billed as */
	ask_done_fn *done;
	void *owner;
};

/* --- a reply that max_tokens has cut, kept while it is asked for again -------------------- */

struct cut_reply {
	struct llm_response response;     /* its texts are ours */
	struct evbuffer *text, *thinking; /* owned */
	char *model;                      /* owned */
	int64_t limit;                    /* the max_tokens that cut it */
};

static struct evbuffer *copy_of(struct rlmd_text *text)
{
	struct evbuffer *copy = buffer_new();

	buffer_add(copy, text->bytes, text->size);
	*text = text_in(copy);
	return copy;
}

static struct cut_reply *cut_reply_new(const struct llm_response *response, int64_t limit)
{
	struct cut_reply *cut = xcalloc(1, sizeof *cut);

	*cut = (struct cut_reply){.response = *response, .limit = limit};
	cut->response.bytes = NULL;
	cut->text = copy_of(&cut->response.text);
	cut->thinking = copy_of(&cut->response.thinking);
	if (response->model)
		cut->response.model = cut->model = xstrdup(response->model);
	return cut;
}

static void cut_reply_free(struct cut_reply *cut)
{
	if (!cut)
		return;
	evbuffer_free(cut->text);
	evbuffer_free(cut->thinking);
	free(cut->model);
	free(cut);
}

/* Adds what another attempt at the same call came to. */
static void cut_reply_add(struct llm_response *sum, const struct llm_response *other)
{
	request_add_usage(&sum->usage, &other->usage);
	sum->cost = money_add(sum->cost, other->cost);
	sum->cost_known &= other->cost_known;
	sum->attempts += other->attempts;
	sum->billed += other->billed;
	sum->duration_ms += other->duration_ms;
}

/* --- the bill of a call ---------------------------------------------------------------- */

/* A provider that does not keep to max_tokens; once. */
static void tell_overrun(struct caller *caller, const struct llm_request *request,
			 const struct llm_response *response)
{
	const char *words = response->overlong ? "sent more output than max_tokens (about "
					       : "billed more output than max_tokens (";
	char text[160];

	if (caller->scope->overrun)
		return;
	caller->scope->overrun = true;
	snprintf(text, sizeof text, "The provider %s%" PRId64 " of %" PRId64 " tokens)%s", words,
		 response->usage.output, request->max_tokens,
		 response->overlong ? ": its answer was cut off there" : "");
	caller_warn_once(caller, text);
}

/* Of several attempts only the sum is known, and of an estimate nothing is to be learned; but that
 * of an answer that was cut for its length is no more than what came. */
void ask_learn(struct caller *caller, const struct llm_request *request,
	       const struct token_counts *counts, const struct llm_response *response)
{
	const struct llm_usage *usage = &response->usage;
	struct estimator *estimator;

	if (response->overlong)
		tell_overrun(caller, request, response);
	if (response->cached || response->journaled || response->billed > 1 ||
	    (usage->estimated && !response->overlong))
		return;
	estimator = estimators_learn(caller->scope->estimators, request->model);
	if (!usage->estimated)
		estimator_learn_text(estimator, counts, usage->input);
	estimator_learn_output(estimator, estimators_use(request->kind), request->max_tokens,
			       usage->output);
	if (usage->output > request->max_tokens)
		tell_overrun(caller, request, response);
}

static struct rlmd_account *account_of(const struct ask *ask)
{
	return budget_account(ask->options.caller->budget);
}

/* --- what an attempt may cost ---------------------------------------------------------- */

/* The most that an attempt should be billed as; false: there is no price for the model. */
static bool most_of(const struct ask *ask, int64_t max_tokens, struct rlmd_amount *ret)
{
	const char *model = ask->options.request.model;
	int64_t output = estimator_output(estimators_look(ask->scope->estimators, model),
					  max_tokens);

	*ret = (struct rlmd_amount){.tokens = money_add(ask->input, output)};
	return llm_price(ask->scope->llm, model, ask->input, output, &ret->cost);
}

/* The floor need not exceed the output that a reply like the last ones takes. */
int64_t ask_output_floor(const struct scope *scope, const char *model, enum llm_kind kind)
{
	if (kind == LLM_FORCED)
		return reserve_output(scope, model, SCOPE_OUTPUT_FLOOR);
	return estimator_ample(estimators_look(scope->estimators, model), estimators_use(kind),
			       SCOPE_OUTPUT_FLOOR);
}

/* As much output as the model can give, by what is known of it. The input's bound may be far too
 * high: below the roomy part of a window the provider says what fits. */
static int64_t most_output(const struct ask *ask)
{
	const char *model = ask->options.request.model;
	struct room room = llm_room(ask->scope->llm, model);
	int64_t most = llm_max_output(ask->scope->llm, model);

	if (room.output)
		most = int64_min(most, room.output);
	if (room.window)
		most = int64_min(most, int64_max(room.window - ask->input, room.window / ROOMY));
	return most;
}

/* With less than the floor even a small one is useless. */
static int64_t sensible(const struct ask *ask)
{
	int64_t most = most_output(ask);

	return int64_max(int64_min(ask->wanted, most), int64_min(ask->wanted, SCOPE_OUTPUT_FLOOR));
}

/* How much output this amount pays for, at most what is wanted. */
static int64_t affordable(const struct ask *ask, int64_t wanted, struct rlmd_amount left)
{
	int64_t fits = 0, beyond = wanted + 1, tokens = wanted;

	while (beyond - fits > 1) {
		struct rlmd_amount amount;

		most_of(ask, tokens, &amount);
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
	return estimator_limit(estimators_look(ask->scope->estimators, request->model),
			       estimators_use(request->kind), fits, affordable(ask, wanted, share));
}

/* With less the call is refused: after a reply that was cut, any that would be cut likewise. */
static int64_t floor_of(const struct ask *ask, int64_t wanted)
{
	const struct llm_request *request = &ask->options.request;

	if (ask->cut)
		return int64_min(wanted, GROWTH * ask->cut->limit);
	return int64_min(wanted, ask_output_floor(ask->scope, request->model, request->kind));
}

/* While others may give something back, a call waits for enough not to be cut. */
static bool may_wait_for_more(const struct ask *ask, int64_t wanted, int64_t fits)
{
	const struct llm_request *request = &ask->options.request;
	const struct estimator *estimator = estimators_look(ask->scope->estimators, request->model);

	return estimator_expected(estimator, estimators_use(request->kind)) &&
	       fits < estimator_ample(estimator, estimators_use(request->kind), wanted) &&
	       account_of(ask)->calls_in_flight;
}

/* The reason why an answer is forced is told already; what the budget lacks for it is not. */
static void tell_shortage(const struct ask *ask, struct rlmd_error *err)
{
	struct rlmd_amount left = budget_remaining(ask->options.caller->budget), needed;
	char has[32], needs[32];

	most_of(ask, floor_of(ask, sensible(ask)), &needed);
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

/* Reserves the next attempt, with max_tokens as the account affords it; else `is_short` says
 * whether that was for want of money. */
static bool ask_reserve(struct ask *ask, struct rlmd_error *err)
{
	struct llm_request *request = &ask->options.request;
	struct budget *budget = ask->options.caller->budget;
	struct rlmd_amount amount;
	int64_t fits, wanted;

	settle_reserve(ask);
	ask->input = estimators_bound(ask->scope->estimators, request->model, request->messages,
				      request->message_count, &ask->counts);
	ask->input += text_tokens(request->schema);
	wanted = sensible(ask);
	fits = affordable(ask, wanted, budget_remaining(budget));
	/* Output that does not fit is reserved as wanted, so that the account says why not. */
	request->max_tokens = wanted;
	if (fits >= floor_of(ask, wanted) && !may_wait_for_more(ask, wanted, fits))
		request->max_tokens = limit_of(ask, wanted, fits);
	request->lowered = request->max_tokens < fits;
	if (!most_of(ask, request->max_tokens, &amount) &&
	    budget_remaining(budget).cost != BUDGET_UNLIMITED)
		return error_set(err, RLMD_ERROR_BUDGET,
				 "the price of model '%s' is not known, so the limit on "
				 "cost cannot be kept",
				 request->model);
	ask->is_short = !budget_reserve(budget, &ask->reservation, amount, err);
	if (ask->is_short && request->kind == LLM_FORCED)
		tell_shortage(ask, err);
	return !ask->is_short;
}

/* --- its way: permit, call, settlement ------------------------------------------------- */

/* A retry is the same call; the forced answer is what the last call is kept for. */
static bool ask_admit(struct ask *ask, struct rlmd_error *err)
{
	if (ask->cut || ask->options.request.kind == LLM_FORCED)
		return true;
	if (ask->options.caller->late)
		return caller_is_late(err);
	return budget_admit_call(ask->options.caller->budget, err);
}

/*
 * Of `usage` and `cost`, which are of all attempts so far, the last one's part is settled. Where
 * it was cut before its usage was reported, the model may have worked out of sight on all that it
 * was allowed: an estimate of what arrived is good enough to be told, but the budget pays the most.
 */
static void settle_attempt(struct ask *ask, const struct llm_usage *usage, int64_t cost, bool cut)
{
	struct rlmd_amount billed = {cost, usage->input + usage->output};
	struct rlmd_amount last = {billed.cost - ask->settled.cost,
				   billed.tokens - ask->settled.tokens};

	if (cut && usage->estimated && last.tokens) {
		last.cost = int64_max(last.cost, ask->reservation.most.cost);
		last.tokens = int64_max(last.tokens, ask->reservation.most.tokens);
		caller_warn_once(ask->options.caller,
				 "Calls were cut off before their usage was reported: the most "
				 "that they may have cost is taken from the budget");
	}
	account_settle(&ask->reservation, last);
	ask->settled = billed;
}

/* Other processes that share the money have to know beforehand what this one may spend. */
static bool ask_cover(struct ask *ask)
{
	ask->uncovered = account_uncovered(account_of(ask), ask->reservation.most);
	if (ask->uncovered)
		account_drop(&ask->reservation);
	return !ask->uncovered;
}

/* The reservation was for one attempt: another one must be affordable beside what was billed. */
static bool may_retry(void *owner, const struct llm_usage *usage, int64_t cost)
{
	struct ask *ask = owner;
	struct rlmd_amount again = ask->reservation.most;

	settle_attempt(ask, usage, cost, true);
	if (!budget_reserve(ask->options.caller->budget, &ask->reservation, again, NULL) ||
	    !ask_cover(ask))
		return false;
	account_send(&ask->reservation);
	return true;
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

	if (kept_is_paid(ask->options.request.lookup)) {
		budget_count_again(ask->options.caller->budget, &used);
		return;
	}
	if (ask->reservation.account) /* else a retry was refused, and all is settled */
		settle_attempt(ask, usage, cost, cut);
	budget_count_call(ask->options.caller->budget, &used);
}

/* Turns that were answered are recorded by their run; all else that was sent is, here. */
static void ask_record(const struct ask *ask, struct llm_response *response,
		       const struct rlmd_error *err)
{
	const struct llm_request *request = &ask->options.request;

	response->provider = llm_provider(ask->scope->llm, request->model);
	response->queued = ask->queued;
	response->started = ask->started;
	if (ask->options.number != CALLER_TURN || err)
		record_call(ask->scope->trace, ask->options.caller->id,
			    response->number ? *response->number : request->number,
			    ask->options.reason, request, response, err);
}

static void on_wait(void *owner, const struct llm_wait *wait)
{
	const struct ask *ask = owner;

	record_wait(ask->scope->trace, ask->options.caller->id, ask->options.number,
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

static void ask_free(struct ask *ask)
{
	activity_end(&ask->scope->activities, &ask->activity);
	account_wait_no_more(&ask->waiter);
	account_drop(&ask->reservation);
	permit_free(ask->permit);
	cut_reply_free(ask->cut);
	kept_lookup_free((struct kept_lookup *)ask->options.request.lookup);
	free(ask);
}

static void on_permit(void *owner);

/* It may be affordable now; it comes before whoever comes later. */
static void retry(void *owner)
{
	struct ask *ask = owner;

	ask->permit = permit_ask(ask->scope->calls, CALL_AGAIN, on_permit, ask);
}

/* Most of the money that other calls hold, of the same caller or of other jobs, comes back when
 * they end; and a cover is asked for. False: there is nothing to wait for. */
static bool wait_for_others(struct ask *ask)
{
	struct rlmd_account *account = ask->uncovered ? ask->uncovered : account_of(ask);
	struct rlmd_amount least;

	most_of(ask, floor_of(ask, sensible(ask)), &least);
	if (!ask->uncovered && !account->calls_in_flight)
		account = account_awaited(account, least);
	if (!account)
		return false;
	account_wait(account, &ask->waiter, retry, ask);
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
	struct kept_lookup *lookup = take_pointer(&ask->options.request.lookup); /* its answer */
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
	kept_lookup_free(lookup);
}

static void on_llm(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct ask *ask = owner;

	ask->call = NULL;
	ask->activity.sent = false;
	ask->cached = response->cached;
	ask_settle(ask, &response->usage, response->cost, response->cost_known, err);
	ask_learn(ask->options.caller, &ask->options.request, &ask->counts, response);
	if (!err && response->lowered && !ask->cut) {
		ask->cut = cut_reply_new(response, response->lowered);
		ask->settled = (struct rlmd_amount){0};
		kept_look_again((struct kept_lookup *)ask->options.request.lookup);
		on_permit(ask);
		return;
	}
	ask_end(ask, response, err);
}

/* Looks for an earlier answer; counts what earlier attempts at the job have paid in vain. False: it
 * is being read, and on_permit() comes again. */
static bool ask_look_up(struct ask *ask)
{
	struct llm_request *request = &ask->options.request;
	struct kept_bill bill;

	if (!request->lookup)
		request->lookup = llm_look_up(ask->scope->llm, request, ask->options.caller->id);
	if (kept_wait((struct kept_lookup *)request->lookup, on_permit, ask))
		return false;
	bill = kept_bill((struct kept_lookup *)request->lookup);
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
	return true;
}

/* An answer that was paid before needs no money. */
static bool may_be_sent(struct ask *ask, struct rlmd_error *err)
{
	const struct kept_lookup *lookup = ask->options.request.lookup;
	const char *model = ask->options.request.model;

	if (!scope_may_ask(ask->scope, model))
		return error_set(err, RLMD_ERROR_USAGE,
				 "model '%.100s' is none of those that this job may use", model);
	ask->uncovered = NULL;
	return kept_is_paid(lookup) ||
	       ((kept_is_found(lookup) || (ask_reserve(ask, err) && ask_cover(ask))) &&
		ask_admit(ask, err));
}

/* The host is asked once, also where the reply of the first attempt was cut. */
static bool host_allows(struct ask *ask, struct rlmd_error *err)
{
	struct rlmd_activity activity = activity_show(&ask->activity);

	return ask->cut || hooks_allow(&ask->scope->hooks, &activity, err);
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
	if (!ask_look_up(ask))
		return;
	asks = may_be_sent(ask, &err) && host_allows(ask, &err);
	if (!asks || kept_is_found(request->lookup))
		permit_spare(ask->permit);
	if (asks) {
		ask->activity.sent = true;
		account_send(&ask->reservation);
		ask->call_started = clock_ms();
		if (!ask->call_sent)
			ask->started = ask->call_started;
		ask->call_sent = true;
		if (ask->options.sent && !ask->cut)
			ask->options.sent(ask->owner);
		if (ask->cut && request->on_delta)
			request->on_delta(request->delta_owner, (struct rlmd_text){0});
		ask->call = llm_start(ask->scope->llm, request, on_llm, ask);
		return;
	}
	if ((ask->is_short || ask->uncovered) && wait_for_others(ask))
		return;
	ask_end(ask, &(struct llm_response){.cost_known = true}, &err);
}

struct ask *ask_start(struct scope *scope, const struct ask_options *options, ask_done_fn *done,
		      void *owner)
{
	struct ask *ask = xcalloc(1, sizeof *ask);
	struct llm_request *request = &ask->options.request;

	*ask = (struct ask){.scope = scope, .options = *options, .done = done, .owner = owner};
	ask->queued = options->queued ? options->queued : clock_ms();
	ask->log = caller_call_log(options->caller, options->number, request);
	scope_use(scope, request);
	ask->wanted = request->asked_tokens = request->max_tokens;
	caller_position(options->caller, options->position, options->number, request,
			ask->position);
	request->may_retry = may_retry;
	request->on_wait = on_wait;
	request->on_rest = on_rest;
	request->on_rested = on_rested;
	request->rest_owner = ask;
	request->log = &ask->log;
	request->run = options->caller->id;
	request->of_operation = options->caller->depth < 0;
	ask->activity = (struct activity){
		.request = request,
		.run = options->caller->id,
		.depth = request->depth,
		.turn = options->caller->activity.turn,
	};
	activity_begin(&scope->activities, &ask->activity);
	ask->permit = permit_ask(scope->calls, CALL_FIRST, on_permit, ask);
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
		response.duration_ms = clock_ms() - ask->call_started;
		llm_cancel(ask->call, &response.usage, &response.cost);
		response.cost_known = llm_price(ask->scope->llm, ask->options.request.model, 0, 0,
						&price);
		ask_settle(ask, &response.usage, response.cost, response.cost_known, true);
	}
	if (ask->cut)
		cut_reply_add(&response, &ask->cut->response);
	if (ask->call_sent)
		ask_record(ask, &response, &err);
	ask_free(ask);
	return response.usage;
}

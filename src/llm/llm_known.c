/*
 * Answers for which nobody is asked: those of a replay, and those that were recalled. And words
 * that code was told.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/number.h"
#include "llm/call.h"
#include "llm/llm_private.h"
#include "llm/provider.h"
#include "llm/told.h"

void llm_told_name(struct llm *llm, struct rlmd_text asked, struct llm_told *ret)
{
	told_name(recording_told(llm->recording), asked, ret);
}

char *llm_told_find(struct llm *llm, const struct llm_told *name, size_t *ret_size)
{
	struct journal *journal = llm->recalls.journal;
	json_auto_t *entry = journal ? journal_find(journal, name->id, name->number) : NULL;

	return entry ? told_read(entry, ret_size)
		     : told_find(recording_told(llm->recording), name, ret_size);
}

void llm_told_keep(struct llm *llm, const struct llm_told *name, struct rlmd_text words, bool found)
{
	struct journal *journal = llm->recalls.journal;

	told_keep(recording_told(llm->recording), name, words);
	if (journal && !found)
		journal_keep_first(journal, name->id, name->number, told_write(words));
}

/* As if it came now. */
static void answer(struct llm_call *call, const struct exchange *exchange, bool journaled)
{
	struct llm_response response = exchange_response(exchange, &call->request);
	int64_t now = clock_ms();

	response.journaled = journaled;
	response.duration_ms = response.attempt_ms = now - call->started;
	if (!exchange->usage_given && !exchange->error.kind) {
		response.usage.input = call_input_tokens(&call->request);
		response.usage.output = text_tokens(response.text) + text_tokens(response.thinking);
		response.usage.estimated = true;
	}
	response.cost_known = provider_charge(call->provider, call->request.model, response.model,
					      exchange->cost, &response.usage, &call->llm->warnings,
					      &response.cost);
	if (call->request.on_delta && response.text.size && !exchange->error.kind)
		call->request.on_delta(call->request.delta_owner, response.text);
	llm_call_done(call, &response, exchange->error.kind ? &exchange->error : NULL);
}

static void replayed(void *owner)
{
	struct llm_call *call = owner;

	answer(call, &call->exchange, false);
}

static void on_replayed(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	replayed(owner);
}

static void on_recalled(evutil_socket_t fd, short what, void *arg)
{
	struct llm_call *call = arg;
	const struct llm_recall *recall = call->request.recall;

	(void)fd;
	(void)what;
	answer(call, recall_exchange(recall), llm_recalled_paid(recall));
}

static void recall_start(struct llm_call *call)
{
	call->timer = evtimer_new(call->llm->base, on_recalled, call);
	loop_post(call->timer);
}

static void replay_start(struct llm_call *call)
{
	struct exchange *exchange = &call->exchange;
	int64_t delay, left = call->request.deadline - call->started;
	struct timeval wait;

	call->timer = evtimer_new(call->llm->base, on_replayed, call);
	exchange->order = -1;
	if (!recording_find(call->llm->recording, &call->request, exchange, &exchange->error))
		exchange->cost = 0;
	delay = exchange->delay_ms;
	if (delay > left) {
		exchange_done(exchange);
		exchange->order = -1;
		delay = left;
		error_set(&exchange->error, RLMD_ERROR_TIMEOUT,
			  "the time for the call was over before its replayed answer came");
	}
	wait = clock_timeval(delay);
	call->turn = (struct replay_turn){
		.number = exchange->order, .come = replayed, .owner = call};
	if (exchange->order >= 0 && !delay)
		replay_order_wait(recording_order(call->llm->recording), &call->turn);
	else if (delay > 0)
		event_add(call->timer, &wait);
	else
		loop_post(call->timer);
}

bool llm_call_known(struct llm_call *call)
{
	bool replays = recording_replays(call->llm->recording);

	if (replays)
		replay_start(call);
	else if (llm_recalled(call->request.recall))
		recall_start(call);
	return replays || llm_recalled(call->request.recall);
}

static void cancel_replayed(const struct llm_call *call, struct llm_usage *usage, int64_t *cost)
{
	if (call->exchange.cancelled) {
		*usage = call->exchange.usage;
		*cost = int64_max(call->exchange.cost, 0);
		return;
	}
	*usage = (struct llm_usage){.input = call_input_tokens(&call->request), .estimated = true};
	provider_cost(call->provider, call->request.model, usage, cost);
}

/* It was had, and is only not wanted any more. */
static void cancel_recalled(const struct exchange *exchange, struct llm_usage *usage, int64_t *cost)
{
	*usage = exchange->usage;
	*cost = int64_max(exchange->cost, 0);
}

bool llm_cancel_known(const struct llm_call *call, struct llm_usage *usage, int64_t *ret_cost)
{
	bool replays = recording_replays(call->llm->recording);

	if (replays)
		cancel_replayed(call, usage, ret_cost);
	else if (llm_recalled(call->request.recall))
		cancel_recalled(recall_exchange(call->request.recall), usage, ret_cost);
	return replays || llm_recalled(call->request.recall);
}

#include "llm/llm.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/number.h"
#include "llm/call.h"
#include "llm/exchange.h"
#include "llm/llm_private.h"
#include "llm/provider.h"
#include "llm/replay_order.h"
#include "llm/told.h"

/* For whatever had made a call unwanted to come again: half a second, and as many turns of the
 * loop, also where the machine stood still meanwhile. */
enum { PATIENCE_STEPS = 10, PATIENCE_STEP_MS = 50 };

const char *llm_kind_name(enum llm_kind kind)
{
	switch (kind) {
	case LLM_TURN:
		return "turn";
	case LLM_QUERY:
		return "llm_query";
	case LLM_FORCED:
		return "forced";
	case LLM_DIRECT:
		return "direct";
	}
	return "unknown";
}

void llm_usage_add(struct llm_usage *sum, const struct llm_usage *more)
{
	sum->input += more->input;
	sum->output += more->output;
	sum->cache_read += more->cache_read;
	sum->cache_write += more->cache_write;
	sum->cache_write_1h += more->cache_write_1h;
	sum->reasoning += more->reasoning;
	sum->estimated |= more->estimated;
}

/* What concerns all who use a provider concerns this one. */
static void take_notes(struct llm *llm)
{
	for (size_t i = 0; i < llm->choices.count; i++) {
		const json_t *note;
		size_t k;

		json_array_foreach (llm->choices.allowed[i]->notes, k, note)
			warnings_add(&llm->warnings, "%s", json_string_value(note));
	}
}

static bool llm_init(struct llm *llm, struct registry *registry, const struct llm_config *config,
		     struct rlmd_error *err)
{
	bool closed = config->replay_dir || config->offline;
	const struct rlmd_provider *own;

	warnings_init(&llm->warnings);
	if (!choices_init(&llm->choices, registry, config->provider, closed, err))
		return false;
	own = llm->choices.allowed[0];
	llm->model = xstrdup(config->model && *config->model ? config->model : own->default_model);
	if (!llm_allow(llm, config->model, err))
		return false;
	take_notes(llm);
	llm->recording = recording_new(llm->base, config->record_dir, config->replay_dir, err);
	return llm->recording && recalls_open(&llm->recalls, registry, config, err);
}

struct llm *llm_new(struct registry *registry, const struct llm_config *config,
		    struct rlmd_error *err)
{
	struct llm *llm = xcalloc(1, sizeof *llm);

	llm->base = registry_base(registry);
	if (llm_init(llm, registry, config, err))
		return llm;
	llm_free(llm);
	return NULL;
}

void llm_free(struct llm *llm)
{
	if (!llm)
		return;
	recalls_done(&llm->recalls);
	recording_free(llm->recording);
	choices_done(&llm->choices);
	warnings_done(&llm->warnings);
	free(llm->model);
	free(llm);
}

void llm_leave_journal(struct llm *llm)
{
	journal_close(llm->recalls.journal);
}

bool llm_allow(struct llm *llm, const char *model, struct rlmd_error *err)
{
	size_t before = llm->choices.count;

	if (!choices_allow(&llm->choices, model, err))
		return false;
	if (llm->choices.count > before)
		take_notes(llm);
	return true;
}

bool llm_replays(const struct llm *llm)
{
	return recording_replays(llm->recording);
}

bool llm_keeps(const struct llm *llm)
{
	return recording_keeps(llm->recording);
}

bool llm_knows_places(const struct llm *llm)
{
	return llm_keeps(llm) || llm->recalls.journal;
}

static const char *name_of(const struct llm *llm, const char *model)
{
	return model && *model ? model : llm->model;
}

struct choice llm_find(const struct llm *llm, const char *model)
{
	return choices_find(&llm->choices, name_of(llm, model));
}

void llm_connect(const struct llm *llm, const char *model)
{
	if (!llm_replays(llm) && !llm->recalls.cache && !llm->recalls.journal)
		provider_connect(llm_find(llm, model).provider);
}

/* The model is asked for by the provider's own name. */
static void take_request(struct llm_call *call, const struct llm_request *request)
{
	const char *named = name_of(call->llm, request->model);
	struct choice choice = choices_find(&call->llm->choices, named);

	call->request = *request;
	call->request.model = xstrdup(choice.model);
	call->request.named = xstrdup(named);
	call->provider = choice.provider;
}

static void llm_call_free(struct llm_call *call)
{
	if (call->timer)
		event_free(call->timer);
	replay_order_leave(&call->turn);
	journal_wait_no_more(&call->waiter);
	journal_forget(call->keep);
	exchange_done(&call->exchange);
	free((char *)call->request.model);
	free((char *)call->request.named);
	free(call->name);
	free(call);
}

/* With what the attempts before it had; of a replayed one there were none. */
static void log_failure(const struct llm_call *call, const struct llm_response *response,
			const struct rlmd_error *err)
{
	enum log_event event = err->kind == RLMD_ERROR_REPLAY ? LOG_REPLAY_MISSED
			       : response->broken_at          ? LOG_CALL_CUT
							      : LOG_CALL_FAILED;
	struct rlmd_log_field fields[] = {
		LOG_TEXT("provider", llm_provider(call->llm, call->request.model)),
		LOG_TEXT("model", call->request.model),
		LOG_NUMBER("attempt", response->attempts),
		LOG_TEXT("error", rlmd_error_name(err->kind)),
		LOG_NUMBER("http_status", err->http_status),
		LOG_NUMBER("bytes", (int64_t)response->broken_at),
		{.name = NULL},
	};

	if (!response->broken_at)
		fields[5].name = NULL;
	log_write(call->request.log, event, fields, "%s", err->text);
}

/* What a cache cannot take is only asked for again. */
static void keep(struct llm_call *call, const struct llm_response *response)
{
	struct rlmd_error err;

	if (call->request.recall && !recall_keep(call->request.recall, response, &err))
		warnings_add(&call->llm->warnings, "an answer is not kept: %s", err.text);
}

static void tell(struct llm_call *call, const struct llm_response *response,
		 const struct rlmd_error *err)
{
	call->fn(call->owner, response, err);
	llm_call_free(call);
}

static void on_kept(void *owner)
{
	struct llm_call *call = owner;
	const struct rlmd_error *err = &call->exchange.error;

	call->keep = NULL;
	tell(call, &call->response, err->kind ? err : NULL);
}

/* What is used is what the journal has: its words are those that another attempt will find. */
static void take_over(struct llm_call *call, const struct llm_response *response,
		      const struct rlmd_error *err)
{
	json_auto_t *entry = exchange_answer(response, err);
	struct llm_response kept;

	exchange_done(&call->exchange);
	exchange_read(entry, &call->exchange, NULL);
	kept = exchange_response(&call->exchange, &call->request);
	call->response = *response;
	call->response.text = kept.text;
	call->response.bytes = NULL;
	call->response.thinking = kept.thinking;
	call->response.model = kept.model;
	if (err)
		call->exchange.error = *err;
}

/* The answer, real or replayed or recalled, is there; what the job's journal has not, waits to be
 * kept. */
void llm_call_done(struct llm_call *call, const struct llm_response *given,
		   const struct rlmd_error *err)
{
	struct llm_response response = *given;
	struct rlmd_error unwritten;

	if (call->request.lowered && response.finish == LLM_FINISH_LENGTH && !response.overlong &&
	    !response.repeating)
		response.lowered = call->request.max_tokens;
	if (call->name && !recording_write(call->llm->recording, call->name, &call->request,
					   &response, false, err, &unwritten))
		warnings_add(&call->llm->warnings, "this call is not recorded: %s", unwritten.text);
	if (err)
		log_failure(call, &response, err);
	else
		keep(call, &response);
	call->keep = recall_journal(call->request.recall, &response, err, on_kept, call);
	if (call->keep)
		take_over(call, &response, err);
	else
		tell(call, &response, err);
}

static void on_call(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct llm_call *call = owner;

	call->call = NULL;
	llm_call_done(call, response, err);
}

static bool on_retry(void *owner, const struct llm_usage *so_far, int64_t cost_so_far)
{
	struct llm_call *call = owner;

	return !call->may_retry || call->may_retry(call->owner, so_far, cost_so_far);
}

static void on_wait(void *owner, const struct llm_wait *wait)
{
	struct llm_call *call = owner;

	if (call->request.on_wait)
		call->request.on_wait(call->owner, wait);
}

struct llm_recall *llm_recall(struct llm *llm, const struct llm_request *given, const char *asker)
{
	struct choice choice = llm_find(llm, given->model);
	struct llm_request request = *given;

	request.model = choice.model;
	request.named = name_of(llm, given->model);
	return recall_new(&llm->recalls, choice.provider, &request, asker);
}

void llm_forget(struct llm *llm, const char *asker)
{
	recalls_forget(&llm->recalls, asker);
}

static void send_now(struct llm_call *call)
{
	call->call = call_start(call->provider, &call->request, &call->llm->warnings, on_retry,
				on_wait, on_call, call);
}

static void on_told_kept(void *owner)
{
	send_now(owner);
}

/* Not before what code was told is in the journal: it is in what is sent. */
static void send_in_turn(struct llm_call *call)
{
	call->waiter = (struct journal_waiter){.go = on_told_kept, .owner = call};
	if (!call->llm->recalls.journal || !journal_wait(call->llm->recalls.journal, &call->waiter))
		send_now(call);
}

static void be_patient(struct llm_call *call)
{
	struct timeval step = clock_timeval(PATIENCE_STEP_MS);

	event_add(call->timer, &step);
}

static void on_patience(evutil_socket_t fd, short what, void *owner)
{
	struct llm_call *call = owner;

	(void)fd;
	(void)what;
	if (++call->patience < PATIENCE_STEPS)
		be_patient(call);
	else
		send_in_turn(call);
}

static void ask(struct llm_call *call)
{
	if (!recall_was_cancelled(call->request.recall)) {
		send_in_turn(call);
		return;
	}
	call->timer = evtimer_new(call->llm->base, on_patience, call);
	be_patient(call);
}

struct llm_call *llm_start(struct llm *llm, const struct llm_request *request, llm_done_fn *fn,
			   void *owner)
{
	struct llm_call *call = xcalloc(1, sizeof *call);

	call->llm = llm;
	call->fn = fn;
	call->may_retry = request->may_retry;
	call->owner = owner;
	call->started = clock_ms();
	take_request(call, request);
	recording_hide(llm->recording, call->provider->key);
	call->name = recording_name(llm->recording, &call->request);
	if (!llm_call_known(call))
		ask(call);
	return call;
}

void llm_go_on(struct llm_call *call)
{
	call_go_on(call->call);
}

/* Of one that was never sent there is nothing to pay. */
static void cancel_call(struct llm_call *call, struct llm_usage *usage, int64_t *cost)
{
	if (call->call) {
		call_cancel(call->call, usage, cost);
		recall_journal_cancelled(call->request.recall, &call->request, usage, *cost);
	}
	if (call->name)
		recording_cancel(call->llm->recording, call->name, &call->request, usage, *cost);
}

void llm_cancel(struct llm_call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	struct llm_usage usage = {0};
	int64_t cost = 0;

	if (call->keep) {
		usage = call->response.usage;
		cost = call->response.cost;
	} else if (!llm_cancel_known(call, &usage, &cost)) {
		cancel_call(call, &usage, &cost);
	}
	if (ret_usage)
		*ret_usage = usage;
	if (ret_cost)
		*ret_cost = cost;
	llm_call_free(call);
}

const char *llm_default_model(const struct llm *llm)
{
	return llm->model;
}

const char *llm_provider(const struct llm *llm, const char *model)
{
	return llm_find(llm, model).provider->name;
}

const char *llm_price_date(const struct llm *llm)
{
	const struct rlmd_price_table *shipped = llm->choices.allowed[0]->shipped;

	return shipped ? rlmd_price_table_date(shipped) : "unknown";
}

json_t *llm_take_warnings(struct llm *llm)
{
	return warnings_take(&llm->warnings);
}

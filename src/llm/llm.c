#include "llm/llm.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "llm/call.h"
#include "llm/choice.h"
#include "llm/exchange.h"
#include "llm/provider.h"
#include "llm/recall.h"
#include "llm/recording.h"
#include "llm/replay_order.h"
#include "llm/told.h"

enum {
	WINDOW_USUAL = 128000, /* of models in no table */
	WINDOW_LOCAL = 32768,  /* a local one gets no more than llm/ollama.c asks its server for */
	WINDOW_LOCAL_MAX = 131072,
};

struct llm {
	struct event_base *base;     /* lent */
	struct choices choices;      /* owned */
	struct recording *recording; /* owned */
	struct recalls recalls;      /* owned */
	struct warnings warnings;    /* owned */
	char *model;                 /* owned: of calls that name none */
};

struct llm_call {
	struct llm *llm;                /* lent */
	struct rlmd_provider *provider; /* lent */
	struct llm_request request;     /* its names and messages are owned */
	char *name;                     /* owned: of its recording; NULL: none */
	int64_t started;
	llm_done_fn *fn;
	llm_retry_fn *may_retry; /* NULL: always */
	void *owner;             /* lent */

	struct call *call;        /* owned; NULL in a replay, and where it is recalled */
	struct event *timer;      /* owned: when such an answer comes; NULL otherwise */
	struct exchange exchange; /* owned: the replayed answer */
	struct replay_turn turn;  /* when that comes, among the others of its recording */
};

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

bool llm_allow(struct llm *llm, const char *model, struct rlmd_error *err)
{
	size_t before = llm->choices.count;

	if (!choices_allow(&llm->choices, model, err))
		return false;
	if (llm->choices.count > before)
		take_notes(llm);
	return true;
}

void llm_told_name(struct llm *llm, struct rlmd_text asked, struct llm_told *ret)
{
	told_name(recording_told(llm->recording), asked, ret);
}

char *llm_told_find(struct llm *llm, const struct llm_told *name, size_t *ret_size)
{
	return told_find(recording_told(llm->recording), name, ret_size);
}

void llm_told_keep(struct llm *llm, const struct llm_told *name, struct rlmd_text words)
{
	told_keep(recording_told(llm->recording), name, words);
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
	return llm_keeps(llm);
}

static const char *name_of(const struct llm *llm, const char *model)
{
	return model && *model ? model : llm->model;
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

/* The answer, real or replayed or recalled, is there. */
static void llm_call_done(struct llm_call *call, const struct llm_response *response,
			  const struct rlmd_error *err)
{
	struct rlmd_error unwritten;

	if (call->name && !recording_write(call->llm->recording, call->name, &call->request,
					   response, false, err, &unwritten))
		warnings_add(&call->llm->warnings, "this call is not recorded: %s", unwritten.text);
	if (err)
		log_failure(call, response, err);
	else
		keep(call, response);
	call->fn(call->owner, response, err);
	llm_call_free(call);
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

static void replayed(void *owner)
{
	struct llm_call *call = owner;
	struct exchange *exchange = &call->exchange;
	struct llm_response response = {
		.text = text_from(exchange->text, exchange->text_size),
		.thinking = text_from(exchange->thinking, exchange->thinking_size),
		.finish = exchange->finish,
		.usage = exchange->usage,
		.attempts = 1,
		.billed = !exchange->cached,
		.cached = exchange->cached,
		.duration_ms = clock_ms() - call->started,
		.attempt_ms = clock_ms() - call->started,
		.model = exchange->model ? exchange->model : call->request.model,
		.number = exchange->numbered ? &exchange->number : NULL,
		.asked = text_from(exchange->asked, exchange->asked_size),
	};

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

static void on_replayed(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	replayed(owner);
}

static void on_recalled(evutil_socket_t fd, short what, void *arg)
{
	struct llm_call *call = arg;
	struct llm_response response = recall_response(call->request.recall);

	(void)fd;
	(void)what;
	response.duration_ms = clock_ms() - call->started;
	if (!response.model)
		response.model = call->request.model;
	if (call->request.on_delta)
		call->request.on_delta(call->request.delta_owner, response.text);
	llm_call_done(call, &response, NULL);
}

static void recall_start(struct llm_call *call)
{
	call->timer = evtimer_new(call->llm->base, on_recalled, call);
	loop_post(call->timer);
}

struct llm_recall *llm_recall(struct llm *llm, const struct llm_request *given, const char *asker)
{
	struct choice choice = choices_find(&llm->choices, name_of(llm, given->model));
	struct llm_request request = *given;

	request.model = choice.model;
	return recall_new(&llm->recalls, choice.provider, &request, asker);
}

void llm_forget(struct llm *llm, const char *asker)
{
	recalls_forget(&llm->recalls, asker);
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
	if (recording_replays(llm->recording))
		replay_start(call);
	else if (llm_recalled(call->request.recall))
		recall_start(call);
	else
		call->call = call_start(call->provider, &call->request, &llm->warnings, on_retry,
					on_wait, on_call, call);
	return call;
}

void llm_cancel(struct llm_call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	struct llm_usage usage = {0};
	int64_t cost = 0;

	if (call->call) {
		call_cancel(call->call, &usage, &cost);
		if (call->name)
			recording_cancel(call->llm->recording, call->name, &call->request, &usage,
					 cost);
	} else if (call->exchange.cancelled) {
		usage = call->exchange.usage;
		cost = call->exchange.cost > 0 ? call->exchange.cost : 0;
	} else if (!llm_recalled(call->request.recall)) {
		usage = (struct llm_usage){.input = call_input_tokens(&call->request),
					   .estimated = true};
		provider_cost(call->provider, call->request.model, &usage, &cost);
	}
	if (ret_usage)
		*ret_usage = usage;
	if (ret_cost)
		*ret_cost = cost;
	llm_call_free(call);
}

static struct choice find(const struct llm *llm, const char *model)
{
	return choices_find(&llm->choices, name_of(llm, model));
}

static struct price price_of(const struct llm *llm, const char *model)
{
	struct choice choice = find(llm, model);
	struct price price = {0};

	provider_price(choice.provider, choice.model, &price);
	return price;
}

bool llm_price(const struct llm *llm, const char *model, int64_t input_tokens,
	       int64_t output_tokens, int64_t *ret_cost)
{
	struct llm_usage fresh = {.input = input_tokens, .output = output_tokens};
	struct llm_usage written = fresh;
	struct choice choice = find(llm, model);
	struct price price;
	int64_t cost;

	*ret_cost = 0;
	if (choice.provider->free)
		return true;
	if (!provider_price(choice.provider, choice.model, &price))
		return false;
	/* A prompt may be written to a cache as a whole, at a higher price than its own or not. */
	cost = price_cost(&price, &fresh);
	written.cache_write = input_tokens;
	*ret_cost = price_cost(&price, &written);
	if (*ret_cost < cost)
		*ret_cost = cost;
	return true;
}

int64_t llm_window(const struct llm *llm, const char *model)
{
	const struct rlmd_provider *provider = find(llm, model).provider;
	bool local = provider->adapter && provider->adapter->local;
	struct price price = price_of(llm, model);

	if (provider->window)
		return provider->window;
	if (!price.context_window)
		return local ? WINDOW_LOCAL : WINDOW_USUAL;
	if (local && price.context_window > WINDOW_LOCAL_MAX)
		return WINDOW_LOCAL_MAX;
	return price.context_window;
}

int64_t llm_max_output(const struct llm *llm, const char *model)
{
	struct price price = price_of(llm, model);

	return price.max_output ? price.max_output : INT64_MAX;
}

void llm_warn_unpriced(struct llm *llm, const char *model)
{
	provider_warn_unpriced(model, &llm->warnings);
}

const char *llm_default_model(const struct llm *llm)
{
	return llm->model;
}

const char *llm_provider(const struct llm *llm, const char *model)
{
	return find(llm, model).provider->name;
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

#include "llm/llm.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/timer.h"
#include "llm/call.h"
#include "llm/model_names.h"
#include "llm/price.h"
#include "llm/provider.h"

enum {
	/* For the reason why a call was cancelled to come again: half a second, and as many turns
	 * of the loop, also where the machine stood still meanwhile. */
	PATIENCE_STEPS = 10,
	PATIENCE_STEP_MS = 50,
	WINDOW_USUAL = 128000, /* of models in no table */
	WINDOW_LOCAL = 32768,  /* a local one gets no more than llm/ollama.c asks its server for */
	WINDOW_LOCAL_MAX = 131072,
};

struct llm {
	struct event_base *base;      /* lent */
	struct model_names names;     /* owned */
	struct kept kept;             /* owned */
	struct llm_warnings warnings; /* owned */
	char *model;                  /* owned: of calls that name none */
	const struct rlmd_job *job;   /* lent; or NULL */
	char *tenant;                 /* owned; or NULL */
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

	struct call *call;   /* owned, with its answer; NULL before it, and where nobody is asked */
	struct timer *timer; /* owned: when a known answer comes; or a call that waits begins */
	const struct exchange *known; /* lent: the answer for which nobody is asked; or NULL */
	struct exchange exchange; /* owned: the replayed answer, or the one that the journal has */
	struct recording_turn turn;   /* when that comes, among the others of its recording */
	int patience;                 /* steps of it that are over */
	struct journal_waiter waiter; /* before it is sent */
	struct kept_writing *writing; /* owned: of the answer, which waits for that; or NULL */
	struct llm_response response; /* that waits, ... */
	struct rlmd_error error;      /* ... and why it is none */
};

/* A provider's notes concern everyone who uses it. */
static void take_notes(struct llm *llm)
{
	for (size_t i = 0; i < llm->names.count; i++) {
		const struct rlmd_provider *provider = llm->names.allowed[i];
		const json_t *note;
		size_t k;

		if (provider->withheld && !llm->names.closed)
			request_warn(&llm->warnings, "%s", provider->withheld);
		json_array_foreach (provider->notes, k, note)
			request_warn(&llm->warnings, "%s", json_string_value(note));
	}
}

static bool llm_init(struct llm *llm, struct registry *registry, const struct llm_config *config,
		     struct rlmd_error *err)
{
	bool closed = config->replay_dir || config->offline;
	const struct rlmd_provider *own;

	if (!model_names_init(&llm->names, registry, config->provider, closed, err))
		return false;
	own = llm->names.allowed[0];
	llm->model = xstrdup(config->model && *config->model ? config->model : own->default_model);
	if (!llm_allow(llm, config->model, err))
		return false;
	take_notes(llm);
	return kept_open(&llm->kept, registry, config, err);
}

struct llm *llm_new(struct registry *registry, const struct llm_config *config,
		    struct rlmd_error *err)
{
	struct llm *llm = xcalloc(1, sizeof *llm);

	llm->base = registry_base(registry);
	llm->job = config->job;
	llm->tenant = xstrdup(config->tenant);
	if (llm_init(llm, registry, config, err))
		return llm;
	llm_free(llm);
	return NULL;
}

void llm_free(struct llm *llm)
{
	if (!llm)
		return;
	kept_done(&llm->kept);
	model_names_done(&llm->names);
	json_decref(llm->warnings.all);
	free(llm->model);
	free(llm->tenant);
	free(llm);
}

void llm_leave_journal(struct llm *llm)
{
	journal_close(llm->kept.journal);
}

bool llm_allow(struct llm *llm, const char *model, struct rlmd_error *err)
{
	size_t before = llm->names.count;

	if (!model_names_allow(&llm->names, model, err))
		return false;
	if (llm->names.count > before)
		take_notes(llm);
	return true;
}

bool llm_replays(const struct llm *llm)
{
	return kept_replays(&llm->kept);
}

bool llm_keeps(const struct llm *llm)
{
	return llm->kept.recording;
}

bool llm_knows_positions(const struct llm *llm)
{
	return llm_keeps(llm) || llm->kept.journal;
}

struct kept *llm_kept(struct llm *llm)
{
	return &llm->kept;
}

static const char *name_of(const struct llm *llm, const char *model)
{
	return model && *model ? model : llm->model;
}

/* The provider and its model that a name means; empty: the model of calls that name none. */
static struct model_name llm_find(const struct llm *llm, const char *model)
{
	return model_names_find(&llm->names, name_of(llm, model));
}

void llm_connect(const struct llm *llm, const char *model)
{
	struct rlmd_provider *provider = llm_find(llm, model).provider;

	if (llm_replays(llm) || llm->kept.cache || llm->kept.journal)
		return;
	provider_connect(provider);
	provider_ask_rooms(provider);
}

/* The model is asked for by the provider's own name. */
static void take_request(struct llm_call *call, const struct llm_request *request)
{
	const char *named = name_of(call->llm, request->model);
	struct model_name found = model_names_find(&call->llm->names, named);

	call->request = *request;
	call->request.model = xstrdup(found.model);
	call->request.named = xstrdup(named);
	call->request.job = call->llm->job;
	call->request.tenant = call->llm->tenant;
	call->provider = found.provider;
}

static void llm_call_free(struct llm_call *call)
{
	timer_free(call->timer);
	recording_leave(&call->turn);
	journal_wait_no_more(&call->waiter);
	kept_writing_free(call->writing);
	call_free(call->call);
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

/* NULL: the response is an answer. */
static const struct rlmd_error *failure_of(const struct llm_call *call)
{
	return call->error.kind ? &call->error : NULL;
}

static void tell(struct llm_call *call)
{
	call->fn(call->owner, &call->response, failure_of(call));
	llm_call_free(call);
}

/* Uses the answer as the journal has it, as another attempt will find those words. */
static void take_over(struct llm_call *call)
{
	json_auto_t *entry = exchange_answer(&call->response, failure_of(call));
	struct llm_response kept;

	exchange_done(&call->exchange);
	exchange_read(entry, &call->exchange, NULL);
	kept = exchange_response(&call->exchange, &call->request);
	call->response.text = kept.text;
	call->response.bytes = NULL;
	call->response.thinking = kept.thinking;
	call->response.model = kept.model;
}

static void on_kept(void *owner)
{
	struct llm_call *call = owner;

	call->writing = NULL;
	if (call->llm->kept.journal)
		take_over(call);
	tell(call);
}

/* The answer, real or known, is there; it waits until it is kept. */
static void on_answer(void *owner, const struct llm_response *given, const struct rlmd_error *err)
{
	struct llm_call *call = owner;
	struct llm_response *response = &call->response;

	*response = *given;
	if (call->request.lowered && response->finish == LLM_FINISH_LENGTH && !response->overlong &&
	    !response->repeating)
		response->lowered = call->request.max_tokens;
	if (err) {
		call->error = *err;
		log_failure(call, response, err);
	}
	call->writing = kept_keep(&call->llm->kept, call->name, &call->request, response,
				  failure_of(call), &call->llm->warnings, on_kept, call);
	if (!call->writing)
		tell(call);
}

/* --- answers for which nobody is asked ----------------------------------------------------- */

/* As if it came now. */
static void answer(void *owner)
{
	struct llm_call *call = owner;
	const struct exchange *exchange = call->known;
	struct llm_response response = exchange_response(exchange, &call->request);
	int64_t now = clock_ms();

	response.journaled = kept_is_paid(call->request.lookup);
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
	on_answer(call, &response, exchange->error.kind ? &exchange->error : NULL);
}

static void on_known(void *owner)
{
	answer(owner);
}

static void replay_start(struct llm_call *call)
{
	struct recording *recording = call->llm->kept.recording;
	struct exchange *exchange = &call->exchange;
	int64_t delay, left = call->request.deadline - call->started;

	exchange->order = -1;
	if (!recording_find(recording, call->name, &call->request, exchange, &exchange->error))
		exchange->cost = 0;
	delay = exchange->delay_ms;
	if (delay > left) {
		exchange_done(exchange);
		exchange->order = -1;
		delay = left;
		error_set(&exchange->error, RLMD_ERROR_TIMEOUT,
			  "the time for the call was over before its replayed answer came");
	}
	call->turn = (struct recording_turn){
		.order = exchange->order, .come = answer, .owner = call};
	if (exchange->order >= 0 && !delay)
		recording_wait(recording, &call->turn);
	else if (delay > 0)
		timer_start(call->timer, delay);
	else
		timer_post(call->timer);
}

/* False: a provider is to be asked. */
static bool start_known(struct llm_call *call)
{
	bool replays = kept_replays(&call->llm->kept);

	if (!replays && !kept_is_found(call->request.lookup))
		return false;
	call->timer = timer_new(call->llm->base, on_known, call);
	call->known = replays ? &call->exchange : kept_exchange(call->request.lookup);
	if (replays)
		replay_start(call);
	else
		timer_post(call->timer);
	return true;
}

/* The answer was had, and is only not wanted any more. */
static void cancel_known(const struct llm_call *call, struct llm_usage *usage, int64_t *cost)
{
	const struct exchange *known = call->known;

	if (!kept_replays(&call->llm->kept) || known->cancelled) {
		*usage = known->usage;
		*cost = int64_max(known->cost, 0);
		return;
	}
	*usage = (struct llm_usage){.input = call_input_tokens(&call->request), .estimated = true};
	provider_cost(call->provider, call->request.model, usage, cost);
}

/* --- asking --------------------------------------------------------------------------------- */

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

struct kept_lookup *llm_look_up(struct llm *llm, const struct llm_request *given, const char *asker)
{
	struct model_name found = llm_find(llm, given->model);
	struct llm_request request = *given;

	request.model = found.model;
	request.named = name_of(llm, given->model);
	return kept_look(&llm->kept, found.provider, &request, asker);
}

void llm_forget(struct llm *llm, const char *asker)
{
	kept_forget(&llm->kept, asker);
}

static void send_now(struct llm_call *call)
{
	call->call = call_start(call->provider, &call->request, &call->llm->warnings, on_retry,
				on_wait, on_answer, call);
}

static void on_values_kept(void *owner)
{
	send_now(owner);
}

/* Not before the journal has the values that code got: they are in the request. */
static void send_in_turn(struct llm_call *call)
{
	call->waiter = (struct journal_waiter){.go = on_values_kept, .owner = call};
	if (!call->llm->kept.journal || !journal_wait(call->llm->kept.journal, &call->waiter))
		send_now(call);
}

static void be_patient(struct llm_call *call)
{
	timer_start(call->timer, PATIENCE_STEP_MS);
}

static void on_patience(void *owner)
{
	struct llm_call *call = owner;

	if (++call->patience < PATIENCE_STEPS)
		be_patient(call);
	else
		send_in_turn(call);
}

static void ask(struct llm_call *call)
{
	if (!kept_was_cancelled(call->request.lookup)) {
		send_in_turn(call);
		return;
	}
	call->timer = timer_new(call->llm->base, on_patience, call);
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
	key_list_add(&llm->kept.keys, call->provider->key);
	call->name = kept_name(&llm->kept, &call->request);
	if (!start_known(call))
		ask(call);
	return call;
}

void llm_go_on(struct llm_call *call)
{
	call_go_on(call->call);
}

static void keep_cancelled(struct llm_call *call, const struct llm_usage *usage, int64_t cost,
			   bool sent)
{
	kept_keep_cancelled(&call->llm->kept, call->name, &call->request, usage, cost, sent);
}

/* Of one that was never sent there is nothing to pay. */
static void cancel_call(struct llm_call *call, struct llm_usage *usage, int64_t *cost)
{
	bool sent = call->call;

	if (sent)
		call_cancel(take_pointer(&call->call), usage, cost);
	keep_cancelled(call, usage, *cost, sent);
}

/* Its answer is there, and nobody has seen it. */
static void cancel_writing(struct llm_call *call, struct llm_usage *usage, int64_t *cost)
{
	*usage = call->response.usage;
	*cost = call->response.cost;
	if (call->known || kept_is_journaled(call->writing))
		return;
	kept_writing_free(take_pointer(&call->writing));
	keep_cancelled(call, usage, *cost, true);
}

void llm_cancel(struct llm_call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	struct llm_usage usage = {0};
	int64_t cost = 0;

	if (call->writing)
		cancel_writing(call, &usage, &cost);
	else if (call->known)
		cancel_known(call, &usage, &cost);
	else
		cancel_call(call, &usage, &cost);
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

/* --- prices, and the sizes of windows ------------------------------------------------------ */

const char *llm_price_date(const struct llm *llm)
{
	const struct rlmd_price_table *shipped = llm->names.allowed[0]->shipped;

	return shipped ? rlmd_price_table_date(shipped) : "unknown";
}

static struct price price_of(const struct llm *llm, const char *model)
{
	struct model_name found = llm_find(llm, model);
	struct price price = {0};

	provider_price(found.provider, found.model, &price);
	return price;
}

bool llm_price(const struct llm *llm, const char *model, int64_t input_tokens,
	       int64_t output_tokens, int64_t *ret_cost)
{
	struct llm_usage fresh = {.input = input_tokens, .output = output_tokens};
	struct llm_usage written = fresh;
	struct model_name found = llm_find(llm, model);
	struct price price;
	int64_t cost;

	*ret_cost = 0;
	if (found.provider->free)
		return true;
	if (!provider_price(found.provider, found.model, &price))
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
	const struct rlmd_provider *provider = llm_find(llm, model).provider;
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

struct room llm_room(const struct llm *llm, const char *model)
{
	struct model_name found = llm_find(llm, model);

	return provider_room(found.provider, found.model);
}

void llm_warn_unpriced(struct llm *llm, const char *model)
{
	provider_warn_unpriced(model, &llm->warnings);
}

json_t *llm_take_warnings(struct llm *llm)
{
	return request_take_warnings(&llm->warnings);
}

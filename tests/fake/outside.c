#include "fake/outside.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pool/worker.h"

const char *(*fake_model)(const struct llm_request *);
size_t fake_calls, fake_workers, fake_events, fake_death;

struct llm_call {
	struct event *event;
	struct llm_request request;
	llm_done_fn *done;
	void *owner;
};

static void on_call(evutil_socket_t fd, short what, void *owner)
{
	struct llm_call *call = owner;
	llm_done_fn *done = call->done;
	void *above = call->owner;
	const char *text = fake_model(&call->request);
	struct llm_response response = {
		.text = text_of(text ? text : ""),
		.usage = {.input = 10, .output = 5},
		.cost_known = true,
		.cost = 1000,
		.duration_ms = 1,
	};
	struct error err = {.kind = ERROR_OVERLOADED, .text = "the fake is overloaded"};

	(void)fd;
	(void)what;
	fake_events++;
	event_base_loopbreak(event_get_base(call->event));
	llm_cancel(call, NULL, NULL);
	done(above, &response, text ? NULL : &err);
}

struct llm_call *llm_start(struct llm *llm, const struct llm_request *request, llm_done_fn *done,
			   void *owner)
{
	struct llm_call *call = xcalloc(1, sizeof *call);

	*call = (struct llm_call){.request = *request, .done = done, .owner = owner};
	call->event = event_new((struct event_base *)llm, -1, 0, on_call, call);
	event_active(call->event, EV_TIMEOUT, 1);
	fake_calls++;
	return call;
}

void llm_cancel(struct llm_call *call, struct llm_usage *ret_usage, int64_t *ret_cost)
{
	if (ret_usage)
		*ret_usage = (struct llm_usage){.input = 10, .estimated = true};
	if (ret_cost)
		*ret_cost = 500;
	event_free(call->event);
	free(call);
	fake_calls--;
}

bool llm_price(const struct llm *llm, const char *model, int64_t input_tokens,
	       int64_t output_tokens, int64_t *ret_cost)
{
	(void)llm;
	(void)model;
	*ret_cost = input_tokens + output_tokens;
	return true;
}

const char *llm_default_model(const struct llm *llm)
{
	(void)llm;
	return "fake";
}

const char *llm_provider(const struct llm *llm)
{
	(void)llm;
	return "fake";
}

const char *llm_price_date(const struct llm *llm)
{
	(void)llm;
	return "2026-01-01";
}

json_t *llm_take_warnings(struct llm *llm)
{
	(void)llm;
	return json_array();
}

const char *llm_kind_name(enum llm_kind kind)
{
	static const char *const names[] = {"turn", "llm_query", "forced", "direct"};

	return names[kind];
}

json_t *sandbox_report(const struct sandbox *sandbox)
{
	(void)sandbox;
	return json_object();
}

struct worker {
	struct event_base *base;
	struct event *event;
	worker_event_fn *fn;
	void *owner;
	enum worker_event_kind next;
	int open; /* calls without an answer */
	bool asks, final;
};

static void post(struct worker *worker, enum worker_event_kind kind)
{
	worker->next = kind;
	event_active(worker->event, EV_TIMEOUT, 1);
}

static void make_calls(struct worker *worker)
{
	static const struct text texts[] = {{"one", 3}, {"two", 3}};
	struct memfile *const contexts[2] = {NULL, NULL};
	struct worker_call call = {.count = 2, .texts = texts, .id = 1};
	struct worker_event event = {.kind = WORKER_CALL, .call = &call};

	worker->asks = false;
	worker->open = 2;
	worker->fn(worker->owner, &event);
	call.kind = WORKER_RLM_QUERY;
	call.contexts = contexts;
	call.id = 2;
	worker->fn(worker->owner, &event);
}

static void on_worker(evutil_socket_t fd, short what, void *owner)
{
	struct worker *worker = owner;
	struct error gone = {.kind = ERROR_WORKER, .text = "the fake died"};
	struct worker_block block = {
		.stdout_text = {"out", 3},
		.final = worker->final ? "final_direct" : NULL,
		.answer = text_of("from code"),
	};
	struct worker_event event = {.kind = worker->next, .block = &block, .error = &gone};

	(void)fd;
	(void)what;
	event_base_loopbreak(worker->base);
	if (++fake_events == fake_death)
		event.kind = WORKER_GONE;
	else if (worker->asks) {
		make_calls(worker);
		return;
	}
	event.found = event.kind == WORKER_VALUE;
	event.value = event.variables = text_of("a value");
	worker->fn(worker->owner, &event);
}

struct worker *worker_start(struct event_base *base, struct sandbox *sandbox,
			    const struct worker_options *options, worker_event_fn *fn, void *owner)
{
	struct worker *worker = xcalloc(1, sizeof *worker);

	(void)sandbox;
	(void)options;
	*worker = (struct worker){.base = base, .fn = fn, .owner = owner};
	worker->event = event_new(base, -1, 0, on_worker, worker);
	fake_workers++;
	post(worker, WORKER_READY);
	return worker;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	event_free(worker->event);
	free(worker);
	fake_workers--;
}

void worker_exec(struct worker *worker, int64_t block, struct text code, int64_t timeout_ms)
{
	(void)block;
	(void)timeout_ms;
	worker->asks = text_starts(code, "ask");
	worker->final = text_starts(code, "final");
	if (!text_starts(code, "hang"))
		post(worker, WORKER_DONE);
}

void worker_get(struct worker *worker, const char *name, int64_t timeout_ms)
{
	(void)name;
	(void)timeout_ms;
	post(worker, WORKER_VALUE);
}

void worker_reply(struct worker *worker, int64_t id, const struct worker_slot *slots, size_t count)
{
	(void)id;
	(void)slots;
	(void)count;
	if (!--worker->open)
		post(worker, WORKER_DONE);
}

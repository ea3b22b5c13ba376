#include "fake/outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "pool/worker.h"

size_t fake_workers, fake_workers_most, fake_computing_most, fake_death;

static size_t computing;
char fake_told[4096];
const char *fake_missing;

json_t *sandbox_report(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return json_object();
}

static char somewhere; /* nothing is known of it but its address */
struct rlmd_sandbox *const fake_outside_sandbox = (struct rlmd_sandbox *)&somewhere;

void sandbox_free(struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
}

struct rlmd_sandbox *sandbox_begin(struct event_base *base, const struct sandbox_config *config,
				   struct rlmd_error *err)
{
	(void)base;
	(void)config;
	error_set(err, RLMD_ERROR_SANDBOX, "there is but the fake one");
	return NULL;
}

bool sandbox_await(struct rlmd_sandbox *sandbox, struct rlmd_error *err)
{
	(void)sandbox;
	(void)err;
	return true;
}

void sandbox_cut(struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
}

void sandbox_on_ready(struct rlmd_sandbox *sandbox, rlmd_sandbox_ready_fn *fn, void *owner)
{
	(void)sandbox;
	(void)fn;
	(void)owner;
}

const char *const *sandbox_preload(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return NULL;
}

const char *sandbox_python_version(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return NULL;
}

const char *rlmd_sandbox_level(const struct rlmd_sandbox *sandbox)
{
	(void)sandbox;
	return "L1";
}

struct worker {
	struct event_base *base;
	struct event *event;
	worker_event_fn *fn;
	void *owner;
	enum worker_event_kind next;
	int open;              /* calls without an answer */
	size_t asks, fans;     /* results of the calls that the block makes */
	struct rlmd_text plan; /* lent by the run; empty: none */
	bool final;
	bool calls; /* a function */
	bool late;  /* calls where a value is asked for, */
	bool due;   /* which it is now */
	bool computes;
	bool found; /* the variable that was asked for */
};

/* While it starts, and from an order of ours to its end, but for the time it waits for calls. */
static void compute(struct worker *worker, bool computes)
{
	if (computes && !worker->computes && ++computing > fake_computing_most)
		fake_computing_most = computing;
	if (!computes && worker->computes)
		computing--;
	worker->computes = computes;
}

static void post(struct worker *worker, enum worker_event_kind kind)
{
	compute(worker, true);
	worker->next = kind;
	loop_post(worker->event);
}

static void call(struct worker *worker, enum worker_call_kind kind, size_t count)
{
	static const struct rlmd_text texts[8] = {{"one", 3},   {"two", 3},  {"three", 5},
						  {"four", 4},  {"five", 4}, {"six", 3},
						  {"seven", 5}, {"eight", 5}};
	struct memfile *const contexts[8] = {NULL};
	struct worker_call call = {.kind = kind,
				   .id = ++worker->open,
				   .count = count,
				   .texts = texts,
				   .text_count = count,
				   .temperature = -1,
				   .contexts = kind == WORKER_RLM_QUERY ? contexts : NULL};

	compute(worker, false);
	worker->fn(worker->owner, &(struct worker_event){.kind = WORKER_CALL, .call = &call});
}

static void call_plan(struct worker *worker)
{
	struct worker_call call = {
		.kind = WORKER_RUN_PLAN, .id = ++worker->open, .count = 1, .texts = &worker->plan};

	compute(worker, false);
	worker->fn(worker->owner, &(struct worker_event){.kind = WORKER_CALL, .call = &call});
}

static void call_function(struct worker *worker)
{
	static const struct rlmd_text arguments = {"{\"key\":\"x\"}", 11};
	struct worker_call call = {.kind = WORKER_FUNCTION,
				   .id = ++worker->open,
				   .count = 1,
				   .texts = &arguments,
				   .text_count = 1,
				   .function = "lookup"};

	compute(worker, false);
	worker->fn(worker->owner, &(struct worker_event){.kind = WORKER_CALL, .call = &call});
}

static void make_calls(struct worker *worker)
{
	bool plan = worker->plan.size;
	size_t asks = worker->asks, fans = worker->fans;

	worker->asks = worker->fans = 0;
	if (asks) {
		call(worker, WORKER_LLM_QUERY, asks);
		call(worker, WORKER_RLM_QUERY, asks);
	}
	if (fans)
		call(worker, WORKER_RLM_QUERY, fans);
	if (plan)
		call_plan(worker);
	if (worker->calls)
		call_function(worker);
	worker->calls = false;
	worker->plan.size = 0;
}

static void on_worker(evutil_socket_t fd, short what, void *owner)
{
	struct worker *worker = owner;
	struct rlmd_error gone = {.kind = RLMD_ERROR_WORKER, .text = "the fake died"};
	struct worker_block block = {
		.stdout_text = {"out", 3},
		.final = worker->final ? ANSWER_FINAL_DIRECT : ANSWER_MISSING,
		.answer = text_of("from code"),
		.missing = fake_missing,
	};
	struct worker_event event = {.kind = worker->next, .block = &block, .error = &gone};

	(void)fd;
	(void)what;
	event_base_loopbreak(worker->base);
	if (++fake_events == fake_death)
		event.kind = WORKER_GONE;
	else if (worker->due) {
		worker->due = false;
		call(worker, WORKER_LLM_QUERY, 1); /* of which it may be killed */
		return;
	} else if (worker->asks || worker->fans || worker->plan.size || worker->calls) {
		make_calls(worker);
		return;
	}
	compute(worker, false);
	event.found = event.kind == WORKER_VALUE && worker->found;
	event.value = event.variables = text_of("a value");
	worker->fn(worker->owner, &event);
}

struct worker *worker_start(struct event_base *base, struct rlmd_sandbox *sandbox,
			    const struct worker_options *options, worker_event_fn *fn, void *owner)
{
	struct worker *worker = xcalloc(1, sizeof *worker);

	(void)sandbox;
	(void)options;
	*worker = (struct worker){.base = base, .fn = fn, .owner = owner};
	worker->event = event_new(base, -1, 0, on_worker, worker);
	if (++fake_workers > fake_workers_most)
		fake_workers_most = fake_workers;
	post(worker, WORKER_READY);
	return worker;
}

void worker_interrupt(struct worker *worker)
{
	(void)worker;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	compute(worker, false);
	event_free(worker->event);
	free(worker);
	fake_workers--;
}

void worker_exec(struct worker *worker, int64_t block, struct rlmd_text code, int64_t timeout_ms)
{
	(void)block;
	(void)timeout_ms;
	worker->asks = text_starts(code, "ask") ? 2 : 0;
	worker->fans = text_starts(code, "fan") ? 8 : 0;
	worker->plan = text_starts(code, "plan") ? text_from(code.bytes + 4, code.size - 4)
						 : text_of("");
	worker->calls = text_starts(code, "function");
	worker->final = text_starts(code, "final");
	worker->late = text_starts(code, "late");
	compute(worker, true);
	if (!text_starts(code, "hang"))
		post(worker, WORKER_DONE);
}

void worker_get(struct worker *worker, const char *name, int64_t timeout_ms)
{
	(void)timeout_ms;
	worker->found = !strcmp(name, "x"); /* the only variable that there is */
	worker->due = worker->late;
	post(worker, WORKER_VALUE);
}

void worker_reply(struct worker *worker, int64_t id, const struct worker_result *results,
		  size_t count)
{
	size_t size = 0;

	(void)id;
	fake_told[0] = '\0';
	for (size_t i = 0; i < count && size < sizeof fake_told; i++)
		size += (size_t)snprintf(fake_told + size, sizeof fake_told - size, "%s%.*s%s%s%s|",
					 results[i].failed ? "!" : "", (int)results[i].value.size,
					 results[i].value.bytes, results[i].degraded ? "[" : "",
					 results[i].degraded ? results[i].degraded : "",
					 results[i].degraded ? "]" : "");
	if (!--worker->open)
		post(worker, WORKER_DONE);
}

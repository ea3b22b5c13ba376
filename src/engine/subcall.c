#include "engine/subcall.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/memfile.h"
#include "base/money.h"
#include "budget/budget.h"
#include "engine/batch.h"
#include "engine/caller.h"
#include "engine/function_call.h"
#include "engine/function_set.h"
#include "engine/job.h"
#include "engine/operation_set.h"
#include "engine/run.h"
#include "pool/worker.h"
#include "trace/record.h"

/* Of a plan that code orders: 32 MiB once they are read. 10,000 operations with 100,000
 * dependencies have fewer. */
enum { PLAN_VALUES_MAX = 250000 };

/* That one worker's code has under way: each may hold its values and as much of inputs. */
enum { PLANS_MAX = 16 };

struct subcall {
	struct subcall_list *list; /* lent: where we stand; the caller owns it */
	struct caller *caller;     /* lent */
	struct worker *worker;     /* lent: the list is emptied before it goes */
	struct event *posted;      /* owned: answers from the loop */
	int64_t id;
	struct operation_set set;
	struct batch batch;          /* a plan brings its own operations */
	struct rlmd_plan_file *file; /* owned: where the call is a plan; or NULL */
	char *asked;                 /* owned: its JSON, where exchanges are kept; or NULL */
	size_t asked_size;
	bool open;  /* operations are under way, for which the caller waits */
	char *word; /* owned: the whole answer, where it is one of ours */
	size_t word_size;
	bool failed; /* it says why there is none, in a way of this kind */
	enum rlmd_error_kind kind;
	struct rlmd_function_call *function; /* owned, until it has answered; or NULL */
	const char *name;                    /* lent: the function's */
	struct llm_told told;                /* what the word is kept as */
	int64_t started;                     /* likewise, on clock_ms() */
	TAILQ_ENTRY(subcall) entry;
};

static void subcall_free(struct subcall *subcall)
{
	TAILQ_REMOVE(subcall->list, subcall, entry);
	operation_set_done(&subcall->set);
	function_call_cancel(subcall->function);
	if (subcall->open)
		run_wait_over(subcall->caller->run);
	rlmd_plan_file_free(subcall->file);
	free(subcall->asked);
	batch_done(&subcall->batch);
	event_free(subcall->posted);
	free(subcall->word);
	free(subcall);
}

void subcalls_free(struct subcall_list *list)
{
	struct subcall *subcall;

	while ((subcall = TAILQ_FIRST(list)))
		subcall_free(subcall);
}

static void answer_slots(struct subcall *subcall)
{
	size_t count = subcall->set.count;
	auto_free struct worker_slot *slots = xcalloc(count, sizeof *slots);

	for (size_t i = 0; i < count; i++) {
		struct operation *operation = &subcall->set.all[i];

		slots[i].failed = operation->failed;
		slots[i].kind = operation->error;
		slots[i].value = text_from(operation->value, operation->value_size);
		slots[i].owned = &operation->value;
		slots[i].message = operation->value;
		slots[i].degraded = operation->degraded;
	}
	worker_reply(subcall->worker, subcall->id, slots, count);
}

static void subcall_answer(struct subcall *subcall)
{
	struct worker_slot word = {
		.failed = subcall->failed,
		.kind = subcall->kind,
		.value = text_from(subcall->word, subcall->word_size),
		.message = subcall->word,
	};

	if (subcall->word)
		worker_reply(subcall->worker, subcall->id, &word, 1);
	else
		answer_slots(subcall);
	subcall_free(subcall);
}

/* C1: even an answer that is known at once comes from the loop. */
static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	subcall_answer(owner);
}

static void post(struct subcall *subcall)
{
	loop_post(subcall->posted);
}

void subcalls_reply(struct subcall_list *list)
{
	struct subcall *subcall;

	TAILQ_FOREACH (subcall, list, entry)
		if (!subcall->open)
			post(subcall);
}

static void subcall_open(struct subcall *subcall)
{
	subcall->open = true;
	run_wait(subcall->caller->run);
}

/* Who hears of it goes on to compute, with a permit of its own. */
static void subcall_end(struct subcall *subcall)
{
	subcall->open = false;
	operation_set_settle(&subcall->set);
	if (run_wait_over(subcall->caller->run))
		subcall_answer(subcall);
}

/* What a clock or the host has a part in is known by who asks for it, after which request. */
static void name_told(struct subcall *subcall, const char *what, struct rlmd_text asked)
{
	const struct caller *caller = subcall->caller;
	auto_evbuffer struct evbuffer *key = evbuffer_new();

	evbuffer_add_printf(key, "%s %s %s ", caller->path, run_asked(caller->run), what);
	evbuffer_add(key, asked.bytes, asked.size);
	llm_told_name(caller->job->llm, text_in(key), &subcall->told);
}

/* The answer is JSON of ours. How long things took is in it, so it is kept: the same request, asked
 * the same the next time, is told the same, and goes on as it did. */
static void say(struct subcall *subcall, json_t *object, const char *function,
		struct rlmd_text asked)
{
	struct llm *llm = subcall->caller->job->llm;
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	char *before;

	json_write(object, false, out);
	json_decref(object);
	subcall->word = text_drain(out, &subcall->word_size);
	if (!llm_knows_places(llm))
		return;
	name_told(subcall, function, asked);
	before = llm_told_find(llm, &subcall->told, &subcall->word_size);
	if (before) {
		free(subcall->word);
		subcall->word = before;
	}
	llm_told_keep(llm, &subcall->told, text_from(subcall->word, subcall->word_size), before);
}

static void on_batch(void *owner, const struct rlmd_plan_summary *summary)
{
	(void)summary;
	subcall_end(owner);
}

static void on_plan(void *owner, const struct rlmd_plan_summary *summary)
{
	struct subcall *subcall = owner;

	(void)summary;
	say(subcall, operation_set_report(&subcall->set), "run_plan",
	    text_from(subcall->asked, subcall->asked_size));
	subcall_end(subcall);
}

/* Operations are seen in the trace as the calls and runs that they are. */
static void on_plan_event(void *owner, const struct rlmd_plan_event *event)
{
	struct subcall *subcall = owner;

	if (event->kind == RLMD_PLAN_EVENT_START || event->kind == RLMD_PLAN_EVENT_WINNER ||
	    event->kind == RLMD_PLAN_EVENT_END)
		record_plan(subcall->caller->job->trace, subcall->caller->id, event);
}

static void fail(struct subcall *subcall, enum rlmd_error_kind kind, const char *why)
{
	subcall->failed = true;
	subcall->kind = kind;
	subcall->word = xstrdup(why);
	subcall->word_size = strlen(why);
}

static void tell_error(struct subcall *subcall, const struct rlmd_plan_error *err)
{
	fail(subcall, RLMD_ERROR_INPUT, err->text);
	post(subcall);
}

static struct rlmd_execution_options options_of(struct subcall *subcall, rlmd_plan_done_fn *done)
{
	return (struct rlmd_execution_options){
		.config = {.max_parallel = (size_t)subcall->caller->job->config.max_parallel,
			   .timeout_ms = RLMD_PLAN_NO_TIMEOUT},
		.on_done = done,
		.owner = subcall,
	};
}

static size_t plans_under_way(const struct subcall_list *list)
{
	const struct subcall *subcall;
	size_t count = 0;

	TAILQ_FOREACH (subcall, list, entry)
		count += subcall->file != NULL;
	return count;
}

/* Schemas are of whoever ordered the work: what holds answers to them is opened for those alone,
 * before it begins. */
static bool has_no_schema(const struct subcall *subcall, struct rlmd_plan_error *err)
{
	const struct rlmd_plan *plan = rlmd_plan_file_plan(subcall->file);

	for (size_t i = 0; i < rlmd_plan_count(plan); i++)
		if (rlmd_plan_operation(plan, i)->schema.size) {
			snprintf(err->text, sizeof err->text,
				 "operations[%zu].schema: plans of code have none; say in the "
				 "input what form the answer should have, and check it",
				 i);
			return false;
		}
	return true;
}

static bool read_plan(struct subcall *subcall, struct rlmd_text json)
{
	size_t values = json_look(json).values;
	struct rlmd_plan_error err;

	if (plans_under_way(subcall->list) == PLANS_MAX)
		snprintf(err.text, sizeof err.text,
			 "%d plans or races are under way: wait for one, or make one plan "
			 "of several",
			 PLANS_MAX);
	else if (values > PLAN_VALUES_MAX)
		snprintf(err.text, sizeof err.text,
			 "the plan has %zu JSON values, of at most %d: make several plans of it, "
			 "or hand over structured contexts as text",
			 values, PLAN_VALUES_MAX);
	else
		subcall->file = rlmd_plan_file_new(json, &err);
	if (!subcall->file || !has_no_schema(subcall, &err)) {
		tell_error(subcall, &err);
		return false;
	}
	return true;
}

static void start_plan(struct subcall *subcall, struct rlmd_text json)
{
	struct rlmd_execution_options options = options_of(subcall, on_plan);
	size_t usual = options.config.max_parallel;
	const struct rlmd_plan *plan;

	if (!read_plan(subcall, json))
		return;
	if (llm_knows_places(subcall->caller->job->llm)) {
		subcall->asked = text_copy(json);
		subcall->asked_size = json.size;
	}
	plan = rlmd_plan_file_plan(subcall->file);
	options.config = *rlmd_plan_file_config(subcall->file);
	if (!options.config.max_parallel)
		options.config.max_parallel = usual;
	options.keep = true;
	options.on_log = on_plan_event;
	caller_mark(subcall->caller, &json, 1, subcall->set.mark);
	operation_set_init(&subcall->set, subcall->caller, rlmd_plan_file_operations(subcall->file),
			   rlmd_plan_count(plan));
	subcall_open(subcall);
	operation_set_start(&subcall->set, plan, options);
}

static void start_batch(struct subcall *subcall, const struct worker_call *call)
{
	struct batch *batch = &subcall->batch;
	struct rlmd_plan_error err;

	if (!call->count) {
		post(subcall);
		return;
	}
	if (!batch_read(batch, call, &err)) {
		tell_error(subcall, &err);
		return;
	}
	batch_mark(batch, call, subcall->caller, subcall->set.mark);
	operation_set_init(&subcall->set, subcall->caller, batch->operations, batch->count);
	batch_equip(batch, call, subcall->set.all);
	subcall_open(subcall);
	operation_set_start(&subcall->set, batch->plan, options_of(subcall, on_batch));
}

static json_t *amount(int64_t value, bool money)
{
	if (value == BUDGET_UNLIMITED)
		return json_null();
	return money ? json_real(money_to_dollars(value)) : json_integer(value);
}

static void tell_budget(struct subcall *subcall)
{
	const struct budget *budget = subcall->caller->budget;
	struct rlmd_amount left = budget_remaining(budget);

	say(subcall,
	    json_pack("{s:o, s:o, s:I, s:i, s:i, s:i}", "cost", amount(left.cost, true), "tokens",
		      amount(left.tokens, false), "time_ms",
		      (json_int_t)budget_remaining_ms(budget), "iterations",
		      budget_remaining_iterations(budget), "depth", subcall->caller->depth,
		      "max_depth", budget_limits(budget)->max_depth),
	    "budget", text_of(""));
	post(subcall);
}

/* What the host says is no more in our hands than what a provider says: it is kept likewise. */
static void keep_outcome(struct subcall *subcall)
{
	auto_evbuffer struct evbuffer *words = evbuffer_new();
	json_auto_t *outcome = json_object();

	if (subcall->failed)
		json_object_set_new(outcome, "kind", json_integer(subcall->kind));
	json_object_set_new(outcome, "word",
			    json_from_text(text_from(subcall->word, subcall->word_size)));
	json_write(outcome, false, words);
	llm_told_keep(subcall->caller->job->llm, &subcall->told, text_in(words), false);
}

/* The host is not asked: what it said then is said again. */
static void replay_function(struct subcall *subcall, struct rlmd_text told)
{
	json_auto_t *outcome = told.size ? json_read(told, 2, NULL) : NULL;
	const json_t *word = json_object_get(outcome, "word");
	const json_t *kind = json_object_get(outcome, "kind");

	if (!json_is_string(word)) {
		fail(subcall, RLMD_ERROR_REPLAY, "no recorded call of this function matches");
	} else {
		subcall->word = text_copy(json_text(word));
		subcall->word_size = json_text(word).size;
		subcall->failed = kind != NULL;
		subcall->kind = (enum rlmd_error_kind)json_integer_value(kind);
		llm_told_keep(subcall->caller->job->llm, &subcall->told, told, true);
	}
	post(subcall);
}

static void end_function(struct subcall *subcall)
{
	record_function(subcall->caller->job->trace, subcall->caller->id,
			&(struct record_function){
				.name = subcall->name,
				.arguments = text_from(subcall->asked, subcall->asked_size),
				.answer = text_from(subcall->word, subcall->word_size),
				.error = subcall->failed ? subcall->kind : RLMD_ERROR_NONE,
				.duration_ms = clock_ms() - subcall->started,
			});
}

static void on_function(void *owner, struct rlmd_text json, const struct rlmd_error *err)
{
	struct subcall *subcall = owner;

	subcall->function = NULL;
	if (err) {
		fail(subcall, err->kind, err->text);
	} else {
		subcall->word = text_copy(json);
		subcall->word_size = json.size;
	}
	end_function(subcall);
	if (llm_knows_places(subcall->caller->job->llm))
		keep_outcome(subcall);
	subcall_end(subcall);
}

/* The worker calls only what there is. */
static void start_function(struct subcall *subcall, const struct worker_call *call)
{
	struct rlmd_job *job = subcall->caller->job;
	struct function *function = function_set_find(job->functions, call->function);
	auto_free char *before = NULL;
	size_t size = 0;
	struct rlmd_error err;

	subcall->name = function->told.name;
	subcall->asked = text_copy(call->texts[0]);
	subcall->asked_size = call->texts[0].size;
	subcall->started = clock_ms();
	if (llm_knows_places(job->llm)) {
		name_told(subcall, subcall->name, call->texts[0]);
		before = llm_told_find(job->llm, &subcall->told, &size);
	}
	if (!budget_admit_call(subcall->caller->budget, &err)) {
		fail(subcall, err.kind, err.text);
		end_function(subcall);
		post(subcall);
	} else if (before || llm_replays(job->llm)) {
		replay_function(subcall, text_from(before, size));
		end_function(subcall);
	} else {
		subcall_open(subcall);
		subcall->function = function_call_start(job->base, function, call->texts[0],
							on_function, subcall);
	}
}

void subcall_start(struct subcall_list *list, struct caller *caller, struct worker *worker,
		   const struct worker_call *call)
{
	struct subcall *subcall = xcalloc(1, sizeof *subcall);

	*subcall = (struct subcall){
		.list = list,
		.caller = caller,
		.worker = worker,
		.posted = evtimer_new(caller->job->base, on_posted, subcall),
		.id = call->id,
	};
	TAILQ_INSERT_TAIL(list, subcall, entry);
	switch (call->kind) {
	case WORKER_LLM_QUERY:
	case WORKER_RLM_QUERY:
		start_batch(subcall, call);
		return;
	case WORKER_RUN_PLAN:
		start_plan(subcall, call->texts[0]);
		return;
	case WORKER_BUDGET:
		tell_budget(subcall);
		return;
	case WORKER_FUNCTION:
		start_function(subcall, call);
		return;
	}
}

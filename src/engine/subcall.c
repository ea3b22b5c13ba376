#include "engine/subcall.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memfile.h"
#include "base/money.h"
#include "base/timer.h"
#include "budget/budget.h"
#include "engine/caller.h"
#include "engine/function_call.h"
#include "engine/function_set.h"
#include "engine/operation.h"
#include "engine/run.h"
#include "engine/scope.h"
#include "llm/llm.h"
#include "pool/worker.h"
#include "trace/record.h"

#define THOUSANDTHS 1000.0

enum { CONTEXT_KEYED = 4096 }; /* bytes of a context by which its task is known, with its size */

/* Of a plan that code orders: 32 MiB once they are read. 10,000 operations with 100,000
 * dependencies have fewer. */
enum { PLAN_VALUES_MAX = 250000 };

/* That one worker's code has under way: each may hold its values and as much of inputs. */
enum { PLANS_MAX = 16 };

/* --- the questions or the tasks of one call, as operations ---------------------------------
 *
 * Everything is taken out of the call, which is gone when the answers come; long texts are not
 * copied for that.
 */

/* One of the call's texts, in a shared memory file or as a copy. */
struct asked_text {
	struct memfile *file; /* referenced, or NULL */
	char *copy;           /* owned, or NULL */
};

/* Embed it; zero may be freed. */
struct questions {
	struct asked_text *texts; /* owned */
	size_t text_count;
	struct rlmd_operation *operations; /* owned, with their models */
	size_t count;
	struct rlmd_plan *plan;    /* owned */
	struct rlmd_text *earlier; /* owned: of conversations all but the last turn */
	size_t earlier_count;
	struct wishes wishes;          /* its system is owned */
	struct worker_subset *subsets; /* owned, with their ranges: of each operation; or NULL */
};

struct size_digits {
	char digits[24];
};

static struct rlmd_text copied(struct rlmd_text text)
{
	return text_from(text_copy(text), text.size);
}

/* Long texts stay in their memory files. */
static struct rlmd_text take_text(struct questions *questions, const struct worker_call *call,
				  size_t index)
{
	struct asked_text *taken = &questions->texts[index];

	if (call->files && call->files[index]) {
		taken->file = memfile_ref(call->files[index]);
		return call->texts[index];
	}
	taken->copy = text_copy(call->texts[index]);
	return text_from(taken->copy, call->texts[index].size);
}

static size_t turns_of(const struct worker_call *call, size_t index)
{
	return call->turns ? call->turns[index] : 1;
}

static const char *model_of(const struct worker_call *call, size_t index)
{
	return call->models ? call->models[index] : call->model;
}

static void take_operation(struct questions *questions, const struct worker_call *call,
			   size_t index, struct rlmd_text input)
{
	questions->operations[index] = (struct rlmd_operation){
		.size = sizeof(struct rlmd_operation),
		.mode = call->kind == WORKER_RLM_QUERY ? RLMD_OPERATION_RUN : RLMD_OPERATION_CALL,
		.input = input,
		.model = xstrdup(model_of(call, index)),
	};
}

static void take_operations(struct questions *questions, const struct worker_call *call)
{
	size_t text = 0;

	questions->count = call->count;
	questions->texts = xcalloc(call->text_count, sizeof *questions->texts);
	questions->text_count = call->text_count;
	questions->operations = xcalloc(call->count, sizeof *questions->operations);
	questions->earlier = xcalloc(call->text_count - call->count + 1,
				     sizeof *questions->earlier);
	for (size_t i = 0; i < call->count; i++) {
		for (size_t turn = 1; turn < turns_of(call, i); turn++)
			questions->earlier[questions->earlier_count++] = take_text(questions, call,
										   text++);
		take_operation(questions, call, i, take_text(questions, call, text++));
	}
}

static void take_subsets(struct questions *questions, const struct worker_call *call)
{
	if (!call->subsets)
		return;
	questions->subsets = xcalloc(questions->count, sizeof *questions->subsets);
	for (size_t i = 0; i < questions->count; i++) {
		const struct worker_subset *given = &call->subsets[i];
		size_t *ranges;

		if (!given->ranges)
			continue;
		ranges = xreallocarray(NULL, given->count * 2, sizeof *ranges);
		memcpy(ranges, given->ranges, given->count * 2 * sizeof *ranges);
		questions->subsets[i] = (struct worker_subset){given->input, ranges, given->count};
	}
}

/* The call has at least one question or task. */
static bool questions_read(struct questions *questions, const struct worker_call *call,
			   struct rlmd_error *err)
{
	struct rlmd_plan_description description = {
		.size = sizeof description, .strategy = RLMD_PLAN_PARALLEL, .literal = true};

	*questions = (struct questions){.wishes = {
						.system = copied(call->system),
						.max_tokens = call->max_tokens,
						.with_temperature = call->temperature >= 0,
						.temperature = call->temperature / THOUSANDTHS,
					}};
	take_operations(questions, call);
	take_subsets(questions, call);
	description.operations = questions->operations;
	description.count = questions->count;
	questions->plan = rlmd_plan_new(&description, err);
	return questions->plan;
}

/* The context of a task: its own, or a part of its caller's. */
static size_t add_context(const struct questions *questions, const struct worker_call *call,
			  size_t i, struct size_digits *number, struct rlmd_text *out)
{
	const struct worker_subset *subset = questions->subsets ? &questions->subsets[i] : NULL;
	struct memfile *context = call->contexts ? call->contexts[i] : NULL;
	size_t count = 0;

	if (subset && subset->ranges)
		out[count++] = text_from((const char *)subset->ranges,
					 2 * subset->count * sizeof *subset->ranges);
	if (context) {
		snprintf(number->digits, sizeof number->digits, "%zu", memfile_size(context));
		out[count++] = text_of(number->digits);
		out[count++] = text_clip(memfile_text(context), CONTEXT_KEYED);
	}
	return count;
}

static void make_key(const struct questions *questions, const struct worker_call *call,
		     struct caller *caller, char out[static CALLER_KEY_SIZE])
{
	auto_free struct rlmd_text *all = xcalloc(call->text_count + 4 * questions->count + 2,
						  sizeof *all);
	auto_free struct size_digits *numbers = xcalloc(questions->count, sizeof *numbers);
	char wishes[64];
	size_t count = 0;

	snprintf(wishes, sizeof wishes, "%d %" PRId64 " %d", (int)call->kind, call->max_tokens,
		 call->temperature);
	all[count++] = text_of(wishes);
	all[count++] = call->system;
	for (size_t i = 0; i < call->text_count; i++)
		all[count++] = call->texts[i];
	for (size_t i = 0; i < questions->count; i++) {
		all[count++] = text_of(model_of(call, i));
		count += add_context(questions, call, i, &numbers[i], all + count);
	}
	caller_key(caller, all, count, out);
}

/* The key of a call: of all that it asks; of a context, of its size and its beginning. */
static void questions_key(const struct questions *questions, const struct worker_call *call,
			  struct caller *caller, char out[static CALLER_KEY_SIZE])
{
	*out = '\0';
	if (llm_knows_positions(caller->scope->llm))
		make_key(questions, call, caller, out);
}

/* Gives the operations what their plan does not say; the questions must outlive them. */
static void questions_equip(const struct questions *questions, const struct worker_call *call,
			    struct operation *operations)
{
	const struct rlmd_text *earlier = questions->earlier;
	const struct asked_text *text = questions->texts;

	for (size_t i = 0; i < questions->count; i++) {
		text += turns_of(call, i);
		if (text[-1].file)
			operations[i].scan = memfile_scan(text[-1].file);
		operations[i].wishes = &questions->wishes;
		operations[i].earlier = earlier;
		operations[i].earlier_count = turns_of(call, i) - 1;
		earlier += operations[i].earlier_count;
		if (call->contexts)
			operations[i].context = memfile_ref(call->contexts[i]);
		if (questions->subsets && questions->subsets[i].ranges)
			operations[i].subset = &questions->subsets[i];
	}
}

static void questions_done(struct questions *questions)
{
	rlmd_plan_free(questions->plan);
	for (size_t i = 0; i < questions->count; i++)
		free((char *)questions->operations[i].model);
	for (size_t i = 0; questions->subsets && i < questions->count; i++)
		free((size_t *)questions->subsets[i].ranges);
	free(questions->subsets);
	for (size_t i = 0; i < questions->text_count; i++) {
		memfile_unref(questions->texts[i].file);
		free(questions->texts[i].copy);
	}
	free(questions->texts);
	free(questions->operations);
	free(questions->earlier);
	free((char *)questions->wishes.system.bytes);
}

/* --- a sub-call ------------------------------------------------------------------------ */

struct subcall {
	struct subcall_list *list; /* lent: where we stand; the caller owns it */
	struct caller *caller;     /* lent */
	struct worker *worker;     /* lent: the list is emptied before it goes */
	struct timer *posted;      /* owned: answers from the loop */
	int64_t id;
	struct operation_set set;
	struct questions questions;  /* a plan brings its own operations */
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
	struct kept_value value;             /* what the word is kept as */
	int64_t started;                     /* likewise, on clock_ms() */
	TAILQ_ENTRY(subcall) entry;
};

static void subcall_free(struct subcall *subcall)
{
	TAILQ_REMOVE(subcall->list, subcall, entry);
	operation_set_done(&subcall->set);
	function_call_cancel(subcall->function);
	if (subcall->open && subcall->caller->run)
		run_wait_over(subcall->caller->run);
	rlmd_plan_file_free(subcall->file);
	free(subcall->asked);
	questions_done(&subcall->questions);
	timer_free(subcall->posted);
	free(subcall->word);
	free(subcall);
}

void subcall_free_all(struct subcall_list *list)
{
	struct subcall *subcall;

	while ((subcall = TAILQ_FIRST(list)))
		subcall_free(subcall);
}

void subcall_stop_all(struct subcall_list *list)
{
	struct subcall *subcall;

	TAILQ_FOREACH (subcall, list, entry)
		operation_set_stop(&subcall->set);
}

static void answer_all(struct subcall *subcall)
{
	size_t count = subcall->set.count;
	auto_free struct worker_result *results = xcalloc(count, sizeof *results);

	for (size_t i = 0; i < count; i++) {
		struct operation *operation = &subcall->set.all[i];

		results[i].failed = operation->failed;
		results[i].kind = operation->error;
		results[i].value = text_from(operation->value, operation->value_size);
		results[i].owned = &operation->value;
		results[i].message = operation->value;
		results[i].degraded = operation->degraded;
	}
	worker_reply(subcall->worker, subcall->id, results, count);
}

static void subcall_answer(struct subcall *subcall)
{
	struct worker_result word = {
		.failed = subcall->failed,
		.kind = subcall->kind,
		.value = text_from(subcall->word, subcall->word_size),
		.message = subcall->word,
	};

	if (subcall->word)
		worker_reply(subcall->worker, subcall->id, &word, 1);
	else
		answer_all(subcall);
	subcall_free(subcall);
}

/* C1: even an answer that is known at once comes from the loop. */
static void on_posted(void *owner)
{
	subcall_answer(owner);
}

static void post(struct subcall *subcall)
{
	timer_post(subcall->posted);
}

void subcall_reply_all(struct subcall_list *list)
{
	struct subcall *subcall;

	TAILQ_FOREACH (subcall, list, entry)
		if (!subcall->open)
			post(subcall);
}

static void subcall_open(struct subcall *subcall)
{
	subcall->open = true;
	if (subcall->caller->run)
		run_wait(subcall->caller->run);
}

/* The run that hears of it goes on to compute, with a permit. */
static void subcall_end(struct subcall *subcall)
{
	subcall->open = false;
	operation_set_settle(&subcall->set);
	if (!subcall->caller->run || run_wait_over(subcall->caller->run))
		subcall_answer(subcall);
}

/* Answers that depend on the clock or on a host function are keyed by caller and preceding
 * request. */
static void name_value(struct subcall *subcall, const char *what, struct rlmd_text asked)
{
	const struct caller *caller = subcall->caller;
	auto_evbuffer struct evbuffer *key = buffer_new();

	buffer_add_printf(key, "%s %s %s ", caller->path, caller->run ? run_asked(caller->run) : "",
			  what);
	buffer_add(key, asked.bytes, asked.size);
	kept_value_name(llm_kept(caller->scope->llm), text_in(key), &subcall->value);
}

/* The answer is JSON of ours. How long things took is in it, so it is kept: the same request, asked
 * the same the next time, is told the same, and goes on as it did. */
static void say(struct subcall *subcall, json_t *object, const char *function,
		struct rlmd_text asked)
{
	struct llm *llm = subcall->caller->scope->llm;
	auto_evbuffer struct evbuffer *out = buffer_new();
	char *before;

	json_write(object, false, out);
	json_decref(object);
	subcall->word = text_drain(out, &subcall->word_size);
	if (!llm_knows_positions(llm))
		return;
	name_value(subcall, function, asked);
	before = kept_value_find(llm_kept(llm), &subcall->value, &subcall->word_size);
	if (before) {
		free(subcall->word);
		subcall->word = before;
	}
	kept_value_keep(llm_kept(llm), &subcall->value,
			text_from(subcall->word, subcall->word_size), before);
}

static void on_questions(void *owner, const struct rlmd_plan_summary *summary)
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
		record_plan(subcall->caller->scope->trace, subcall->caller->id, event);
}

static void fail(struct subcall *subcall, enum rlmd_error_kind kind, const char *why)
{
	subcall->failed = true;
	subcall->kind = kind;
	subcall->word = xstrdup(why);
	subcall->word_size = strlen(why);
}

static void tell_error(struct subcall *subcall, const struct rlmd_error *err)
{
	fail(subcall, RLMD_ERROR_INPUT, err->text);
	post(subcall);
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
static bool has_no_schema(const struct subcall *subcall, struct rlmd_error *err)
{
	const struct rlmd_plan *plan = rlmd_plan_file_plan(subcall->file);

	for (size_t i = 0; i < rlmd_plan_count(plan); i++)
		if (rlmd_plan_operation(plan, i)->schema.size) {
			return error_set(
				err, RLMD_ERROR_INPUT,
				"operations[%zu].schema: plans of code have none; say in the "
				"input what form the answer should have, and check it",
				i);
		}
	return true;
}

static bool read_plan(struct subcall *subcall, struct rlmd_text json)
{
	size_t values = json_look(json).values;
	struct rlmd_error err;

	if (plans_under_way(subcall->list) == PLANS_MAX)
		error_set(&err, RLMD_ERROR_INPUT,
			  "%d plans or races are under way: wait for one, or make one plan "
			  "of several",
			  PLANS_MAX);
	else if (values > PLAN_VALUES_MAX)
		error_set(&err, RLMD_ERROR_INPUT,
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
	const struct rlmd_execution_options options = {
		.size = sizeof options,
		.keep = true,
		.on_log = on_plan_event,
		.on_done = on_plan,
		.owner = subcall,
	};

	if (!read_plan(subcall, json))
		return;
	if (llm_knows_positions(subcall->caller->scope->llm)) {
		subcall->asked = text_copy(json);
		subcall->asked_size = json.size;
	}
	caller_key(subcall->caller, &json, 1, subcall->set.key);
	operation_set_init(&subcall->set, subcall->caller, rlmd_plan_file_plan(subcall->file));
	subcall_open(subcall);
	operation_set_start(&subcall->set, rlmd_plan_file_config(subcall->file), &options);
}

static void start_questions(struct subcall *subcall, const struct worker_call *call)
{
	const struct rlmd_plan_config config = {
		.size = sizeof config,
		.timeout_ms = RLMD_PLAN_NO_TIMEOUT,
	};
	const struct rlmd_execution_options options = {
		.size = sizeof options,
		.on_done = on_questions,
		.owner = subcall,
	};
	struct questions *questions = &subcall->questions;
	struct rlmd_error err;

	if (!call->count) {
		post(subcall);
		return;
	}
	if (!questions_read(questions, call, &err)) {
		tell_error(subcall, &err);
		return;
	}
	questions_key(questions, call, subcall->caller, subcall->set.key);
	operation_set_init(&subcall->set, subcall->caller, questions->plan);
	questions_equip(questions, call, subcall->set.all);
	subcall_open(subcall);
	operation_set_start(&subcall->set, &config, &options);
}

static json_t *amount(int64_t value, bool money)
{
	if (value == BUDGET_UNLIMITED)
		return json_null();
	return money ? json_make_real(money_to_dollars(value)) : json_make_integer(value);
}

static void tell_budget(struct subcall *subcall)
{
	const struct budget *budget = subcall->caller->budget;
	struct rlmd_amount left = budget_remaining(budget);
	int64_t time = budget_remaining_ms(budget);

	say(subcall,
	    json_make("{s:o, s:o, s:o, s:i, s:i, s:i}", "cost", amount(left.cost, true), "tokens",
		      amount(left.tokens, false), "time_ms",
		      amount(time > BUDGET_TIME_MAX ? BUDGET_UNLIMITED : time, false), "iterations",
		      budget_remaining_iterations(budget), "depth", subcall->caller->depth,
		      "max_depth", budget_limits(budget)->max_depth),
	    "budget", text_of(""));
	post(subcall);
}

/* A host's answer can be no more reproduced than a provider's, so it is kept, too. */
static void keep_outcome(struct subcall *subcall)
{
	auto_evbuffer struct evbuffer *words = buffer_new();
	json_auto_t *outcome = json_make_object();

	if (subcall->failed)
		json_put(outcome, "kind", json_make_integer(subcall->kind));
	json_put(outcome, "word", json_from_text(text_from(subcall->word, subcall->word_size)));
	json_write(outcome, false, words);
	kept_value_keep(llm_kept(subcall->caller->scope->llm), &subcall->value, text_in(words),
			false);
}

/* The host is not asked: what it said then is said again. */
static void replay_function(struct subcall *subcall, struct rlmd_text kept)
{
	json_auto_t *outcome = kept.size ? json_read(kept, 2, NULL) : NULL;
	const json_t *word = json_object_get(outcome, "word");
	const json_t *kind = json_object_get(outcome, "kind");

	if (!json_is_string(word)) {
		fail(subcall, RLMD_ERROR_REPLAY, "no recorded call of this function matches");
	} else {
		subcall->word = text_copy(json_text(word));
		subcall->word_size = json_text(word).size;
		subcall->failed = kind != NULL;
		subcall->kind = (enum rlmd_error_kind)json_integer_value(kind);
		kept_value_keep(llm_kept(subcall->caller->scope->llm), &subcall->value, kept, true);
	}
	post(subcall);
}

static void end_function(struct subcall *subcall)
{
	record_function(subcall->caller->scope->trace, subcall->caller->id,
			&(struct record_function){
				.name = subcall->name,
				.arguments = text_from(subcall->asked, subcall->asked_size),
				.answer = text_from(subcall->word, subcall->word_size),
				.error = subcall->failed ? subcall->kind : RLMD_ERROR_NONE,
				.duration_ms = clock_ms() - subcall->started,
			});
}

static void take_outcome(struct subcall *subcall, struct rlmd_text json,
			 const struct rlmd_error *err)
{
	subcall->function = NULL;
	if (err) {
		fail(subcall, err->kind, err->text);
		return;
	}
	subcall->word = text_copy(json);
	subcall->word_size = json.size;
}

static void on_untold(void *owner, struct rlmd_text json, const struct rlmd_error *err)
{
	struct subcall *subcall = owner;

	take_outcome(subcall, json, err);
	subcall_end(subcall);
}

static void on_function(void *owner, struct rlmd_text json, const struct rlmd_error *err)
{
	struct subcall *subcall = owner;

	take_outcome(subcall, json, err);
	end_function(subcall);
	if (llm_knows_positions(subcall->caller->scope->llm))
		keep_outcome(subcall);
	subcall_end(subcall);
}

/* The worker calls only what there is. */
static void start_function(struct subcall *subcall, const struct worker_call *call)
{
	struct scope *scope = subcall->caller->scope;
	struct function *function = function_set_find(scope->functions, call->function);
	auto_free char *before = NULL;
	size_t size = 0;
	struct rlmd_error err;

	subcall->name = function->spec.name;
	subcall->asked = text_copy(call->texts[0]);
	subcall->asked_size = call->texts[0].size;
	subcall->started = clock_ms();
	if (function->spec.untold) {
		subcall_open(subcall);
		subcall->function = function_call_start(scope->base, function, call->texts[0],
							on_untold, subcall);
		return;
	}
	if (llm_knows_positions(scope->llm)) {
		name_value(subcall, subcall->name, call->texts[0]);
		before = kept_value_find(llm_kept(scope->llm), &subcall->value, &size);
	}
	if (!budget_admit_call(subcall->caller->budget, &err)) {
		fail(subcall, err.kind, err.text);
		end_function(subcall);
		post(subcall);
	} else if (before || llm_replays(scope->llm)) {
		replay_function(subcall, text_from(before, size));
		end_function(subcall);
	} else {
		subcall_open(subcall);
		subcall->function = function_call_start(scope->base, function, call->texts[0],
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
		.posted = timer_new(caller->scope->base, on_posted, subcall),
		.id = call->id,
	};
	TAILQ_INSERT_TAIL(list, subcall, entry);
	switch (call->kind) {
	case WORKER_LLM_QUERY:
	case WORKER_RLM_QUERY:
		start_questions(subcall, call);
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

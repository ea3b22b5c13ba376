/*
 * A prompt is one ask. A task takes the way that its call's admission gives it: it
 * waits for permits to be alive and to compute, and when it has both it asks once
 * more, for what was left may be gone, and begins its sub-run; or it is answered by
 * one ask.
 */
#include "engine/operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/execution.h"
#include "async/report.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/money.h"
#include "budget/budget.h"
#include "engine/answer_check.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/inputs.h"
#include "engine/run.h"
#include "engine/scope.h"
#include "engine/token_counter.h"
#include "prompt/brief.h"
#include "prompt/conversation.h"
#include "trace/record.h"

enum {
	FALLBACK_CONTEXT_MAX = 40000, /* characters of the context in an answer without a sub-run */
	SYSTEM_SHORT = 64 << 10,      /* bytes of a system text that is counted at once */
	CONTEXT_PER_TOKEN = 2, /* characters of a prompt's context for a token of the window */
};

/* --- how an operation ends ----------------------------------------------------------- */

static void fail(struct operation *operation, const struct rlmd_error *err)
{
	operation->failed = true;
	operation->error = err->kind;
	operation->value = xstrdup(err->text);
	operation->value_size = strlen(operation->value);
}

/* Answers are in memory until the call is over. */
static bool has_room(struct operation *operation, size_t size)
{
	struct operation_set *set = operation->set;
	struct caller *caller = set->caller;
	struct rlmd_error err;

	if (size <= caller->answers_max - caller->answers) {
		caller->answers += size;
		set->answers += size;
		return true;
	}
	error_set(&err, RLMD_ERROR_INPUT,
		  "the answers that are waited for may have %zu MiB together, which this one, of "
		  "%zu bytes, exceeds",
		  caller->answers_max >> 20, size);
	fail(operation, &err);
	return false;
}

static void degrade(struct operation *operation, char *why)
{
	char *before = operation->degraded;

	operation->degraded = why;
	if (!before)
		return;
	operation->degraded = xasprintf("%s; %s", before, why);
	free(before);
	free(why);
}

static void note_cut(struct operation *operation, bool cut)
{
	if (cut)
		degrade(operation, xstrdup("cut at its length limit"));
}

static void note_fallback(struct operation *operation)
{
	switch (operation->way) {
	case WAY_SUBRUN:
		return;
	case WAY_DOWNGRADED:
		degrade(operation, xasprintf("downgraded to llm_query (%s)", operation->reason));
		return;
	case WAY_DIRECT:
		degrade(operation, xasprintf("no sub-RLM was started (%s), answered directly",
					     operation->reason));
		return;
	}
}

static void record_answered(const struct operation *operation)
{
	const struct caller *caller = operation->set->caller;

	if (operation->degraded && !operation->failed)
		record_degraded(caller->scope->trace, caller->id,
				operation->spec->mode == RLMD_OPERATION_RUN, operation->degraded);
}

static void take_text(struct operation *operation, struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *repaired = NULL;

	if (!text_is_utf8(text)) {
		repaired = buffer_new();
		text_repair(text, repaired);
		text = text_in(repaired);
	}
	if (has_room(operation, text.size)) {
		operation->value = text_copy(text);
		operation->value_size = text.size;
	}
	record_answered(operation);
}

static void take_response(struct operation *operation, const struct llm_response *response)
{
	if (!response->bytes) {
		take_text(operation, response->text);
		return;
	}
	if (has_room(operation, response->text.size)) {
		operation->value = bytes_take(response->bytes);
		operation->value_size = response->text.size;
	}
	record_answered(operation);
}

/* A call that had to end with the account's time is refused by the account. */
static enum rlmd_error_kind kind_of(const struct operation *operation)
{
	bool over = !budget_remaining_ms(operation->set->caller->budget);

	return operation->error == RLMD_ERROR_TIMEOUT && over ? RLMD_ERROR_BUDGET
							      : operation->error;
}

static enum rlmd_plan_error_kind plan_error(enum rlmd_error_kind kind)
{
	if (kind == RLMD_ERROR_TIMEOUT)
		return RLMD_PLAN_ERROR_TIMEOUT;
	return kind == RLMD_ERROR_BUDGET ? RLMD_PLAN_ERROR_BUDGET : RLMD_PLAN_ERROR_OPERATION;
}

static void end(struct operation *operation)
{
	struct operation_set *set = operation->set;
	auto_free char *unkept = set->keep ? take_pointer(&operation->value) : NULL;
	const char *value = set->keep ? unkept : operation->value;
	struct rlmd_plan_answer answer = {
		.size = sizeof answer,
		.tokens = operation->usage.tokens,
		.estimated = operation->usage.estimated,
	};

	if (operation->usage.tokens) {
		set->ended++;
		set->tokens += operation->usage.tokens;
	}
	if (operation->failed) {
		answer.error = plan_error(kind_of(operation));
		answer.error_name = rlmd_error_name(kind_of(operation));
		answer.message = value;
	} else {
		answer.response = (struct rlmd_text){value, operation->value_size};
	}
	rlmd_call_done(operation->call, &answer);
}

/* --- a call whose answer has to satisfy a schema ---------------------------------------- */

/*
 * An answer that does not satisfy the schema is asked for again, with the turns before and what is
 * wrong with it.
 */
enum { TRIES_MAX = 3 }; /* requests of one operation, for an answer of the right form */

struct operation_form {
	struct rlmd_text schema; /* lent */
	enum llm_kind kind;
	char *system;                          /* owned: with the schema */
	struct rlmd_text turns[2 * TRIES_MAX]; /* the user's and the model's; the first lent,
							the others owned */
	size_t turn_count;
	struct answer_check *check; /* owned; NULL: none is under way */
	bool cut;                   /* the last answer, by its length limit */
	int64_t duration_ms;        /* of it; -1: it came out of a cache */
};

/* `user`, and the schema, are lent as long as it lives. */
static struct operation_form *form_new(const struct prompt_set *prompts, enum llm_kind kind,
				       struct rlmd_text schema, struct rlmd_text system,
				       struct rlmd_text user)
{
	struct operation_form *form = xcalloc(1, sizeof *form);
	auto_evbuffer struct evbuffer *out = buffer_new();

	form->schema = schema;
	form->kind = kind;
	buffer_add(out, system.bytes, system.size);
	buffer_add(out, "\n", 1);
	brief_schema(prompts, schema, out);
	form->system = text_drain(out, NULL);
	form->turns[form->turn_count++] = user;
	return form;
}

static void form_free(struct operation_form *form)
{
	if (!form)
		return;
	answer_check_cancel(form->check);
	for (size_t i = 1; i < form->turn_count; i++)
		free((char *)form->turns[i].bytes);
	free(form->system);
	free(form);
}

static void form_add(struct operation_form *form, struct rlmd_text text)
{
	form->turns[form->turn_count++] = text_from(text_copy(text), text.size);
}

static void form_check(struct operation_form *form, struct scope *scope,
		       const struct llm_response *response, answer_verdict_fn *heard, void *owner)
{
	const struct answer_form wanted = {.schema = form->schema};

	form_add(form, response->text);
	form->cut = response->finish == LLM_FINISH_LENGTH;
	form->duration_ms = response->cached || response->journaled ? -1 : response->duration_ms;
	form->check = answer_check_start(scope, &wanted, response->text, heard, owner);
}

static bool form_reject(struct operation_form *form, const struct prompt_set *prompts,
			struct rlmd_text wrong)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	if (form->turn_count == 2 * TRIES_MAX)
		return false;
	brief_note(prompts, "rejected", wrong, out);
	form_add(form, text_in(out));
	return true;
}

/* --- an operation on its way ----------------------------------------------------------- */

/* The prompts of calls below the root. */
static const struct prompt_set *prompts_of(const struct operation *operation)
{
	return operation->set->caller->scope->subcall_prompts;
}

/* Frees the messages once no ask borrows them. */
static void drop_messages(struct operation *operation)
{
	token_counter_free(take_pointer(&operation->counter));
	free(take_pointer(&operation->messages));
}

static void drop_permits(struct operation *operation)
{
	permit_free(take_pointer(&operation->permit));
	permit_free(take_pointer(&operation->alive));
}

static struct rlmd_plan_usage usage_of_run(const struct run *run)
{
	const struct budget_usage *usage = budget_usage(run_budget(run));

	return (struct rlmd_plan_usage){sizeof(struct rlmd_plan_usage), usage->tokens,
					usage->estimated};
}

static void add_usage(struct operation *operation, struct llm_usage usage)
{
	operation->usage.tokens += usage.input + usage.output;
	operation->usage.estimated |= usage.estimated;
}

static void operation_cancel(struct operation *operation)
{
	if (operation->ask)
		add_usage(operation, ask_cancel(take_pointer(&operation->ask)));
	if (operation->child) {
		run_halt(operation->child);
		operation->usage = usage_of_run(operation->child);
		run_free(take_pointer(&operation->child));
	}
	drop_permits(operation);
	form_free(take_pointer(&operation->form));
	free(take_pointer(&operation->user));
	drop_messages(operation);
}

void operation_done(struct operation *operation)
{
	operation_cancel(operation);
	memfile_unref(take_pointer(&operation->context));
	file_index_unref(take_pointer(&operation->files));
	free(take_pointer(&operation->value));
}

/* A negative duration: it took none. */
static void end_call(struct operation *operation, const struct llm_response *answer, bool cut,
		     int64_t duration_ms)
{
	struct scope *scope = operation->set->caller->scope;
	bool timed = duration_ms >= 0;

	note_fallback(operation);
	note_cut(operation, cut);
	take_response(operation, answer);
	scope->call_count += timed; /* one out of a cache tells nothing of how long calls take */
	scope->call_ms += timed ? duration_ms : 0;
	end(operation);
}

static void ask_again(struct operation *);

static void on_verdict(void *owner, const struct answer_verdict *verdict)
{
	struct operation *operation = owner;
	struct operation_form *form = operation->form;
	struct rlmd_error err;

	form->check = NULL;
	if (!verdict->error && !verdict->wrong.size) {
		end_call(operation, &(struct llm_response){.text = verdict->answer}, form->cut,
			 form->duration_ms);
		return;
	}
	if (!verdict->error && form_reject(form, prompts_of(operation), verdict->wrong)) {
		ask_again(operation);
		return;
	}
	error_set(&err, RLMD_ERROR_SCHEMA, "no answer satisfied the schema: %s",
		  verdict->wrong.bytes);
	fail(operation, verdict->error ? verdict->error : &err);
	end(operation);
}

static void on_ask(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct operation *operation = owner;

	operation->ask = NULL;
	add_usage(operation, response->usage);
	if (err) {
		fail(operation, err);
		end(operation);
	} else if (operation->form) {
		form_check(operation->form, operation->set->caller->scope, response, on_verdict,
			   operation);
	} else {
		end_call(operation, response, response->finish == LLM_FINISH_LENGTH,
			 response->cached || response->journaled ? -1 : response->duration_ms);
	}
}

static void on_sent(void *owner)
{
	struct operation *operation = owner;

	rlmd_call_started(operation->call);
}

static const char *model_of(const struct operation *operation)
{
	return operation->spec->model ? operation->spec->model : operation->set->caller->model;
}

static int64_t output_of(const struct operation *operation)
{
	const struct scope *scope = operation->set->caller->scope;
	int64_t wish = operation->wishes ? operation->wishes->max_tokens : 0;
	int64_t window = llm_window(scope->llm, model_of(operation));

	if (!wish)
		return scope_output(scope, model_of(operation), SCOPE_OUTPUT_QUERY);
	return wish < window ? wish : window;
}

/* All that the model sees: the system's words, what was said before, and the user's last. */
static void write_messages(struct operation *operation, struct rlmd_text system,
			   struct rlmd_text user)
{
	struct llm_message *message;

	operation->messages = xcalloc(operation->earlier_count + 2, sizeof *operation->messages);
	message = operation->messages;
	*message = (struct llm_message){LLM_SYSTEM, system};
	if (system.size <= SYSTEM_SHORT) {
		operation->system = conversation_scan(message);
		message->scan = &operation->system;
	}
	for (size_t i = 0; i < operation->earlier_count; i++)
		*++message = (struct llm_message){i % 2 ? LLM_ASSISTANT : LLM_USER,
						  operation->earlier[i]};
	*++message = (struct llm_message){LLM_USER, user};
	if (user.bytes == operation->input.bytes)
		message->scan = operation->scan;
	operation->message_count = operation->earlier_count + 2;
}

enum { POSITION_SIZE = CALLER_KEY_SIZE + 24 };

static void position_of(const struct operation *operation, char out[static POSITION_SIZE])
{
	const struct operation_set *set = operation->set;

	snprintf(out, POSITION_SIZE, "%s.%zu", set->key, (size_t)(operation - set->all));
}

static void start_ask(void *owner)
{
	struct operation *operation = owner;
	struct caller *caller = operation->set->caller;
	char position[POSITION_SIZE];
	bool is_again = operation->form && operation->form->turn_count > 1;
	struct ask_options options = {
		.caller = caller,
		.number = operation->number,
		.position = position,
		.reason = operation->way == WAY_SUBRUN ? NULL : operation->reason,
		.queued = is_again ? 0 : operation->call->lined,
		.sent = on_sent,
		.request = {.model = model_of(operation),
			    .messages = operation->messages,
			    .message_count = operation->message_count,
			    .max_tokens = output_of(operation),
			    .deadline = budget_deadline(caller->budget),
			    .kind = operation->kind,
			    .depth = caller->depth > 0 ? caller->depth : 0,
			    .turn = caller->run ? run_turn(caller->run) - 1 : 0,
			    .schema = operation->spec->schema},
	};

	if (operation->wishes && operation->wishes->with_temperature) {
		options.request.sampling.with_temperature = true;
		options.request.sampling.temperature = operation->wishes->temperature;
	}
	position_of(operation, position);
	operation->ask = ask_start(caller->scope, &options, on_ask, operation);
}

static void send_call(struct operation *operation, enum llm_kind kind, struct rlmd_text system,
		      struct rlmd_text user)
{
	operation->kind = kind;
	write_messages(operation, system, user);
	operation->counter = token_counter_start(operation->set->caller->scope->base,
						 operation->messages, operation->message_count,
						 start_ask, operation);
	if (!operation->counter)
		start_ask(operation);
}

static void ask_again(struct operation *operation)
{
	struct operation_form *form = operation->form;

	drop_messages(operation);
	operation->earlier = form->turns;
	operation->earlier_count = form->turn_count - 1;
	send_call(operation, form->kind, text_of(form->system), form->turns[form->turn_count - 1]);
}

static void ask(struct operation *operation, enum llm_kind kind, struct rlmd_text system,
		struct rlmd_text user)
{
	struct rlmd_text schema = operation->spec->schema;

	if (!schema.size) {
		send_call(operation, kind, system, user);
		return;
	}
	operation->form = form_new(prompts_of(operation), kind, schema, system, user);
	ask_again(operation);
}

static void warn_fallback(struct operation *operation)
{
	auto_free char *text = xasprintf(
		operation->way == WAY_DOWNGRADED
			? "A sub-run was downgraded to llm_query: %s"
			: "A sub-run was not started and answered directly: %s",
		operation->reason);

	caller_warn_once(operation->set->caller, text);
}

/* The prompt and its context in one; of a context that is too long head and tail, which the prompt
 * says. Returns whether it was. */
static bool add_context(struct operation *operation, struct rlmd_text context, int64_t max,
			struct rlmd_text *ret)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	bool clipped = brief_operation(prompts_of(operation), operation->input, context, max, out);

	operation->user = text_drain(out, &ret->size);
	ret->bytes = operation->user;
	return clipped;
}

static struct rlmd_text with_context(struct operation *operation)
{
	struct caller *caller = operation->set->caller;
	int64_t max = CONTEXT_PER_TOKEN * llm_window(caller->scope->llm, model_of(operation));
	struct rlmd_text user;

	if (add_context(operation, operation->spec->context, max, &user))
		caller_warn_once(caller,
				 "The context of an operation was longer than its model's window, "
				 "which was given its head and tail");
	return user;
}

/* The model sees the task and what fits of the context, and answers. */
static void fall_back(struct operation *operation)
{
	const struct context *context = operation->set->caller->context;
	struct memfile *file = operation->context;
	struct rlmd_text user = operation->input;

	if (operation->wanting) {
		admission_decline(&operation->set->admission);
		warn_fallback(operation);
	}
	operation->wanting = false;
	if (!file && context->count)
		file = context->inputs[0].file;
	if (file)
		add_context(operation, memfile_text(file), FALLBACK_CONTEXT_MAX, &user);
	ask(operation, operation->way == WAY_DIRECT ? LLM_DIRECT : LLM_QUERY,
	    brief_text(prompts_of(operation), "direct"), user);
}

static void on_child(void *owner, const struct run_result *result)
{
	struct operation *operation = owner;
	struct caller *caller = operation->set->caller;
	struct scope *scope = caller->scope;

	scope->subrun_count++;
	scope->subrun_ms += clock_ms() - operation->started;
	scope->subrun_cost = money_add(scope->subrun_cost,
				       budget_usage(run_budget(operation->child))->cost);
	operation->usage = usage_of_run(operation->child);
	if (result->forced) {
		caller_warn_once(caller, "A sub-run's answer was forced");
		degrade(operation, xasprintf("the sub-RLM's answer was forced (%s)",
					     error_stop_words(result->stop)));
	}
	note_cut(operation, result->cut);
	if (result->error.kind)
		fail(operation, &result->error);
	else
		take_text(operation, result->answer);
	run_free(take_pointer(&operation->child));
	end(operation);
}

static void start_child(struct operation *operation)
{
	struct caller *caller = operation->set->caller;
	struct context_input input;
	struct context own = {.inputs = &input, .count = 1};
	char position[POSITION_SIZE];
	struct run_options options = {
		.parent = caller,
		.alive = take_pointer(&operation->alive),
		.permit = take_pointer(&operation->permit),
		.depth = caller->depth + 1,
		.position = position,
		.task = operation->input,
		.context = caller->context,
		.model = operation->spec->model,
		.form = {.schema = operation->spec->schema},
	};

	if (operation->context) {
		input = context_input_of("context", operation->context);
		input.files = file_index_ref(operation->files);
		options.context = &own;
	}
	position_of(operation, position);
	operation->wanting = false;
	options.pool = operation->set->admission.pool;
	options.among = admission_begin(&operation->set->admission);
	budget_count_subcall(caller->budget, options.depth);
	operation->started = clock_ms();
	rlmd_call_started(operation->call);
	operation->child = run_start(caller->scope, &options, on_child, operation);
	if (operation->context)
		context_input_done(&input);
}

static void refuse(struct operation *operation, const struct rlmd_error *err)
{
	drop_permits(operation);
	admission_decline(&operation->set->admission);
	operation->wanting = false;
	fail(operation, err);
	end(operation);
}

static bool host_allows(struct operation *operation, struct rlmd_error *err)
{
	const struct caller *caller = operation->set->caller;
	const struct rlmd_activity activity = {
		.size = sizeof activity,
		.kind = RLMD_SUBCALL_RUN,
		.parent = caller->id,
		.depth = caller->depth + 1,
		.model = model_of(operation),
		.prompt = operation->input,
	};

	return hooks_allow(&caller->scope->hooks, &activity, err);
}

static void on_permit(void *owner)
{
	struct operation *operation = owner;
	struct rlmd_error err;

	operation->way = admission_way(&operation->set->admission, operation->reason);
	if (operation->way == WAY_SUBRUN && !host_allows(operation, &err)) {
		refuse(operation, &err);
		return;
	}
	if (operation->way == WAY_SUBRUN) {
		start_child(operation);
		return;
	}
	drop_permits(operation);
	fall_back(operation);
}

static void on_alive(void *owner)
{
	struct operation *operation = owner;
	struct caller *caller = operation->set->caller;

	operation->permit = scope_ask_worker(caller->scope, caller->depth + 1, false, on_permit,
					     operation);
}

/* An operation brings its context as text; a call of code, as a memory file. */
static bool take_context(struct operation *operation, struct rlmd_error *err)
{
	struct rlmd_text context = operation->spec->context;

	if (operation->subset && !operation->context)
		return inputs_part(operation->set->caller->context, operation->subset,
				   &operation->context, &operation->files, err);
	if (operation->context || !context.bytes)
		return true;
	operation->context = memfile_new_private("context");
	return memfile_append(operation->context, context, err) &&
	       memfile_seal(operation->context, err);
}

static void start_task(struct operation *operation)
{
	struct caller *caller = operation->set->caller;
	struct rlmd_error err;

	if (!take_context(operation, &err)) {
		fail(operation, &err);
		end(operation);
		return;
	}
	if (operation->wanting)
		operation->way = admission_way(&operation->set->admission, operation->reason);
	if (operation->way != WAY_SUBRUN) {
		fall_back(operation);
		return;
	}
	operation->alive = scope_ask_alive(caller->scope, caller->depth + 1, on_alive, operation);
}

static struct rlmd_text system_of(const struct operation *operation)
{
	if (operation->wishes && operation->wishes->system.size)
		return operation->wishes->system;
	return brief_text(prompts_of(operation), "query");
}

static void start(void *owner, const struct rlmd_operation *spec, struct rlmd_text input,
		  struct rlmd_call *call)
{
	struct operation *operation = spec->owner;

	(void)owner;
	operation->input = input;
	operation->call = call;
	if (spec->mode == RLMD_OPERATION_RUN)
		start_task(operation);
	else
		ask(operation, LLM_QUERY, system_of(operation),
		    spec->context.bytes ? with_context(operation) : input);
}

static void cancel(void *owner, const struct rlmd_operation *spec, struct rlmd_call *call,
		   struct rlmd_plan_usage *ret_usage)
{
	struct operation *operation = spec->owner;

	(void)owner;
	(void)call;
	operation_cancel(operation);
	ret_usage->tokens = operation->usage.tokens;
	ret_usage->estimated = operation->usage.estimated;
}

const struct rlmd_orchestrator operation_orchestrator = {
	.size = sizeof operation_orchestrator,
	.start = start,
	.cancel = cancel,
	.queues = true,
};

/* --- the operations of one call or plan -------------------------------------------------- */

/* Tokens that an operation is expected to take, until one has ended. */
enum { CALL_TOKENS = 2500, RUN_TOKENS = 5 * CALL_TOKENS };

static bool is_task(const struct rlmd_operation *spec)
{
	return spec->mode == RLMD_OPERATION_RUN;
}

void operation_set_init(struct operation_set *set, struct caller *caller, struct rlmd_plan *plan)
{
	size_t count = rlmd_plan_count(plan);

	set->caller = caller;
	set->plan = plan;
	set->count = count;
	set->all = xcalloc(count, sizeof *set->all);
	/* By their positions, for they may begin in any order. */
	for (size_t i = 0; i < count; i++) {
		struct operation *operation = &set->all[i];

		operation->number = caller->calls++;
		rlmd_plan_set_owner(plan, i, operation);
		operation->set = set;
		operation->spec = rlmd_plan_operation(plan, i);
		operation->wanting = is_task(operation->spec);
		set->tasks += operation->wanting;
	}
	if (set->tasks)
		admission_init(&set->admission, caller, set->tasks, count - set->tasks);
}

static int64_t remaining(void *owner)
{
	const struct operation_set *set = owner;
	const struct budget *budget = set->caller->budget;

	if (set->admission.aside && set->tasks == set->count)
		budget = set->admission.aside;
	return budget_unspent(budget).tokens;
}

static int64_t estimate(void *owner)
{
	const struct operation_set *set = owner;

	if (set->ended)
		return set->tokens / set->ended;
	return set->tasks ? RUN_TOKENS : CALL_TOKENS;
}

/* It may have ended without a start, and then its share is for others. */
static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct operation *operation = result->operation->owner;
	struct operation_set *set = operation->set;

	if (operation->wanting)
		admission_decline(&set->admission);
	operation->wanting = false;
	if (!is_task(result->operation) && set->admission.calls)
		set->admission.calls--;
	if (set->keep)
		operation_done(operation);
	if (set->on_result)
		set->on_result(owner, result);
}

/* As many as the job's calls where nothing is said. Of model calls never more than may be in
 * flight: what would wait for its place had better do so where priorities are known. */
static void limit_calls(const struct operation_set *set, struct rlmd_plan_config *config)
{
	size_t most = (size_t)set->caller->scope->config.max_parallel;

	if (!config->max_parallel || (!set->tasks && config->max_parallel > most))
		config->max_parallel = most;
}

void operation_set_start(struct operation_set *set, const struct rlmd_plan_config *given,
			 const struct rlmd_execution_options *wanted)
{
	const struct rlmd_budget_manager budget = {
		.size = sizeof budget,
		.remaining = remaining,
		.estimate = estimate,
		.owner = set,
	};
	struct rlmd_plan_config config = *given;
	struct rlmd_execution_options options = *wanted;

	limit_calls(set, &config);
	options.config = &config;
	options.orchestrator = &operation_orchestrator;
	options.budget = &budget;
	set->keep = options.keep;
	set->on_result = options.on_result;
	options.on_result = on_result;
	set->execution = rlmd_execution_start(set->caller->scope->base, set->plan, &options, NULL);
}

json_t *operation_set_report(const struct operation_set *set)
{
	json_t *report = report_execution(set->execution);
	json_t *results = json_object_get(report, "results");

	for (size_t i = 0; i < set->count; i++)
		if (set->all[i].degraded && !set->all[i].failed)
			json_put(json_object_get(results, set->all[i].spec->id), "degraded",
				 json_make_string(set->all[i].degraded));
	return report;
}

void operation_set_stop(struct operation_set *set)
{
	const struct rlmd_error cancelled = {.kind = RLMD_ERROR_CANCELLED, .text = "cancelled"};

	rlmd_execution_stop(set->execution);
	for (size_t i = 0; set->execution && i < set->count; i++)
		if (!set->all[i].failed && !set->all[i].value && !set->keep)
			fail(&set->all[i], &cancelled);
}

void operation_set_settle(struct operation_set *set)
{
	admission_done(&set->admission);
}

void operation_set_done(struct operation_set *set)
{
	rlmd_execution_free(set->execution);
	for (size_t i = 0; i < set->count; i++) {
		operation_done(&set->all[i]);
		free(set->all[i].degraded); /* which the report of a plan has needed */
	}
	admission_done(&set->admission);
	if (set->caller)
		set->caller->answers -= set->answers;
	free(set->all);
	*set = (struct operation_set){0};
}

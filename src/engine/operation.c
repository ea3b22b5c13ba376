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

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/stop.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/inputs.h"
#include "engine/job.h"
#include "engine/measure.h"
#include "engine/operation_end.h"
#include "engine/operation_form.h"
#include "engine/operation_set.h"
#include "engine/request.h"
#include "engine/run.h"
#include "prompt/brief.h"
#include "trace/record.h"

enum {
	FALLBACK_CONTEXT_MAX = 40000, /* bytes of the context in an answer without a sub-run */
	SYSTEM_SHORT = 64 << 10,      /* bytes of a system text that is counted at once */
	CONTEXT_PER_TOKEN = 2, /* characters of a prompt's context for a token of the window */
};

/* What models are told below the root. */
static const struct prompt_set *prompts_of(const struct operation *operation)
{
	return operation->set->caller->job->subcall_prompts;
}

/* What was asked, which nobody reads any more. */
static void drop_messages(struct operation *operation)
{
	measure_free(take_pointer(&operation->measure));
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

	return (struct rlmd_plan_usage){usage->tokens, usage->estimated};
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
	operation_form_free(take_pointer(&operation->form));
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
	struct rlmd_job *job = operation->set->caller->job;
	bool timed = duration_ms >= 0;

	operation_note_fallback(operation);
	operation_note_cut(operation, cut);
	operation_take_answer(operation, answer);
	job->call_count += timed; /* one out of a cache tells nothing of how long calls take */
	job->call_ms += timed ? duration_ms : 0;
	operation_end(operation);
}

static void ask_again(struct operation *);

static void on_verdict(void *owner, const struct answer_verdict *verdict)
{
	struct operation *operation = owner;
	struct operation_form *form = operation->form;
	struct rlmd_error err;

	operation_form_heard(form);
	if (!verdict->error && !verdict->wrong.size) {
		end_call(operation, &(struct llm_response){.text = verdict->answer}, form->cut,
			 form->duration_ms);
		return;
	}
	if (!verdict->error && operation_form_reject(form, prompts_of(operation), verdict->wrong)) {
		ask_again(operation);
		return;
	}
	error_set(&err, RLMD_ERROR_SCHEMA, "no answer satisfied the schema: %s",
		  verdict->wrong.bytes);
	operation_fail(operation, verdict->error ? verdict->error : &err);
	operation_end(operation);
}

static void on_ask(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct operation *operation = owner;

	operation->ask = NULL;
	add_usage(operation, response->usage);
	if (err) {
		operation_fail(operation, err);
		operation_end(operation);
	} else if (operation->form) {
		operation_form_check(operation->form, operation->set->caller->job, response,
				     on_verdict, operation);
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
	const struct rlmd_job *job = operation->set->caller->job;
	int64_t wish = operation->wishes ? operation->wishes->max_tokens : 0;
	int64_t window = llm_window(job->llm, model_of(operation));

	if (!wish)
		return request_output(job->llm, &job->config, model_of(operation),
				      ASK_TOKENS_QUERY);
	return wish < window ? wish : window;
}

/* All that the model sees: the system's words, what was said before, and the user's last. */
static void write_messages(struct operation *operation, struct rlmd_text system,
			   struct rlmd_text user)
{
	struct estimators *estimators = operation->set->caller->job->estimators;
	struct llm_message *message;

	operation->messages = xcalloc(operation->earlier_count + 2, sizeof *operation->messages);
	message = operation->messages;
	*message = (struct llm_message){LLM_SYSTEM, system};
	if (system.size <= SYSTEM_SHORT) {
		operation->system = scan_memo_scan(&estimators->call_systems, system);
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

enum { PLACE_SIZE = CALLER_MARK_SIZE + 24 };

static void place_of(const struct operation *operation, char out[static PLACE_SIZE])
{
	const struct operation_set *set = operation->set;

	snprintf(out, PLACE_SIZE, "%s.%zu", set->mark, (size_t)(operation - set->all));
}

static void start_ask(void *owner)
{
	struct operation *operation = owner;
	struct caller *caller = operation->set->caller;
	char place[PLACE_SIZE];
	struct ask_options options = {
		.caller = caller,
		.number = operation->number,
		.place = place,
		.reason = operation->way == WAY_SUBRUN ? NULL : operation->reason,
		.sent = on_sent,
		.request = {.model = model_of(operation),
			    .messages = operation->messages,
			    .message_count = operation->message_count,
			    .max_tokens = output_of(operation),
			    .deadline = budget_deadline(caller->budget),
			    .kind = operation->kind,
			    .depth = caller->run ? caller->depth : 0,
			    .turn = caller->run ? run_turn(caller->run) - 1 : 0,
			    .schema = operation->spec->schema},
	};

	if (operation->wishes && operation->wishes->with_temperature) {
		options.request.sampling.with_temperature = true;
		options.request.sampling.temperature = operation->wishes->temperature;
	}
	place_of(operation, place);
	operation->ask = ask_start(caller->job, &options, on_ask, operation);
}

static void send_call(struct operation *operation, enum llm_kind kind, struct rlmd_text system,
		      struct rlmd_text user)
{
	operation->kind = kind;
	write_messages(operation, system, user);
	operation->measure = measure_start(operation->set->caller->job->base, operation->messages,
					   operation->message_count, start_ask, operation);
	if (!operation->measure)
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
	operation->form = operation_form_new(prompts_of(operation), kind, schema, system, user);
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

/* The model sees the task and what fits of the context, and answers. */
static void fall_back(struct operation *operation)
{
	const struct context *context = operation->set->caller->context;
	auto_evbuffer struct evbuffer *user = evbuffer_new();
	struct memfile *file = operation->context;
	size_t size;

	if (operation->wanting) {
		admission_decline(&operation->set->admission);
		warn_fallback(operation);
	}
	operation->wanting = false;
	if (!file && context->count)
		file = context->inputs[0].file;
	if (file) {
		evbuffer_add_printf(user, "Context (%zu bytes in all):\n", memfile_size(file));
		text_repair(text_clip(memfile_text(file), FALLBACK_CONTEXT_MAX), user);
		evbuffer_add(user, "\n\n", 2);
	}
	evbuffer_add_printf(user, "Task: ");
	text_repair(operation->input, user);
	operation->user = text_drain(user, &size);
	ask(operation, operation->way == WAY_DIRECT ? LLM_DIRECT : LLM_QUERY,
	    brief_direct(prompts_of(operation)), text_from(operation->user, size));
}

static void on_child(void *owner, const struct run_result *result)
{
	struct operation *operation = owner;
	struct caller *caller = operation->set->caller;
	struct rlmd_job *job = caller->job;

	job->subrun_count++;
	job->subrun_ms += clock_ms() - operation->started;
	job->subrun_cost = money_add(job->subrun_cost,
				     budget_usage(run_budget(operation->child))->cost);
	operation->usage = usage_of_run(operation->child);
	if (result->forced) {
		caller_warn_once(caller, "A sub-run's answer was forced");
		operation_degrade(operation, xasprintf("the sub-RLM's answer was forced (%s)",
						       stop_words(result->stop)));
	}
	operation_note_cut(operation, result->cut);
	if (result->error.kind)
		operation_fail(operation, &result->error);
	else
		operation_answer(operation, result->answer);
	run_free(take_pointer(&operation->child));
	operation_end(operation);
}

static void start_child(struct operation *operation)
{
	struct caller *caller = operation->set->caller;
	struct context_input input;
	struct context own = {.inputs = &input, .count = 1};
	char place[PLACE_SIZE];
	struct run_options options = {
		.parent = caller,
		.alive = take_pointer(&operation->alive),
		.permit = take_pointer(&operation->permit),
		.depth = caller->depth + 1,
		.place = place,
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
	place_of(operation, place);
	operation->wanting = false;
	admission_share(&operation->set->admission, &options);
	budget_count_subcall(caller->budget, options.depth);
	operation->started = clock_ms();
	rlmd_call_started(operation->call);
	operation->child = run_start(caller->job, &options, on_child, operation);
	if (operation->context)
		context_input_done(&input);
}

static void on_permit(void *owner)
{
	struct operation *operation = owner;

	operation->way = admission_way(&operation->set->admission, operation->reason);
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

	operation->permit = permits_ask_worker(&caller->job->permits, caller->depth + 1, false,
					       on_permit, operation);
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
		operation_fail(operation, &err);
		operation_end(operation);
		return;
	}
	if (operation->wanting)
		operation->way = admission_way(&operation->set->admission, operation->reason);
	if (operation->way != WAY_SUBRUN) {
		fall_back(operation);
		return;
	}
	operation->alive = permits_ask_alive(&caller->job->permits, caller->depth + 1, on_alive,
					     operation);
}

/* The prompt and its context in one; of a context that no window holds head and tail, which the
 * prompt and a warning say. */
static struct rlmd_text with_context(struct operation *operation)
{
	struct caller *caller = operation->set->caller;
	struct rlmd_text context = operation->spec->context;
	int64_t max = CONTEXT_PER_TOKEN * llm_window(caller->job->llm, model_of(operation));
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	size_t size;

	if (brief_operation(prompts_of(operation), operation->input, context, max, out))
		caller_warn_once(caller,
				 "The context of an operation was longer than its model's window, "
				 "which was given its head and tail");
	operation->user = text_drain(out, &size);
	return text_from(operation->user, size);
}

static struct rlmd_text system_of(const struct operation *operation)
{
	if (operation->wishes && operation->wishes->system.size)
		return operation->wishes->system;
	return brief_query(prompts_of(operation));
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
	*ret_usage = operation->usage;
}

const struct rlmd_orchestrator operation_orchestrator = {
	.start = start,
	.cancel = cancel,
	.queues = true,
};

/*
 * A prompt is one ask. A task takes the way that its call's admission gives it: it
 * waits for a permit to compute, begins its sub-run when it has one, and asks once
 * more then, for what was left may be gone; or it is answered by one ask.
 */
#include "engine/slot.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/stop.h"
#include "engine/ask.h"
#include "engine/caller.h"
#include "engine/errand.h"
#include "engine/job.h"
#include "engine/request.h"
#include "engine/run.h"
#include "prompt/brief.h"
#include "trace/record.h"

enum {
	FALLBACK_CONTEXT_MAX = 40000, /* bytes of the context in an answer without a sub-run */
	CONTEXT_PER_TOKEN = 2, /* characters of a prompt's context for a token of the window */
};

static void wait_over(struct slot *slot)
{
	slot->waiting = false;
	if (slot->errand->caller->run)
		run_wait_over(slot->errand->caller->run);
}

static struct rlmd_plan_usage usage_of_run(const struct run *run)
{
	const struct budget_usage *usage = budget_usage(run_budget(run));

	return (struct rlmd_plan_usage){usage->tokens, usage->estimated};
}

static struct rlmd_plan_usage usage_of_call(struct llm_usage usage)
{
	return (struct rlmd_plan_usage){usage.input + usage.output, usage.estimated};
}

void slot_cancel(struct slot *slot)
{
	if (slot->ask)
		slot->usage = usage_of_call(ask_cancel(take_pointer(&slot->ask)));
	if (slot->child) {
		run_halt(slot->child);
		slot->usage = usage_of_run(slot->child);
		run_free(take_pointer(&slot->child));
	}
	permit_free(take_pointer(&slot->permit));
	free(take_pointer(&slot->user));
	free(take_pointer(&slot->messages));
	if (slot->waiting)
		wait_over(slot);
}

void slot_done(struct slot *slot)
{
	slot_cancel(slot);
	memfile_unref(take_pointer(&slot->context));
	free(take_pointer(&slot->value));
}

static void slot_fail(struct slot *slot, const struct rlmd_error *err)
{
	slot->failed = true;
	slot->error = err->kind;
	slot->value = xstrdup(err->text);
	slot->value_size = strlen(slot->value);
}

/* Answers are in memory until the call is over. */
static void slot_keep(struct slot *slot, struct evbuffer *answer)
{
	struct errand *errand = slot->errand;
	struct caller *caller = errand->caller;
	size_t size = evbuffer_get_length(answer);
	struct rlmd_error err;

	if (size <= caller->answers_max - caller->answers) {
		caller->answers += size;
		errand->answers += size;
		slot->value = text_drain(answer, &slot->value_size);
		return;
	}
	error_set(&err, RLMD_ERROR_INPUT,
		  "the answers that are waited for may have %zu MiB together, which this one, of "
		  "%zu bytes, exceeds",
		  caller->answers_max >> 20, size);
	slot_fail(slot, &err);
}

/* One more way in which the answer is less than what was asked for; takes `why`. */
static void slot_degrade(struct slot *slot, char *why)
{
	char *before = slot->degraded;

	slot->degraded = why;
	if (!before)
		return;
	slot->degraded = xasprintf("%s; %s", before, why);
	free(before);
	free(why);
}

static void note_cut(struct slot *slot, bool cut)
{
	if (cut)
		slot_degrade(slot, xstrdup("cut at its length limit"));
}

static void note_fallback(struct slot *slot)
{
	switch (slot->way) {
	case WAY_SUBRUN:
		return;
	case WAY_DOWNGRADED:
		slot_degrade(slot, xasprintf("downgraded to llm_query (%s)", slot->reason));
		return;
	case WAY_DIRECT:
		slot_degrade(slot, xasprintf("no sub-RLM was started (%s), answered directly",
					     slot->reason));
		return;
	}
}

/* The text is the answer's, and nothing else: code reads it. What is said about it stands beside.
 */
static void slot_answer(struct slot *slot, struct rlmd_text text)
{
	struct caller *caller = slot->errand->caller;
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	text_repair(text, out);
	slot_keep(slot, out);
	if (slot->degraded && !slot->failed)
		record_degraded(caller->job->trace, caller->id,
				slot->operation->mode == RLMD_OPERATION_RUN, slot->degraded);
}

static void on_ask(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	struct slot *slot = owner;
	struct rlmd_job *job = slot->errand->caller->job;

	slot->ask = NULL;
	slot->usage = usage_of_call(response->usage);
	if (err) {
		slot_fail(slot, err);
	} else {
		note_fallback(slot);
		note_cut(slot, response->finish == LLM_FINISH_LENGTH);
		slot_answer(slot, response->text);
		job->call_count++;
		job->call_ms += response->duration_ms;
	}
	errand_on_slot(slot);
}

static void on_sent(void *owner)
{
	struct slot *slot = owner;

	rlmd_call_started(slot->call);
}

static int number_of(struct slot *slot)
{
	if (!slot->numbered)
		slot->number = slot->errand->caller->calls++;
	slot->numbered = true;
	return slot->number;
}

static const char *model_of(const struct slot *slot)
{
	return slot->operation->model ? slot->operation->model : slot->errand->caller->model;
}

static int64_t output_of(const struct slot *slot)
{
	const struct rlmd_job *job = slot->errand->caller->job;
	int64_t wish = slot->wishes ? slot->wishes->max_tokens : 0;
	int64_t window = llm_window(job->llm, model_of(slot));

	if (!wish)
		return request_output(job->llm, &job->config, model_of(slot), ASK_TOKENS_QUERY);
	return wish < window ? wish : window;
}

/* All that the model sees: the system's words, what was said before, and the user's last. */
static size_t write_messages(struct slot *slot, struct rlmd_text system, struct rlmd_text user)
{
	size_t count = 0;

	slot->messages = xcalloc(slot->earlier_count + 2, sizeof *slot->messages);
	slot->messages[count++] = (struct llm_message){LLM_SYSTEM, system};
	for (size_t i = 0; i < slot->earlier_count; i++)
		slot->messages[count++] = (struct llm_message){i % 2 ? LLM_ASSISTANT : LLM_USER,
							       slot->earlier[i]};
	slot->messages[count++] = (struct llm_message){LLM_USER, user};
	return count;
}

static void slot_ask(struct slot *slot, enum llm_kind kind, struct rlmd_text system,
		     struct rlmd_text user)
{
	struct caller *caller = slot->errand->caller;
	size_t message_count = write_messages(slot, system, user);
	struct ask_options options = {
		.caller = caller,
		.number = number_of(slot),
		.reason = slot->way == WAY_SUBRUN ? NULL : slot->reason,
		.sent = on_sent,
		.request = {.model = model_of(slot),
			    .messages = slot->messages,
			    .message_count = message_count,
			    .max_tokens = output_of(slot),
			    .deadline = budget_deadline(caller->budget),
			    .kind = kind,
			    .depth = caller->run ? caller->depth : 0,
			    .turn = caller->run ? run_turn(caller->run) - 1 : 0},
	};

	if (slot->wishes && slot->wishes->with_temperature) {
		options.request.sampling.with_temperature = true;
		options.request.sampling.temperature = slot->wishes->temperature;
	}
	slot->ask = ask_start(caller->job, &options, on_ask, slot);
}

static void warn_fallback(struct slot *slot)
{
	auto_free char *text = xasprintf(
		slot->way == WAY_DOWNGRADED ? "A sub-run was downgraded to llm_query: %s"
					    : "A sub-run was not started and answered directly: %s",
		slot->reason);

	caller_warn_once(slot->errand->caller, text);
}

/* The model sees the task and what fits of the context, and answers. */
static void fall_back(struct slot *slot)
{
	const struct context *context = slot->errand->caller->context;
	auto_evbuffer struct evbuffer *user = evbuffer_new();
	struct memfile *file = slot->context;
	size_t size;

	if (slot->wanting) {
		admission_decline(&slot->errand->admission);
		warn_fallback(slot);
	}
	slot->wanting = false;
	if (!file && context->count)
		file = context->inputs[0].file;
	if (file) {
		evbuffer_add_printf(user, "Context (%zu bytes in all):\n", memfile_size(file));
		text_repair(text_clip(memfile_text(file), FALLBACK_CONTEXT_MAX), user);
		evbuffer_add(user, "\n\n", 2);
	}
	evbuffer_add_printf(user, "Task: ");
	text_repair(slot->input, user);
	slot->user = text_drain(user, &size);
	slot_ask(slot, slot->way == WAY_DIRECT ? LLM_DIRECT : LLM_QUERY,
		 brief_direct(slot->errand->caller->job->subcall_prompts),
		 text_from(slot->user, size));
}

static void on_child(void *owner, const struct run_result *result)
{
	struct slot *slot = owner;
	struct caller *caller = slot->errand->caller;
	struct rlmd_job *job = caller->job;

	job->subrun_count++;
	job->subrun_ms += clock_ms() - slot->started;
	job->subrun_cost = money_add(job->subrun_cost, budget_usage(run_budget(slot->child))->cost);
	slot->usage = usage_of_run(slot->child);
	if (result->forced) {
		caller_warn_once(caller, "A sub-run's answer was forced");
		slot_degrade(slot, xasprintf("the sub-RLM's answer was forced (%s)",
					     stop_words(result->stop)));
	}
	note_cut(slot, result->cut);
	if (result->error.kind)
		slot_fail(slot, &result->error);
	else
		slot_answer(slot, result->answer);
	run_free(take_pointer(&slot->child));
	wait_over(slot);
	errand_on_slot(slot);
}

static void start_child(struct slot *slot)
{
	struct caller *caller = slot->errand->caller;
	struct context_input input;
	struct context own = {.inputs = &input, .count = 1};
	struct run_options options = {
		.parent = caller,
		.permit = take_pointer(&slot->permit),
		.depth = caller->depth + 1,
		.task = slot->input,
		.context = caller->context,
		.model = slot->operation->model,
	};

	if (slot->context) {
		input = context_input_of("context", slot->context);
		options.context = &own;
	}
	slot->wanting = false;
	admission_share(&slot->errand->admission, &options);
	budget_count_subcall(caller->budget, options.depth);
	slot->started = clock_ms();
	rlmd_call_started(slot->call);
	slot->child = run_start(caller->job, &options, on_child, slot);
	if (slot->context)
		context_input_done(&input);
}

static void on_permit(void *owner)
{
	struct slot *slot = owner;

	slot->way = admission_way(&slot->errand->admission, slot->reason);
	if (slot->way == WAY_SUBRUN) {
		start_child(slot);
		return;
	}
	permit_free(take_pointer(&slot->permit));
	wait_over(slot);
	fall_back(slot);
}

/* An operation brings its context as text; a call of code, as a memory file. */
static bool take_context(struct slot *slot, struct rlmd_error *err)
{
	struct rlmd_text context = slot->operation->context;

	if (slot->context || !context.bytes)
		return true;
	slot->context = memfile_new_private("context");
	return memfile_append(slot->context, context, err) && memfile_seal(slot->context, err);
}

static void start_task(struct slot *slot)
{
	struct caller *caller = slot->errand->caller;
	struct rlmd_error err;

	if (!take_context(slot, &err)) {
		slot_fail(slot, &err);
		errand_on_slot(slot);
		return;
	}
	if (slot->wanting)
		slot->way = admission_way(&slot->errand->admission, slot->reason);
	if (slot->way != WAY_SUBRUN) {
		fall_back(slot);
		return;
	}
	slot->waiting = true;
	if (caller->run)
		run_wait(caller->run);
	slot->permit = permits_ask_worker(&caller->job->permits, caller->depth + 1, false,
					  on_permit, slot);
}

/* The prompt and its context in one; of a context that no window holds head and tail, which the
 * prompt and a warning say. */
static struct rlmd_text with_context(struct slot *slot)
{
	struct caller *caller = slot->errand->caller;
	struct rlmd_text context = slot->operation->context;
	int64_t max = CONTEXT_PER_TOKEN * llm_window(caller->job->llm, model_of(slot));
	auto_evbuffer struct evbuffer *out = evbuffer_new();
	size_t size;

	if (brief_operation(caller->job->subcall_prompts, slot->input, context, max, out))
		caller_warn_once(caller,
				 "The context of an operation was longer than its model's window, "
				 "which was given its head and tail");
	slot->user = text_drain(out, &size);
	return text_from(slot->user, size);
}

static struct rlmd_text system_of(const struct slot *slot)
{
	if (slot->wishes && slot->wishes->system.size)
		return slot->wishes->system;
	return brief_query(slot->errand->caller->job->subcall_prompts);
}

void slot_start(struct slot *slot, struct rlmd_text input, struct rlmd_call *call)
{
	slot->input = input;
	slot->call = call;
	if (slot->operation->mode == RLMD_OPERATION_RUN)
		start_task(slot);
	else
		slot_ask(slot, LLM_QUERY, system_of(slot),
			 slot->operation->context.bytes ? with_context(slot) : input);
}

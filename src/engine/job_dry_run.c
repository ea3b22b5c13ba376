/* What a task would begin with, and what it could come to at most: nobody is asked. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "engine/ask.h"
#include "engine/dry_run_files.h"
#include "engine/job.h"
#include "engine/job_options.h"
#include "engine/job_plan_dry_run.h"
#include "engine/request.h"
#include "engine/reserve.h"
#include "prompt/brief.h"
#include "prompt/conversation.h"
#include "trace/result.h"

/* What a run says first, with what it has set aside and counted by then. */
static void first_request(struct conversation *conversation, const struct rlmd_job *job,
			  const struct brief *brief, struct budget *budget)
{
	auto_evbuffer struct evbuffer *code = evbuffer_new();
	struct draft draft = draft_new(), look = draft_new();
	struct reserve reserve;

	brief_system(brief, NULL, &draft);
	draft_say(&draft, LLM_SYSTEM, conversation);
	reserve_set(&reserve, job, budget, job->model,
		    brief_forced_size(brief, estimators_look(job->estimators, job->model)));
	if (brief_demonstration(brief, code, &look)) {
		brief_opening(brief, &draft);
		draft_say(&draft, LLM_USER, conversation);
		draft_say(&look, LLM_ASSISTANT, conversation);
		budget_count_iteration(budget);
		brief_first_turn(brief, text_of("(what the block prints)"), &draft);
	} else {
		budget_count_iteration(budget);
		brief_first_turn_bare(brief, &draft);
	}
	draft_say(&draft, LLM_USER, conversation);
	reserve_drop(&reserve);
	draft_free(&draft);
	draft_free(&look);
}

/* All tokens of one kind, asked of one model; false: it has no price. */
static bool dearest(const struct rlmd_job *job, const char *model, int64_t tokens,
		    int64_t *ret_cost)
{
	int64_t input;

	if (!llm_price(job->llm, model, tokens, 0, &input) ||
	    !llm_price(job->llm, model, 0, tokens, ret_cost))
		return false;
	if (*ret_cost < input)
		*ret_cost = input;
	return true;
}

/* The most that the limits allow: code may spend all tokens, on what is the dearest. */
static json_t *worst_cost(const struct rlmd_job *job)
{
	const struct budget_limits *limits = &job->config.limits;
	int64_t cost, calls;

	if (!dearest(job, job->model, limits->tokens, &cost) ||
	    !dearest(job, job->subcall_model, limits->tokens, &calls))
		return json_null();
	if (cost < calls)
		cost = calls;
	if (cost > limits->cost)
		cost = limits->cost;
	return result_cost(cost != BUDGET_UNLIMITED, cost);
}

/* --- whether it fits ------------------------------------------------------------ */

/*
 * All inputs read once by calls, each a whole reply, between two turns of the root: what somebody
 * means to pay who has all of his files looked at.
 */
struct full_reading {
	int64_t calls, tokens, cost;
	bool cost_known;
};

static void add_calls(struct full_reading *reading, const struct rlmd_job *job, const char *model,
		      int64_t calls, int64_t input, int64_t output)
{
	int64_t cost;

	reading->cost_known &= llm_price(job->llm, model, input, calls * output, &cost);
	reading->calls += calls;
	reading->tokens = money_add(reading->tokens, input + calls * output);
	reading->cost = money_add(reading->cost, cost);
}

static struct full_reading reading_of(const struct rlmd_job *job, int64_t first)
{
	struct full_reading reading = {.cost_known = true};
	int64_t tokens = 0, piece = brief_piece(job->llm, job->subcall_model);

	for (size_t i = 0; i < job->context.count; i++)
		tokens += text_scan_tokens(memfile_scan(job->context.inputs[i].file));
	add_calls(&reading, job, job->model, 2, 2 * first,
		  request_output(job->llm, &job->config, job->model, ASK_TOKENS_TURN));
	add_calls(&reading, job, job->subcall_model, (tokens + piece - 1) / piece, tokens,
		  request_output(job->llm, &job->config, job->subcall_model, ASK_TOKENS_QUERY));
	return reading;
}

static void misfit(json_t *misfits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void misfit(json_t *misfits, const char *fmt, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, fmt);
	vsnprintf(text, sizeof text, fmt, arguments);
	va_end(arguments);
	json_array_append_new(misfits, json_string(text));
}

static void add_reading(const struct rlmd_job *job, int64_t first, json_t *object)
{
	const struct budget_limits *limits = &job->config.limits;
	struct full_reading reading = reading_of(job, first);
	json_t *misfits = json_array();
	char cost[32], limit[32];

	money_format(reading.cost, cost);
	money_format(limits->cost, limit);
	if (reading.cost > limits->cost)
		misfit(misfits, "it may cost %s, and --max-cost is %s", cost, limit);
	if (reading.tokens > limits->tokens)
		misfit(misfits, "it may take %" PRId64 " tokens, and --max-tokens is %" PRId64,
		       reading.tokens, limits->tokens);
	if (reading.calls > limits->calls)
		misfit(misfits, "it takes %" PRId64 " calls, and --max-calls is %" PRId64,
		       reading.calls, limits->calls);
	json_object_set_new(object, "fullReading",
			    json_pack("{s:I, s:I, s:o}", "calls", (json_int_t)reading.calls,
				      "tokens", (json_int_t)reading.tokens, "cost",
				      result_cost(reading.cost_known, reading.cost)));
	json_object_set_new(object, "fits", json_boolean(!json_array_size(misfits)));
	json_object_set_new(object, "misfits", misfits);
}

/* --- what is shown --------------------------------------------------------------- */

static json_t *contexts_of(const struct context *context)
{
	json_t *contexts = json_array();

	for (size_t i = 0; i < context->count; i++) {
		const struct text_scan *scan = memfile_scan(context->inputs[i].file);
		json_t *input = json_pack(
			"{s:s, s:I, s:I, s:I, s:s}", "name", context->inputs[i].name, "length",
			(json_int_t)scan->characters, "bytes", (json_int_t)scan->bytes,
			"tokenEstimate", (json_int_t)text_scan_tokens(scan), "contentType",
			context->inputs[i].type);

		dry_run_add_files(input, context->inputs[i].files);
		json_array_append_new(contexts, input);
	}
	return contexts;
}

static json_t *object_of(const struct rlmd_job *job, const struct context *context,
			 const struct conversation *conversation)
{
	const struct llm_message *messages = conversation->messages;
	size_t count = conversation->count;
	int64_t first = 0;
	json_t *object;

	for (size_t i = 0; i < count; i++)
		first += text_tokens(messages[i].text);
	object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:s}", "provider",
			   llm_provider(job->llm, job->model), "model", job->model, "subcallModel",
			   job->subcall_model, "contexts", contexts_of(context), "systemPrompt",
			   json_from_text(messages[0].text), "firstTurn",
			   json_from_text(messages[count - 1].text), "firstRequestTokens",
			   (json_int_t)first, "worstCaseCost", worst_cost(job), "priceTable",
			   llm_price_date(job->llm));
	add_reading(job, first, object);
	request_tell(job->llm, &job->config, job->model, ASK_TOKENS_TURN, object);
	if (count > 2) {
		json_object_set_new(object, "opening", json_from_text(messages[1].text));
		json_object_set_new(object, "demonstration", json_from_text(messages[2].text));
	}
	return object;
}

static json_t *show_task(const struct rlmd_job *job)
{
	struct conversation conversation = {0};
	struct budget *budget = budget_new(&job->config.limits, NULL, NULL);
	struct brief brief = {
		.facts = job_facts(job),
		.prompts = job->prompts,
		.budget = budget,
		.context = &job->context,
		.task = text_from(job->task, job->task_size),
		.turn = 1,
	};
	json_t *object;

	first_request(&conversation, job, &brief, budget);
	object = object_of(job, &job->context, &conversation);
	conversation_done(&conversation);
	budget_free(budget);
	return object;
}

static void add_common(struct rlmd_job *job, json_t *object)
{
	json_auto_t *warnings = llm_take_warnings(job->llm);

	json_object_set_new(
		object, "maxCost",
		result_cost(job->config.limits.cost != BUDGET_UNLIMITED, job->config.limits.cost));
	json_array_extend(job->notes, warnings);
	if (json_array_size(job->notes))
		json_object_set(object, "warnings", job->notes);
}

char *rlmd_job_dry_run(struct rlmd_engine *engine, const struct rlmd_job_options *options,
		       struct rlmd_error *err)
{
	struct rlmd_job job = {.engine = engine};
	json_auto_t *object = NULL;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a job needs an engine");
		return NULL;
	}
	if (job_take_options(&job, options, JOB_TO_SHOW, err))
		object = job.file ? job_plan_show(&job, err) : show_task(&job);
	if (object)
		add_common(&job, object);
	job_drop_options(&job);
	return object ? json_to_string(object) : NULL;
}

/* What a task would begin with, and what it could come to at most: nobody is asked. */
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/ask.h"
#include "engine/dry_run_files.h"
#include "engine/first_request.h"
#include "engine/full_reading.h"
#include "engine/job.h"
#include "engine/job_options.h"
#include "engine/job_plan_dry_run.h"
#include "engine/request.h"
#include "trace/result.h"

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

static void add_reading(const struct rlmd_job *job, int64_t first, json_t *object)
{
	struct full_reading reading = {0};
	int64_t tokens = 0;

	for (size_t i = 0; i < job->context.count; i++)
		tokens += text_scan_tokens(memfile_scan(job->context.inputs[i].file));
	full_reading_run(&reading, job, first, tokens);
	full_reading_tell(&reading, &job->config.limits, object);
}

static json_t *object_of(const struct rlmd_job *job, const struct conversation *conversation)
{
	const struct llm_message *messages = conversation->messages;
	size_t count = conversation->count;
	int64_t first = first_request_tokens(conversation);
	json_t *object;

	object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:s}", "provider",
			   llm_provider(job->llm, job->model), "model", job->model, "subcallModel",
			   job->subcall_model, "contexts", contexts_of(&job->context),
			   "systemPrompt", json_from_text(messages[0].text), "firstTurn",
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
	json_t *object;

	first_request(&conversation, job, &job->context, text_from(job->task, job->task_size));
	object = object_of(job, &conversation);
	conversation_done(&conversation);
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

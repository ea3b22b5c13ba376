/* A dry run shows the first request of a job and its cost at most; no model is asked. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "async/metrics.h"
#include "async/plan.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/money.h"
#include "base/number.h"
#include "engine/ask.h"
#include "engine/job.h"
#include "engine/reserve.h"
#include "prompt/brief.h"
#include "source/file_index.h"
#include "trace/result.h"

/* --- the first request -------------------------------------------------------------- */

static void say_first_request(const struct scope *scope, const struct brief *brief,
			      struct budget *budget, struct conversation *conversation)
{
	auto_evbuffer struct evbuffer *code = buffer_new();
	struct draft draft = draft_new(), look = draft_new();
	struct reserve reserve;

	brief_system(brief, NULL, &draft);
	draft_say(&draft, LLM_SYSTEM, conversation);
	reserve_set(&reserve, scope, budget, scope->model,
		    brief_forced_size(brief, estimators_look(scope->estimators, scope->model)));
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

static void first_request(struct conversation *conversation, const struct scope *scope,
			  const struct context *context, struct rlmd_text task)
{
	struct budget *budget = budget_new(&scope->config.limits, NULL, NULL);
	struct brief brief = {
		.facts = scope_facts(scope),
		.prompts = scope->prompts,
		.budget = budget,
		.context = context,
		.task = task,
		.turn = 1,
	};

	say_first_request(scope, &brief, budget, conversation);
	budget_free(budget);
}

static int64_t first_request_tokens(const struct conversation *conversation)
{
	int64_t tokens = 0;

	for (size_t i = 0; i < conversation->count; i++)
		tokens += text_tokens(conversation->messages[i].text);
	return tokens;
}

/*
 * --- what it takes to have everything read once --------------------------------------------
 *
 * A run reads its inputs by calls of the size that its model is told to make, each with a whole
 * reply, between two turns.
 */

/* Zeroed: nothing so far. */
struct read_once {
	int64_t calls, tokens, cost; /* saturating */
	bool priceless;              /* a model has no price */
};

static void read_once_calls(struct read_once *reading, const struct scope *scope, const char *model,
			    int64_t calls, int64_t input, int64_t output)
{
	int64_t cost = 0;

	reading->priceless |= !llm_price(scope->llm, model, input, calls * output, &cost);
	reading->calls += calls;
	reading->tokens = money_add(reading->tokens, input + calls * output);
	reading->cost = money_add(reading->cost, cost);
}

static void read_once_run(struct read_once *reading, const struct scope *scope, int64_t first,
			  int64_t inputs)
{
	int64_t piece = brief_piece(scope->llm, scope->subcall_model);

	read_once_calls(reading, scope, scope->model, 2, 2 * first,
			scope_output(scope, scope->model, SCOPE_OUTPUT_TURN));
	read_once_calls(reading, scope, scope->subcall_model, (inputs + piece - 1) / piece, inputs,
			scope_output(scope, scope->subcall_model, SCOPE_OUTPUT_QUERY));
}

static void misfit(json_t *misfits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void misfit(json_t *misfits, const char *fmt, ...)
{
	char text[160];
	va_list arguments;

	va_start(arguments, fmt);
	vsnprintf(text, sizeof text, fmt, arguments);
	va_end(arguments);
	json_append(misfits, json_make_string(text));
}

static void read_once_tell(const struct read_once *reading, const struct budget_limits *limits,
			   json_t *object)
{
	json_t *misfits = json_make_array();
	char cost[32], limit[32];

	money_format(reading->cost, cost);
	money_format(limits->cost, limit);
	if (reading->cost > limits->cost)
		misfit(misfits, "it may cost %s, and max-cost is %s", cost, limit);
	if (reading->tokens > limits->tokens)
		misfit(misfits, "it may take %" PRId64 " tokens, and max-tokens is %" PRId64,
		       reading->tokens, limits->tokens);
	if (reading->calls > limits->calls)
		misfit(misfits, "it takes %" PRId64 " calls, and max-calls is %" PRId64,
		       reading->calls, limits->calls);
	json_put(object, "fullReading",
		 json_make("{s:I, s:I, s:o}", "calls", (json_int_t)reading->calls, "tokens",
			   (json_int_t)reading->tokens, "cost",
			   result_cost(!reading->priceless, reading->cost)));
	json_put(object, "fits", json_boolean(!json_array_size(misfits)));
	json_put(object, "misfits", misfits);
}

/* --- files of an input -------------------------------------------------------------- */

enum { FOLDER_DEPTH = 2 };

/* "src/net/" of "src/net/http/call.c" */
static struct rlmd_text folder_of(struct rlmd_text path)
{
	size_t size = 0;
	int depth = 0;

	for (size_t i = 0; i < path.size && depth < FOLDER_DEPTH; i++)
		if (path.bytes[i] == '/') {
			size = i + 1;
			depth++;
		}
	return text_from(path.bytes, size);
}

static void add_to(json_t *object, const char *key, int64_t more)
{
	json_put(object, key, json_make_integer(json_get_integer(object, key, 0) + more));
}

static void count_in(json_t *folders, const struct file_entry *file)
{
	struct rlmd_text path = folder_of(file->path);
	json_t *folder = json_object_getn(folders, path.bytes, path.size);

	if (!folder) {
		folder = json_make("{s:o, s:i, s:i, s:i}", "path", json_from_text(path), "files", 0,
				   "bytes", 0, "tokens", 0);
		json_put_at(folders, path, folder);
	}
	add_to(folder, "files", 1);
	add_to(folder, "bytes", (int64_t)file->bytes);
	add_to(folder, "tokens", file->tokens);
}

static int by_tokens(const void *left, const void *right)
{
	int64_t a = json_get_integer(*(json_t *const *)left, "tokens", 0);
	int64_t b = json_get_integer(*(json_t *const *)right, "tokens", 0);

	return a < b ? 1 : a > b ? -1 : 0;
}

/* Those that have as many stay in the order in which they came. */
static json_t *sorted(const json_t *folders)
{
	size_t count = json_object_size(folders), i = 0;
	const json_t **all = xcalloc(count + 1, sizeof *all);
	json_t *array = json_make_array(), *folder;
	const char *key;

	json_object_foreach ((json_t *)folders, key, folder)
		all[i++] = folder;
	qsort(all, count, sizeof *all, by_tokens);
	for (i = 0; i < count; i++)
		json_append(array, json_incref((json_t *)all[i]));
	free(all);
	return array;
}

/*
 * Adds to `object`, an input's, where it was made of files: "files", an array of `path`, `bytes`
 * and `tokens` in the order of the input, and "folders", the same sums with `files`, how many they
 * are, by the first two folders of each path ("" for files in none), the largest first.
 */
static void add_files(json_t *object, const struct file_index *index)
{
	size_t count = file_index_count(index);
	json_t *files, *folders;

	if (!count)
		return;
	files = json_make_array();
	folders = json_make_object();
	for (size_t i = 0; i < count; i++) {
		struct file_entry file = file_index_get(index, i);

		json_append(files,
			    json_make("{s:o, s:I, s:I}", "path", json_from_text(file.path), "bytes",
				      (json_int_t)file.bytes, "tokens", (json_int_t)file.tokens));
		count_in(folders, &file);
	}
	json_put(object, "files", files);
	json_put(object, "folders", sorted(folders));
	json_decref(folders);
}

/* --- a plan: carried out with operations that do nothing --------------------------------- */

struct plan_dry_run {
	const struct rlmd_job *job;   /* lent */
	const struct rlmd_plan *plan; /* lent */
	const struct llm *llm;        /* lent */
	const char *model;            /* lent: of calls that name none */
	const char *dearer;           /* lent: of the two that runs ask */
	json_t *operations;           /* owned */
	size_t runs;
	int64_t tokens, cost; /* at most; saturating */
	bool cost_known;
	struct read_once reading;
};

static void add_cost(struct plan_dry_run *dry_run, const char *model, int64_t input, int64_t output)
{
	int64_t cost = 0;

	dry_run->cost_known &= llm_price(dry_run->llm, model, input, output, &cost);
	dry_run->cost = money_add(dry_run->cost, cost);
	dry_run->tokens = metrics_sum(dry_run->tokens, metrics_sum(input, output));
}

/* Its context is read once, as that of a run of its own. */
static void read_operation(struct plan_dry_run *dry_run, const struct rlmd_operation *operation)
{
	struct conversation conversation = {0};
	struct context context = {0};
	struct rlmd_error err;

	if (operation->context.bytes)
		context_from_text(operation->context, &context, &err);
	first_request(&conversation, &dry_run->job->scope, &context, operation->input);
	read_once_run(&dry_run->reading, &dry_run->job->scope, first_request_tokens(&conversation),
		      text_tokens(operation->context));
	conversation_done(&conversation);
	context_done(&context);
}

/* Of a run nobody knows the end but the budget; what is put into an input is an answer at most. */
static int64_t add_worst(struct plan_dry_run *dry_run, const struct rlmd_operation *operation,
			 const char *model)
{
	size_t index = (size_t)(operation - dry_run->plan->operations);
	struct rlmd_text input = operation->input;
	struct rlmd_text context = operation->context;
	int64_t tokens = text_tokens(input) + text_tokens(context);
	int64_t responses = dry_run->plan->filled[index] ? (int64_t)operation->depends_count : 0;
	int64_t output = scope_output(&dry_run->job->scope, model, SCOPE_OUTPUT_QUERY);

	if (operation->mode == RLMD_OPERATION_RUN) {
		dry_run->runs++;
		add_cost(dry_run, dry_run->dearer, 0, dry_run->job->scope.config.limits.tokens);
		read_operation(dry_run, operation);
	} else {
		add_cost(dry_run, model, tokens + responses * output, output);
		read_once_calls(&dry_run->reading, &dry_run->job->scope, model, 1,
				tokens + responses * output, output);
	}
	return tokens;
}

static void on_start(void *owner, const struct rlmd_operation *operation, struct rlmd_text input,
		     struct rlmd_call *call)
{
	struct plan_dry_run *dry_run = owner;
	const struct rlmd_plan *plan = dry_run->plan;
	const char *model = operation->model ? operation->model : dry_run->model;
	size_t index = (size_t)(operation - plan->operations), needs;
	const uint32_t *others = plan_others(&plan->dependencies, index, &needs);
	bool race = plan->strategy == RLMD_PLAN_SPECULATIVE;
	json_t *depends = json_make_array();

	(void)input;
	for (size_t i = 0; plan->ordered && i < needs; i++)
		json_append(depends, json_make_string(plan->operations[others[i]].id));
	json_append(dry_run->operations,
		    json_make("{s:o, s:s, s:s, s:s, s:o, s:I}", "model",
			      json_from_text(text_of(model)), "id", operation->id, "type",
			      metrics_type_name(operation->type), "mode",
			      operation->mode == RLMD_OPERATION_RUN ? "rlm" : "llm", "dependsOn",
			      depends, "inputTokens",
			      (json_int_t)add_worst(dry_run, operation, model)));
	rlmd_call_done(call, &(struct rlmd_plan_answer){
				     .size = sizeof(struct rlmd_plan_answer),
				     .error = race ? RLMD_PLAN_ERROR_OPERATION : RLMD_PLAN_OK,
			     });
}

static void carry_out(struct plan_dry_run *dry_run, struct event_base *base)
{
	const struct rlmd_plan_config config = {
		.size = sizeof config,
		.max_parallel = 1,
		.timeout_ms = RLMD_PLAN_NO_TIMEOUT,
	};
	const struct rlmd_orchestrator orchestrator = {
		.size = sizeof orchestrator,
		.start = on_start,
		.owner = dry_run,
	};
	struct rlmd_execution_options options = {
		.size = sizeof options,
		.config = &config,
		.orchestrator = &orchestrator,
	};
	struct rlmd_execution *execution = rlmd_execution_start(base, dry_run->plan, &options,
								NULL);

	event_base_dispatch(base);
	rlmd_execution_free(execution);
}

static const char *dearer_of(const struct llm *llm, const char *one, const char *other)
{
	int64_t cost = 0, other_cost = 0;

	llm_price(llm, one, 0, 1000, &cost);
	return !llm_price(llm, other, 0, 1000, &other_cost) || other_cost > cost ? other : one;
}

static json_t *plan_object(const struct rlmd_job *job, const struct plan_dry_run *dry_run)
{
	const struct budget_limits *limits = &job->scope.config.limits;
	json_t *object = json_make(
		"{s:s, s:o, s:o, s:s, s:s, s:i, s:I, s:o, s:I, s:o}", "provider",
		llm_provider(job->scope.llm, job->scope.model), "model",
		json_from_text(text_of(job->scope.model)), "subcallModel",
		json_from_text(text_of(job->scope.subcall_model)), "priceTable",
		llm_price_date(job->scope.llm), "strategy",
		metrics_strategy_name(dry_run->plan->strategy), "maxParallel",
		job->scope.config.max_parallel, "runs", (json_int_t)dry_run->runs, "operations",
		dry_run->operations, "worstCaseTokens",
		(json_int_t)int64_min(dry_run->tokens, limits->tokens), "worstCaseCost",
		result_cost(dry_run->cost_known, int64_min(dry_run->cost, limits->cost)));
	json_int_t parallel = (json_int_t)rlmd_plan_file_config(job->plan.file)->max_parallel;

	if (parallel)
		json_put(object, "maxParallel", json_make_integer(parallel));
	read_once_tell(&dry_run->reading, limits, object);
	scope_show(&job->scope, job->scope.model, SCOPE_OUTPUT_QUERY, object);
	return object;
}

/* On a loop of its own: nothing else may happen meanwhile. */
static json_t *show_plan(const struct rlmd_job *job, struct rlmd_error *err)
{
	struct plan_dry_run dry_run = {
		.job = job,
		.plan = job_plan(job),
		.llm = job->scope.llm,
		.model = job->scope.model,
		.dearer = dearer_of(job->scope.llm, job->scope.model, job->scope.subcall_model),
		.cost_known = true,
	};
	struct event_base *base = loop_new();

	if (!base) {
		error_set(err, RLMD_ERROR_INTERNAL, "cannot make an event loop");
		return NULL;
	}
	dry_run.operations = json_make_array();
	carry_out(&dry_run, base);
	event_base_free(base);
	return plan_object(job, &dry_run);
}

/* --- a task --------------------------------------------------------------------------- */

/* All tokens of one kind, asked of one model; false: it has no price. */
static bool dearest(const struct rlmd_job *job, const char *model, int64_t tokens,
		    int64_t *ret_cost)
{
	int64_t input;

	if (!llm_price(job->scope.llm, model, tokens, 0, &input) ||
	    !llm_price(job->scope.llm, model, 0, tokens, ret_cost))
		return false;
	if (*ret_cost < input)
		*ret_cost = input;
	return true;
}

/* The most that the limits allow: code may spend all tokens, on what is the dearest. */
static json_t *worst_cost(const struct rlmd_job *job)
{
	const struct budget_limits *limits = &job->scope.config.limits;
	int64_t cost, calls;

	if (!dearest(job, job->scope.model, limits->tokens, &cost) ||
	    !dearest(job, job->scope.subcall_model, limits->tokens, &calls))
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
	json_t *contexts = json_make_array();

	for (size_t i = 0; i < context->count; i++) {
		const struct text_scan *scan = memfile_scan(context->inputs[i].file);
		json_t *input = json_make(
			"{s:s, s:I, s:I, s:I, s:s}", "name", context->inputs[i].name, "length",
			(json_int_t)scan->characters, "bytes", (json_int_t)scan->bytes,
			"tokenEstimate", (json_int_t)text_scan_tokens(scan), "contentType",
			context->inputs[i].type);

		add_files(input, context->inputs[i].files);
		json_append(contexts, input);
	}
	return contexts;
}

static void add_reading(const struct rlmd_job *job, int64_t first, json_t *object)
{
	struct read_once reading = {0};
	int64_t tokens = 0;

	for (size_t i = 0; i < job->task.context.count; i++)
		tokens += text_scan_tokens(memfile_scan(job->task.context.inputs[i].file));
	read_once_run(&reading, &job->scope, first, tokens);
	read_once_tell(&reading, &job->scope.config.limits, object);
}

static json_t *object_of(const struct rlmd_job *job, const struct conversation *conversation)
{
	const struct llm_message *messages = conversation->messages;
	size_t count = conversation->count;
	int64_t first = first_request_tokens(conversation);
	json_t *object;

	object = json_make("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:s}", "provider",
			   llm_provider(job->scope.llm, job->scope.model), "model",
			   job->scope.model, "subcallModel", job->scope.subcall_model, "contexts",
			   contexts_of(&job->task.context), "systemPrompt",
			   json_from_text(messages[0].text), "firstTurn",
			   json_from_text(messages[count - 1].text), "firstRequestTokens",
			   (json_int_t)first, "worstCaseCost", worst_cost(job), "priceTable",
			   llm_price_date(job->scope.llm));
	add_reading(job, first, object);
	scope_show(&job->scope, job->scope.model, SCOPE_OUTPUT_TURN, object);
	if (count > 2) {
		json_put(object, "opening", json_from_text(messages[1].text));
		json_put(object, "demonstration", json_from_text(messages[2].text));
	}
	return object;
}

static json_t *show_task(const struct rlmd_job *job)
{
	struct conversation conversation = {0};
	json_t *object;

	first_request(&conversation, &job->scope, &job->task.context,
		      text_from(job->task.text, job->task.size));
	object = object_of(job, &conversation);
	conversation_done(&conversation);
	return object;
}

static void add_common(struct rlmd_job *job, json_t *object)
{
	json_auto_t *warnings = llm_take_warnings(job->scope.llm);

	json_put(object, "maxCost",
		 result_cost(job->scope.config.limits.cost != BUDGET_UNLIMITED,
			     job->scope.config.limits.cost));
	json_extend(job->notes, warnings);
	if (json_array_size(job->notes))
		json_put(object, "warnings", json_incref(job->notes));
}

char *rlmd_job_dry_run(struct rlmd_engine *engine, const struct rlmd_job_options *options,
		       struct rlmd_error *err)
{
	struct rlmd_job job = {.hosted = {.engine = engine}};
	json_auto_t *object = NULL;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a job needs an engine");
		return NULL;
	}
	if (job_options_take(&job, options, JOB_TO_SHOW, err))
		object = job.plan.file ? show_plan(&job, err) : show_task(&job);
	if (object)
		add_common(&job, object);
	job_options_drop(&job);
	return object ? json_to_string(object) : NULL;
}

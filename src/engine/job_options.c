#include "engine/job.h"

#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <rlmd/plan.h>
#include <rlmd/sandbox.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "budget/account.h"
#include "engine/engine.h"
#include "engine/function_set.h"
#include "engine/group.h"
#include "engine/validation.h"
#include "llm/llm.h"
#include "sandbox/python.h"

enum {
	STOPS_MAX = 16,
	PARALLEL_USUAL = 4,
	SCHEMA_DEPTH_MAX = 100,
	TASK_MAX = 64 << 20, /* bytes; longer texts are inputs */
	CODE_MAX = 1 << 20,
	SCRIPT_MS = 10000, /* that a script in the place of an interpreter is asked */
};

/* --- numbers ----------------------------------------------------------------------- */

struct bounds {
	const char *name;
	int64_t usual, least, most;
	bool unlimited; /* RLMD_UNLIMITED is fine, too */
};

static bool number(int64_t given, struct bounds bounds, int64_t *ret, struct rlmd_error *err)
{
	int64_t value = given == RLMD_NOTHING ? 0 : given ? given : bounds.usual;
	bool unlimited = bounds.unlimited && value == RLMD_UNLIMITED;

	*ret = value;
	if (unlimited || (value >= bounds.least && value <= bounds.most))
		return true;
	return error_set(err, RLMD_ERROR_USAGE,
			 "%s is %" PRId64 ", and may be from %" PRId64 " to %" PRId64 "%s",
			 bounds.name, given, bounds.least, bounds.most,
			 bounds.unlimited ? ", or RLMD_UNLIMITED" : "");
}

static bool small_number(int64_t given, struct bounds bounds, int *ret, struct rlmd_error *err)
{
	int64_t value;
	bool ok = number(given, bounds, &value, err);

	*ret = (int)value;
	return ok;
}

static bool take_time(int64_t given, int64_t *ret, struct rlmd_error *err)
{
	const struct bounds bounds = {"limits.time_ms", 300000, 1, BUDGET_TIME_MAX, true};

	if (!number(given, bounds, ret, err))
		return false;
	if (*ret == RLMD_UNLIMITED)
		*ret = BUDGET_TIME_NO_LIMIT;
	return true;
}

static bool take_limits(struct budget_limits *ret, const struct rlmd_limits *limits,
			struct rlmd_error *err)
{
	const int64_t most = INT64_MAX - 1;

	return number(limits->cost, (struct bounds){"limits.cost", 5 * MONEY_DOLLAR, 0, most, true},
		      &ret->cost, err) &&
	       number(limits->tokens, (struct bounds){"limits.tokens", 500000, 1, most, true},
		      &ret->tokens, err) &&
	       take_time(limits->time_ms, &ret->time_ms, err) &&
	       small_number(limits->max_depth, (struct bounds){"limits.max_depth", 2, 0, 16, false},
			    &ret->max_depth, err) &&
	       small_number(limits->max_iterations,
			    (struct bounds){"limits.max_iterations", 30, 1, 100000, false},
			    &ret->max_iterations, err) &&
	       number(limits->calls, (struct bounds){"limits.calls", 10000, 1, most, true},
		      &ret->calls, err) &&
	       number(limits->subruns, (struct bounds){"limits.subruns", 1000, 0, most, true},
		      &ret->subruns, err);
}

/* Calls wait for nothing that a plan lets run, unless somebody said how many there may be. */
static int64_t usual_parallel(const struct rlmd_job_options *options)
{
	const struct rlmd_plan_file *plan = options->plan;
	int64_t most = plan ? (int64_t)rlmd_plan_file_config(plan)->max_parallel : 0;

	return most > PARALLEL_USUAL ? most : PARALLEL_USUAL;
}

static bool take_numbers(struct rlmd_job *job, const struct rlmd_job_options *options,
			 struct rlmd_error *err)
{
	struct scope_config *config = &job->scope.config;

	return number(options->block_timeout_ms,
		      (struct bounds){"block_timeout_ms", 30000, 1, 86400000, false},
		      &config->block_timeout_ms, err) &&
	       number(options->max_output,
		      (struct bounds){"max_output", 50000, 100, 100000000, false},
		      &config->max_output, err) &&
	       number(options->max_output_tokens,
		      (struct bounds){"max_output_tokens", 0, 0, 1000000, false},
		      &config->max_output_tokens, err) &&
	       number(options->grace_ms, (struct bounds){"grace_ms", 15000, 0, 3600000, false},
		      &job->grace_ms, err) &&
	       small_number(
		       options->max_parallel,
		       (struct bounds){"max_parallel", usual_parallel(options), 1, 1000000, false},
		       &config->max_parallel, err) &&
	       small_number(options->downgrade, (struct bounds){"downgrade", 20, 0, 100, false},
			    &config->downgrade, err);
}

/* --- schemas: of a task, or of the operations of a plan ---------------------------------- */

/* Of a task one, of a plan one for each operation; some are empty. */
static size_t count_of(const struct rlmd_job *job)
{
	return job->plan.file ? rlmd_plan_count(job_plan(job)) : 1;
}

static struct rlmd_text schema_at(const struct rlmd_job *job, size_t i)
{
	return job->plan.file ? rlmd_plan_operation(job_plan(job), i)->schema
			      : text_from(job->task.schema, job->task.schema_size);
}

static bool has_schemas(const struct rlmd_job *job)
{
	for (size_t i = 0; i < count_of(job); i++)
		if (schema_at(job, i).size)
			return true;
	return false;
}

/* Adds to the error whose schema it is. Returns false. */
static bool blame(const struct rlmd_job *job, size_t i, struct rlmd_error *err)
{
	error_context(err, "the schema");
	if (job->plan.file)
		error_context(err, "operation \"%s\"", rlmd_plan_operation(job_plan(job), i)->id);
	return false;
}

static bool is_readable(struct rlmd_text schema, struct rlmd_error *err)
{
	json_auto_t *value = NULL;

	if (schema.size > SCHEMA_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%zu bytes are too many: models are told all of it, and it may "
				 "have %d",
				 schema.size, (int)SCHEMA_MAX);
	value = json_read(schema, SCHEMA_DEPTH_MAX, err);
	if (!value && err)
		err->kind = RLMD_ERROR_USAGE;
	if (!value)
		return error_context(err, "this is no JSON");
	return json_is_object(value) || json_is_boolean(value) ||
	       error_set(err, RLMD_ERROR_USAGE, "it has to be an object, or true or false");
}

/* Checks without a helper that schemas are JSON, and not too long. */
static bool read_schemas(const struct rlmd_job *job, struct rlmd_error *err)
{
	for (size_t i = 0; i < count_of(job); i++)
		if (schema_at(job, i).size && !is_readable(schema_at(job, i), err))
			return blame(job, i, err);
	return true;
}

/* --- what is copied ------------------------------------------------------------------ */

static bool take_sampling(struct scope_config *config, const struct rlmd_job_options *options,
			  struct rlmd_error *err)
{
	struct llm_sampling *sampling = &config->sampling;
	size_t count = 0;

	if (options->with_temperature && !(options->temperature >= 0 && options->temperature <= 2))
		return error_set(err, RLMD_ERROR_USAGE,
				 "the temperature is %g, and may be from 0 to 2",
				 options->temperature);
	sampling->with_temperature = options->with_temperature;
	sampling->temperature = options->temperature;
	while (options->stops && options->stops[count])
		if (++count > STOPS_MAX)
			return error_set(err, RLMD_ERROR_USAGE,
					 "there may be %d texts that end a reply", STOPS_MAX);
	config->stops = xcalloc(count + 1, sizeof *config->stops);
	for (size_t i = 0; i < count; i++)
		config->stops[i] = xstrdup(options->stops[i]);
	sampling->stops = (const char *const *)config->stops;
	sampling->stop_count = count;
	return true;
}

static void take_names(struct scope_config *config, const struct rlmd_job_options *options)
{
	if (!options->models)
		return;
	config->models = xcalloc(options->model_count + 1, sizeof *config->models);
	config->model_count = options->model_count;
	for (size_t i = 0; i < options->model_count; i++)
		config->models[i] = xstrdup(options->models[i]);
}

static bool take_functions(struct rlmd_job *job, const struct rlmd_job_options *options,
			   struct rlmd_error *err)
{
	job->scope.functions = function_set_new(options->functions, options->function_count,
						context_of(options->context), err);
	function_set_guard(job->scope.functions, &job->scope.hooks.telling);
	return job->scope.functions;
}

static bool take_hooks(struct rlmd_job *job, const struct rlmd_job_options *options,
		       struct rlmd_error *err)
{
	struct hooks *hooks = &job->scope.hooks;

	hooks->job = job;
	return abi_copy_in(&hooks->of, sizeof hooks->of, options->hooks, sizeof hooks->of,
			   "rlmd_hooks", err) &&
	       hooks_begin(hooks, err);
}

/* Operations of a plan bring their own. */
static bool take_schema(struct rlmd_job *job, const struct rlmd_job_options *options,
			struct rlmd_error *err)
{
	if (options->schema.size && options->plan)
		return error_set(err, RLMD_ERROR_USAGE,
				 "a plan has no schema: each of its operations may have one");
	if (options->schema.size) {
		job->task.schema = text_copy(options->schema);
		job->task.schema_size = options->schema.size;
	}
	return read_schemas(job, err);
}

/* Code of the host's, before the first turn. */
static bool take_first_code(struct rlmd_job *job, const struct rlmd_job_options *options,
			    struct rlmd_error *err)
{
	if (!options->setup.size && !options->first_code.size)
		return true;
	if (options->plan)
		return error_set(err, RLMD_ERROR_USAGE, "a plan has no first code: a task has");
	if (!options->first_code.size)
		return error_set(err, RLMD_ERROR_USAGE, "a setup needs a first_code that uses it");
	if (options->setup.size > CODE_MAX ||
	    options->first_code.size > CODE_MAX - options->setup.size)
		return error_set(err, RLMD_ERROR_USAGE,
				 "setup and first_code have more than %d bytes", (int)CODE_MAX);
	job->task.setup = text_copy(options->setup);
	job->task.first_code = text_copy(options->first_code);
	job->scope.setup = text_from(job->task.setup, options->setup.size);
	job->scope.first_code = text_from(job->task.first_code, options->first_code.size);
	return true;
}

static bool check_session(const struct rlmd_job_options *options, struct rlmd_error *err)
{
	if (!options->task.size && !options->plan && !options->schema.size &&
	    !options->first_code.size && !options->setup.size)
		return true;
	return error_set(err, RLMD_ERROR_USAGE,
			 "the job of a session has no work of its own: neither a task nor a plan, "
			 "and no schema or code for one");
}

/* Takes the task or the plan. */
static bool take_work(struct rlmd_job *job, const struct rlmd_job_options *options,
		      enum job_purpose purpose, struct rlmd_error *err)
{
	const struct context *context = context_of(options->context);

	job->kind = options->plan ? &job_plan_kind : &job_task_kind;
	if (purpose == JOB_TO_SERVE)
		job->kind = &job_session_kind;
	job->plan.file = options->plan;
	job->notes = json_make_array();
	for (size_t i = 0; options->warnings && options->warnings[i]; i++)
		json_append(job->notes, json_from_text(rlmd_text_of(options->warnings[i])));
	if (options->plan && (options->task.size || context))
		return error_set(err, RLMD_ERROR_USAGE,
				 "a job is a task or a plan: a plan has its own inputs");
	if (options->task.size && !options->task.bytes)
		return error_set(err, RLMD_ERROR_USAGE, "the task of %zu bytes is NULL",
				 options->task.size);
	if (purpose == JOB_TO_SERVE && !check_session(options, err))
		return false;
	if (purpose != JOB_TO_SERVE && !options->plan && !options->task.size)
		return error_set(err, RLMD_ERROR_USAGE, "the job has neither a task nor a plan");
	if (options->task.size > TASK_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the task has %zu bytes, of at most %d: make it an input",
				 options->task.size, (int)TASK_MAX);
	job->task.text = text_copy(options->task);
	job->task.size = options->task.size;
	if (!context)
		return true;
	context_share(&job->task.context, context);
	if (context->notes)
		json_extend(job->notes, context->notes);
	return true;
}

/* --- models --------------------------------------------------------------------------- */

/* The names of a plan are of whoever ordered it, as those of the settings are. */
static bool allow_models(struct rlmd_job *job, struct rlmd_error *err)
{
	const struct rlmd_plan *plan = job_plan(job);

	for (size_t i = 0; i < rlmd_plan_count(plan); i++) {
		const struct rlmd_operation *operation = rlmd_plan_operation(plan, i);

		if (!llm_allow(job->scope.llm, operation->model, err))
			return error_context(err, "operation \"%s\"", operation->id);
	}
	return llm_allow(job->scope.llm, job->scope.config.subcall_model, err);
}

#define CACHE_SIZE_MAX (INT64_C(1) << 40)
#define CACHE_AGE_MAX  INT64_C(31536000000) /* a year */

static bool take_cache(struct llm_config *settings, const struct rlmd_job_options *options,
		       struct rlmd_error *err)
{
	settings->cache_dir = options->cache_dir;
	settings->tenant = options->tenant;
	return number(options->cache_age_ms,
		      (struct bounds){"cache_age_ms", INT64_C(604800000), 1, CACHE_AGE_MAX, false},
		      &settings->cache_age_ms, err) &&
	       number(options->cache_size,
		      (struct bounds){"cache_size", 1 << 30, 1, CACHE_SIZE_MAX, false},
		      &settings->cache_size, err);
}

static void on_journal_broken(void *owner, const struct rlmd_error *err)
{
	job_break(owner, err);
}

static bool take_models(struct rlmd_job *job, const struct rlmd_job_options *options,
			enum job_purpose purpose, struct rlmd_error *err)
{
	struct scope_config *config = &job->scope.config;
	bool asks = purpose == JOB_TO_RUN || purpose == JOB_TO_SERVE;
	struct engine_provider *provider = engine_provider(job->hosted.engine, options->provider,
							   err);
	struct llm_config settings = {
		.provider = options->provider,
		.model = options->model,
		.record_dir = asks ? options->record_dir : NULL,
		.replay_dir = purpose == JOB_TO_SHOW ? NULL : options->replay_dir,
		.offline = purpose == JOB_TO_SHOW,
		.job = job,
	};

	if (asks) {
		settings.journal = options->journal;
		settings.journal_broken = on_journal_broken;
		settings.journal_owner = job;
	}
	if (!take_cache(&settings, options, err))
		return false;
	config->model = xstrdup(options->model);
	config->subcall_model = xstrdup(options->subcall_model);
	job->scope.llm = provider ? llm_new(job->hosted.engine->registry, &settings, err) : NULL;
	if (!job->scope.llm || !allow_models(job, err))
		return false;
	job->scope.estimators = &provider->estimators;
	job->scope.model = config->model ? config->model : llm_default_model(job->scope.llm);
	job->scope.subcall_model = config->subcall_model ? config->subcall_model : job->scope.model;
	return true;
}

static bool take_prompts(struct rlmd_job *job, const char *name, struct rlmd_error *err)
{
	struct scope_config *config = &job->scope.config;

	if (name && !(config->prompts = prompt_set_open(name, err)))
		return false;
	job->scope.prompts = scope_find_prompts(&job->scope, job->scope.model);
	job->scope.subcall_prompts = scope_find_prompts(&job->scope, job->scope.subcall_model);
	return true;
}

/* --- prices: whether the job can keep to its limit on cost -------------------------------- */

static bool check_price(struct rlmd_job *job, const char *model, bool asked_for,
			struct rlmd_error *err)
{
	int64_t cost;

	if (job->scope.config.limits.cost == BUDGET_UNLIMITED ||
	    llm_price(job->scope.llm, model, 1, 1, &cost))
		return true;
	if (asked_for)
		return error_set(
			err, RLMD_ERROR_USAGE,
			"the price of model '%.100s' is not known, so the limit on cost "
			"(max-cost) cannot be kept: leave the limit out, or give "
			"price-table a file like {\"%.100s\": {\"input_cost_per_token\": 2e-06, "
			"\"output_cost_per_token\": 8e-06}}",
			model, model);
	job->scope.config.limits.cost = BUDGET_UNLIMITED;
	llm_warn_unpriced(job->scope.llm, model);
	return true;
}

static bool check_plan_prices(struct rlmd_job *job, bool asked_for, struct rlmd_error *err)
{
	const struct rlmd_plan *plan = job_plan(job);

	for (size_t i = 0; i < rlmd_plan_count(plan); i++) {
		const struct rlmd_operation *operation = rlmd_plan_operation(plan, i);

		if (operation->model && !check_price(job, operation->model, asked_for, err))
			return error_context(err, "operation \"%s\"", operation->id);
	}
	return true;
}

/* With nothing to spend a run cannot so much as begin with a model that has a price. */
static bool check_free(const struct rlmd_job *job, struct rlmd_error *err)
{
	int64_t cost;

	if (job->scope.config.limits.cost ||
	    !llm_price(job->scope.llm, job->scope.model, 1, 1, &cost) || !cost)
		return true;
	return error_limit(err, RLMD_STOP_MAX_COST,
			   "model '%.100s' has a price, and max-cost 0 allows only what is free: "
			   "choose a local model, or allow an amount",
			   job->scope.model);
}

/*
 * Of all models that its settings name. A limit that somebody asked for is kept, or refused where
 * a model has no price (RLMD_ERROR_USAGE); one that nobody asked for is lifted then, with a
 * warning. With nothing to spend the root's model has to be free (RLMD_ERROR_BUDGET), but where it
 * is only `shown`.
 */
static bool check_prices(struct rlmd_job *job, bool asked_for, bool shown, struct rlmd_error *err)
{
	return check_price(job, job->scope.model, asked_for, err) &&
	       check_price(job, job->scope.subcall_model, asked_for, err) &&
	       (shown || check_free(job, err)) && check_plan_prices(job, asked_for, err);
}

/* --- all of it ------------------------------------------------------------------------ */

static bool take_shares(struct rlmd_job *job, const struct rlmd_job_options *options,
			struct rlmd_error *err)
{
	int weight;

	if (!small_number((int64_t)options->weight,
			  (struct bounds){"weight", 1, 1, FLOW_WEIGHT_MAX, false}, &weight, err))
		return false;
	job->weight = (unsigned)weight;
	take_names(&job->scope.config, options);
	if (options->group && options->group->engine != job->hosted.engine)
		return error_set(err, RLMD_ERROR_USAGE, "the group is one of another engine");
	job->group = group_ref(options->group);
	job->strict = options->strict;
	job->scope.config.ends_with_account = options->ends_with_account;
	job->without_tree = options->without_tree;
	job->scope.config.limits.above = options->account;
	account_ref(options->account);
	return true;
}

void job_options_take_sandbox(struct rlmd_job *job, struct rlmd_sandbox *sandbox)
{
	struct scope_config *config = &job->scope.config;
	const char *version = sandbox ? sandbox_python_version(sandbox) : NULL;

	job->scope.sandbox = sandbox;
	config->preload = sandbox ? sandbox_preload(sandbox) : NULL;
	config->python_version = version ? xstrdup(version) : NULL;
}

/* An interpreter that is none is no matter of a dry run. */
static bool show_sandbox(struct scope_config *config, const struct rlmd_sandbox_options *given,
			 struct rlmd_error *err)
{
	struct rlmd_sandbox_options options;
	auto_free char *python = NULL;
	struct rlmd_error why;

	if (!given)
		return true;
	if (!abi_copy_in(&options, sizeof options, given, sizeof options, "rlmd_sandbox_options",
			 err))
		return false;
	python = python_find(options.python ? options.python : "python3", SCRIPT_MS, &why);
	config->preload = options.preload;
	config->python_version = python ? python_version(python) : NULL;
	return true;
}

bool job_options_take(struct rlmd_job *job, const struct rlmd_job_options *given,
		      enum job_purpose purpose, struct rlmd_error *err)
{
	struct rlmd_job_options options;
	struct rlmd_limits limits;
	bool dear;

	if (!given)
		return error_set(err, RLMD_ERROR_USAGE, "a job needs options");
	if (!abi_copy_in(&options, sizeof options, given, sizeof options, "rlmd_job_options",
			 err) ||
	    !abi_copy_in(&limits, sizeof limits, options.limits, sizeof limits, "rlmd_limits", err))
		return false;
	job_options_take_sandbox(job, options.sandbox);
	if (purpose == JOB_TO_SHOW && !options.sandbox &&
	    !show_sandbox(&job->scope.config, options.shown_sandbox, err))
		return false;
	dear = limits.cost != 0;
	return take_limits(&job->scope.config.limits, &limits, err) &&
	       take_numbers(job, &options, err) &&
	       take_sampling(&job->scope.config, &options, err) &&
	       take_shares(job, &options, err) && take_hooks(job, &options, err) &&
	       take_functions(job, &options, err) && take_work(job, &options, purpose, err) &&
	       take_first_code(job, &options, err) && take_schema(job, &options, err) &&
	       take_models(job, &options, purpose, err) && take_prompts(job, options.prompt, err) &&
	       check_prices(job, dear, purpose == JOB_TO_SHOW, err);
}

void job_options_drop(struct rlmd_job *job)
{
	struct scope_config *config = &job->scope.config;

	llm_free(job->scope.llm);
	group_unref(job->group);
	account_unref(config->limits.above);
	prompt_set_free(config->prompts);
	for (size_t i = 0; config->stops && config->stops[i]; i++)
		free(config->stops[i]);
	free(config->stops);
	for (size_t i = 0; i < config->model_count; i++)
		free(config->models[i]);
	free(config->models);
	validation_free(job->scope.validation);
	free(job->task.schema);
	free(job->task.setup);
	free(job->task.first_code);
	free(config->model);
	free(config->subcall_model);
	free(config->python_version);
	context_done(&job->task.context);
	function_set_free(job->scope.functions);
	json_decref(job->notes);
	free(job->task.text);
}

/* --- checking the schemas ------------------------------------------------------------- */

bool job_options_open_schemas(struct rlmd_job *job, struct rlmd_error *err)
{
	struct rlmd_sandbox *sandbox;

	if (!has_schemas(job))
		return true;
	sandbox = engine_validator(job->hosted.engine, job->scope.sandbox, err);
	if (!sandbox)
		return false;
	job->scope.validation = validation_new(job->scope.base, sandbox, &job->scope.log,
					       job->scope.config.block_timeout_ms);
	return true;
}

/* The helper counts those that there are. */
static size_t index_of(const struct rlmd_job *job, size_t of_those)
{
	size_t i = 0;

	while (!schema_at(job, i).size || of_those--)
		i++;
	return i;
}

static void on_checked(void *owner, const struct validation_result *result)
{
	struct rlmd_job *job = owner;
	struct rlmd_error err;

	if (!result->error && !result->wrong.size) {
		job->on_schemas(job, NULL);
		return;
	}
	if (result->error)
		err = *result->error;
	else
		error_set(&err, RLMD_ERROR_USAGE, "%s", result->wrong.bytes);
	err.kind = RLMD_ERROR_USAGE;
	blame(job, index_of(job, result->index), &err);
	job->on_schemas(job, &err);
}

bool job_options_check_schemas(struct rlmd_job *job, job_schemas_fn *done)
{
	size_t count = count_of(job), used = 0;
	auto_free struct rlmd_text *schemas = NULL;

	if (!job->scope.validation)
		return false;
	schemas = xcalloc(count, sizeof *schemas);
	for (size_t i = 0; i < count; i++)
		if (schema_at(job, i).size)
			schemas[used++] = schema_at(job, i);
	job->on_schemas = done;
	validation_check_schemas(job->scope.validation, schemas, used, on_checked, job);
	return true;
}

/* A job that is never begun. */
struct schema_trial {
	struct rlmd_job job;
	bool checked;
	struct rlmd_error wrong;
};

static void on_told(struct rlmd_job *job, const struct rlmd_error *err)
{
	struct schema_trial *trial = (struct schema_trial *)job;

	trial->checked = true;
	if (err)
		trial->wrong = *err;
}

static bool await_schemas(struct schema_trial *trial, struct rlmd_error *err)
{
	struct event_base *base = trial->job.scope.base;

	while (!trial->checked) {
		int left = event_base_loop(base, EVLOOP_ONCE);

		if (left)
			return error_set(err, RLMD_ERROR_USAGE,
					 "schemas cannot be checked inside a callback of the event "
					 "loop");
		if (event_base_got_break(base) && !trial->checked)
			return error_set(err, RLMD_ERROR_CANCELLED, "the event loop was left");
	}
	if (trial->wrong.kind && err)
		*err = trial->wrong;
	return !trial->wrong.kind;
}

bool rlmd_job_check_schemas(struct rlmd_engine *engine, const struct rlmd_job_options *options,
			    struct rlmd_error *err)
{
	struct schema_trial trial = {.job = {.hosted = {.engine = engine}}};
	struct rlmd_job *job = &trial.job;
	bool ok;

	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "a job needs an engine");
	if (!engine_is_ours(engine, err))
		return false;
	job->scope.base = engine->base;
	job->scope.log = log_child(&engine->log);
	ok = job_options_take(job, options, JOB_TO_SHOW, err) &&
	     job_options_open_schemas(job, err) &&
	     (!job_options_check_schemas(job, on_told) || await_schemas(&trial, err));
	job_options_drop(job);
	return ok;
}

#include "engine/job_options.h"

#include <inttypes.h>
#include <rlmd/plan.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/money.h"
#include "base/sized.h"
#include "budget/account.h"
#include "engine/function_set.h"
#include "engine/group.h"
#include "engine/job.h"
#include "engine/job_prices.h"
#include "engine/job_schemas.h"
#include "engine/request.h"
#include "engine/validation.h"

enum {
	STOPS_MAX = 16,
	PARALLEL_USUAL = 4,
	TASK_MAX = 64 << 20, /* bytes; longer texts are inputs */
};

#define TIME_MAX INT64_C(2592000000) /* thirty days */

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

static bool take_limits(struct budget_limits *ret, const struct rlmd_limits *limits,
			struct rlmd_error *err)
{
	const int64_t most = INT64_MAX - 1;

	return number(limits->cost, (struct bounds){"limits.cost", 5 * MONEY_DOLLAR, 0, most, true},
		      &ret->cost, err) &&
	       number(limits->tokens, (struct bounds){"limits.tokens", 500000, 1, most, true},
		      &ret->tokens, err) &&
	       number(limits->time_ms,
		      (struct bounds){"limits.time_ms", 300000, 1, TIME_MAX, false}, &ret->time_ms,
		      err) &&
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

static bool take_numbers(struct job_config *config, const struct rlmd_job_options *options,
			 struct rlmd_error *err)
{
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
		      &config->grace_ms, err) &&
	       small_number(
		       options->max_parallel,
		       (struct bounds){"max_parallel", usual_parallel(options), 1, 1000000, false},
		       &config->max_parallel, err) &&
	       small_number(options->downgrade, (struct bounds){"downgrade", 20, 0, 100, false},
			    &config->downgrade, err);
}

/* --- what is copied ------------------------------------------------------------------ */

static bool take_sampling(struct job_config *config, const struct rlmd_job_options *options,
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

static void take_names(struct job_config *config, const struct rlmd_job_options *options)
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
	job->functions = function_set_new(options->functions, options->function_count,
					  context_of(options->context), err);
	function_set_guard(job->functions, &job->telling);
	return job->functions;
}

static bool take_hooks(struct rlmd_job *job, const struct rlmd_job_options *options,
		       struct rlmd_error *err)
{
	return sized_take(&job->hooks.of, sizeof job->hooks.of, options->hooks,
			  sizeof job->hooks.of, "rlmd_hooks", err) &&
	       job_hooks_begin(&job->hooks, err);
}

/* Operations of a plan bring their own. */
static bool take_schema(struct rlmd_job *job, const struct rlmd_job_options *options,
			struct rlmd_error *err)
{
	if (options->schema.size && options->plan)
		return error_set(err, RLMD_ERROR_USAGE,
				 "a plan has no schema: each of its operations may have one");
	if (options->schema.size) {
		job->config.schema = text_copy(options->schema);
		job->config.schema_size = options->schema.size;
	}
	return job_schemas_read(job, err);
}

/* What it is to do; the rest is the same for all. */
static bool take_work(struct rlmd_job *job, const struct rlmd_job_options *options,
		      struct rlmd_error *err)
{
	const struct context *context = context_of(options->context);

	job->work = options->plan ? &job_plan : &job_task;
	job->file = options->plan;
	job->notes = json_array();
	for (size_t i = 0; options->warnings && options->warnings[i]; i++)
		json_array_append_new(job->notes,
				      json_from_text(rlmd_text_of(options->warnings[i])));
	if (options->plan && (options->task.size || context))
		return error_set(err, RLMD_ERROR_USAGE,
				 "a job is a task or a plan: a plan has its own inputs");
	if (options->task.size && !options->task.bytes)
		return error_set(err, RLMD_ERROR_USAGE, "the task of %zu bytes is NULL",
				 options->task.size);
	if (!options->plan && !options->task.size)
		return error_set(err, RLMD_ERROR_USAGE, "the job has neither a task nor a plan");
	if (options->task.size > TASK_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the task has %zu bytes, of at most %d: make it an input",
				 options->task.size, (int)TASK_MAX);
	job->task = text_copy(options->task);
	job->task_size = options->task.size;
	if (!context)
		return true;
	context_share(&job->context, context);
	if (context->notes)
		json_array_extend(job->notes, context->notes);
	return true;
}

/* --- models --------------------------------------------------------------------------- */

/* The names of a plan are of whoever ordered it, as those of the settings are. */
static bool allow_models(struct rlmd_job *job, struct rlmd_error *err)
{
	const struct rlmd_plan *plan = job->file ? rlmd_plan_file_plan(job->file) : NULL;

	for (size_t i = 0; plan && i < rlmd_plan_count(plan); i++) {
		const struct rlmd_operation *operation = rlmd_plan_operation(plan, i);

		if (!llm_allow(job->llm, operation->model, err))
			return error_context(err, "operation \"%s\"", operation->id);
	}
	return llm_allow(job->llm, job->config.subcall_model, err);
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
	struct job_config *config = &job->config;
	struct engine_provider *provider = engine_provider(job->engine, options->provider, err);
	struct llm_config settings = {
		.provider = options->provider,
		.model = options->model,
		.record_dir = purpose == JOB_TO_RUN ? options->record_dir : NULL,
		.replay_dir = purpose == JOB_TO_SHOW ? NULL : options->replay_dir,
		.offline = purpose == JOB_TO_SHOW,
	};

	if (purpose == JOB_TO_RUN) {
		settings.journal = options->journal;
		settings.journal_broken = on_journal_broken;
		settings.journal_owner = job;
	}
	if (!take_cache(&settings, options, err))
		return false;
	config->model = xstrdup(options->model);
	config->subcall_model = xstrdup(options->subcall_model);
	job->llm = provider ? llm_new(job->engine->registry, &settings, err) : NULL;
	if (!job->llm || !allow_models(job, err))
		return false;
	job->estimators = &provider->estimators;
	job->model = config->model ? config->model : llm_default_model(job->llm);
	job->subcall_model = config->subcall_model ? config->subcall_model : job->model;
	return true;
}

static bool take_prompts(struct rlmd_job *job, const char *name, struct rlmd_error *err)
{
	struct job_config *config = &job->config;

	if (name && !(config->prompts = prompt_set_open(name, err)))
		return false;
	job->prompts = request_prompts(job->llm, config, job->model);
	job->subcall_prompts = request_prompts(job->llm, config, job->subcall_model);
	return true;
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
	take_names(&job->config, options);
	if (options->group && options->group->engine != job->engine)
		return error_set(err, RLMD_ERROR_USAGE, "the group is one of another engine");
	job->group = group_ref(options->group);
	job->config.strict = options->strict;
	job->config.without_tree = options->without_tree;
	job->config.limits.above = options->account;
	account_ref(options->account);
	return true;
}

bool job_take_options(struct rlmd_job *job, const struct rlmd_job_options *given,
		      enum job_purpose purpose, struct rlmd_error *err)
{
	struct rlmd_job_options options;
	struct rlmd_limits limits;
	bool dear;

	if (!given)
		return error_set(err, RLMD_ERROR_USAGE, "a job needs options");
	if (!sized_take(&options, sizeof options, given, sizeof options, "rlmd_job_options", err) ||
	    !sized_take(&limits, sizeof limits, options.limits, sizeof limits, "rlmd_limits", err))
		return false;
	job->sandbox = options.sandbox;
	job->config.preload = options.sandbox ? sandbox_preload(options.sandbox) : NULL;
	dear = limits.cost != 0;
	return take_limits(&job->config.limits, &limits, err) &&
	       take_numbers(&job->config, &options, err) &&
	       take_sampling(&job->config, &options, err) && take_shares(job, &options, err) &&
	       take_hooks(job, &options, err) && take_functions(job, &options, err) &&
	       take_work(job, &options, err) && take_schema(job, &options, err) &&
	       take_models(job, &options, purpose, err) && take_prompts(job, options.prompt, err) &&
	       job_check_prices(job, dear, purpose == JOB_TO_SHOW, err);
}

void job_drop_options(struct rlmd_job *job)
{
	struct job_config *config = &job->config;

	llm_free(job->llm);
	group_unref(job->group);
	account_unref(config->limits.above);
	prompt_set_free(config->prompts);
	for (size_t i = 0; config->stops && config->stops[i]; i++)
		free(config->stops[i]);
	free(config->stops);
	for (size_t i = 0; i < config->model_count; i++)
		free(config->models[i]);
	free(config->models);
	validation_free(job->validation);
	free(config->schema);
	free(config->model);
	free(config->subcall_model);
	context_done(&job->context);
	function_set_free(job->functions);
	json_decref(job->notes);
	free(job->task);
}

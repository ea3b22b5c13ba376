/*
 * What is asked of a job, also from inside its callbacks, is noted and done from
 * the loop: so nothing calls back before its start has returned, and no run is
 * ended while it drives.
 */
#include "engine/job.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "budget/account.h"
#include "engine/function_set.h"
#include "engine/request.h"
#include "engine/run.h"

static void post(struct rlmd_job *job)
{
	event_active(job->posted, EV_TIMEOUT, 1);
}

static void on_trace(void *owner, json_t *event)
{
	struct rlmd_job *job = owner;
	bool telling = job->telling;

	job->telling = true;
	if (job->event)
		job->event(job->owner, event);
	job->telling = telling;
}

bool job_is_over(const struct rlmd_job *job)
{
	return job->state == JOB_OVER || job->doomed;
}

static void leave(struct rlmd_job *job)
{
	if (job->engine->awaited == job)
		job->engine->awaited = NULL;
}

static void tell_end(struct rlmd_job *job)
{
	job->state = JOB_OVER;
	leave(job);
	if (job->end)
		job->end(job->owner, &job->result);
}

/* As its last act it may free the job. */
static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_job *job = owner;

	(void)fd;
	(void)what;
	if (job->state == JOB_NEW && !job->doomed) {
		job->state = JOB_WORKS;
		job->work->start(job);
	}
	if (job->doomed) {
		job_destroy(job);
	} else if (job->state == JOB_ENDED) {
		tell_end(job);
	} else if (job->state == JOB_WORKS && job->cancelled) {
		job->work->cancel(job);
	} else if (job->state == JOB_WORKS && job->interrupted && !job->yields) {
		job->yields = true;
		job->work->interrupt(job);
	}
}

void job_end(struct rlmd_job *job, const struct rlmd_error *err, json_t *object)
{
	job->result.error = *err;
	job->result.object = object;
	job->result.output = json_get_text(object, "output");
	trace_event(job->trace, json_incref(object));
	job->state = JOB_ENDED;
	post(job);
}

/* The names of a plan are of whoever ordered it, as those of the settings are. */
static bool allow_models(struct rlmd_job *job, const struct job_options *options,
			 struct rlmd_error *err)
{
	const struct rlmd_plan *plan = options->plan ? rlmd_plan_file_plan(options->plan) : NULL;

	for (size_t i = 0; plan && i < rlmd_plan_count(plan); i++)
		if (!llm_allow(job->llm, rlmd_plan_operation(plan, i)->model, err))
			return false;
	return llm_allow(job->llm, options->config.subcall_model, err);
}

bool job_resolve(struct rlmd_job *job, const struct job_options *options, bool offline,
		 struct rlmd_error *err)
{
	const struct job_config *config = &options->config;
	struct engine_provider *provider = engine_provider(job->engine, options->provider, err);
	const struct llm_config settings = {
		.provider = options->provider,
		.model = config->model,
		.record_dir = offline ? NULL : options->record_dir,
		.replay_dir = offline ? NULL : options->replay_dir,
		.offline = offline,
	};

	job->llm = provider ? llm_new(job->engine->registry, &settings, err) : NULL;
	if (!job->llm || !allow_models(job, options, err))
		return false;
	job->estimators = &provider->estimators;
	job->config = *config;
	job->model = config->model ? config->model : llm_default_model(job->llm);
	job->subcall_model = config->subcall_model ? config->subcall_model : job->model;
	job->prompts = request_prompts(job->llm, config, job->model);
	job->subcall_prompts = request_prompts(job->llm, config, job->subcall_model);
	return true;
}

/* What it is to do; the rest is the same for all. */
static void take_work(struct rlmd_job *job, const struct job_options *options)
{
	const struct context *context = options->context;

	job->work = options->plan ? &job_plan : &job_task;
	job->file = options->plan;
	job->task = text_copy(options->task);
	job->task_size = options->task.size;
	job->notes = context && context->notes ? json_copy(context->notes) : json_array();
	if (context)
		context_share(&job->context, context);
}

struct rlmd_job *rlmd_job_start(struct rlmd_engine *engine, const struct job_options *options,
				struct rlmd_error *err)
{
	struct rlmd_job *job = xcalloc(1, sizeof *job);

	*job = (struct rlmd_job){
		.engine = engine,
		.base = engine->base,
		.sandbox = options->sandbox,
		.started = clock_ms(),
		.event = options->event,
		.end = options->end,
		.owner = options->owner,
	};
	job->functions = function_set_new(options->functions, options->function_count,
					  options->context, err);
	if (!job->functions || !job_resolve(job, options, false, err)) {
		llm_free(job->llm);
		function_set_free(job->functions);
		free(job);
		return NULL;
	}
	permits_init(&job->permits, job->base, engine->calls, engine->workers,
		     options->weight ? options->weight : 1);
	TAILQ_INIT(&job->sent);
	TAILQ_INIT(&job->waiting);
	trace_uuid(job->id);
	account_ref(job->config.limits.above);
	job->log = log_child(&engine->log);
	log_add_text(&job->log, "job", job->id);
	take_work(job, options);
	job->trace = trace_new(!options->plan, on_trace, job);
	job->posted = event_new(job->base, -1, 0, on_posted, job);
	TAILQ_INSERT_TAIL(&engine->jobs, job, entry);
	post(job);
	return job;
}

void rlmd_job_interrupt(struct rlmd_job *job)
{
	job->interrupted = true;
	post(job);
}

void rlmd_job_cancel(struct rlmd_job *job)
{
	job->cancelled = true;
	post(job);
}

void job_destroy(struct rlmd_job *job)
{
	TAILQ_REMOVE(&job->engine->jobs, job, entry);
	leave(job);
	job->event = NULL;
	job->work->free(job);
	account_unref(job->config.limits.above);
	permits_done(&job->permits);
	event_free(job->posted);
	trace_free(job->trace);
	llm_free(job->llm);
	context_done(&job->context);
	function_set_free(job->functions);
	json_decref(job->notes);
	json_decref(job->result.object);
	free(job->task);
	free(job);
}

void rlmd_job_free(struct rlmd_job *job)
{
	if (!job)
		return;
	if (!job->telling) {
		job_destroy(job);
		return;
	}
	job->doomed = true;
	job->event = NULL;
	job->end = NULL;
	leave(job);
	post(job);
}

struct rlmd_job_status rlmd_job_status(const struct rlmd_job *job)
{
	const struct budget *account = job->work->account(job);
	struct rlmd_job_status status = {
		.turn = job->root ? run_turn(job->root) : 0,
		.depth = job_deepest(job),
		.calls_in_flight = job->calls_in_flight,
		.elapsed_ms = clock_ms() - job->started,
		.max_cost = job->config.limits.cost,
		.interrupted = job->interrupted || job->cancelled,
	};

	if (account) {
		status.tokens = budget_usage(account)->tokens;
		status.cost = budget_usage(account)->cost;
	}
	return status;
}

const struct rlmd_result *rlmd_job_result(const struct rlmd_job *job)
{
	return job->state == JOB_ENDED || job->state == JOB_OVER ? &job->result : NULL;
}

const struct prompt_set *job_prompts(const struct rlmd_job *job, int depth)
{
	return depth ? job->subcall_prompts : job->prompts;
}

struct brief_facts job_facts(const struct rlmd_job *job)
{
	return (struct brief_facts){
		.llm = job->llm,
		.model = job->model,
		.subcall_model = job->subcall_model,
		.preload = job->config.preload,
		.functions = function_set_described(job->functions),
		.max_output = job->config.max_output,
		.max_parallel = job->config.max_parallel,
		.downgrade = job->config.downgrade,
		.call_count = job->call_count,
		.call_ms = job->call_ms,
		.subrun_count = job->subrun_count,
		.subrun_ms = job->subrun_ms,
		.subrun_cost = job->subrun_cost,
	};
}

int job_deepest(const struct rlmd_job *job)
{
	for (int depth = RUN_DEPTH_MAX - 1; depth > 0; depth--)
		if (job->runs_alive[depth])
			return depth;
	return 0;
}

json_t *job_sandbox(const struct rlmd_job *job)
{
	return job->sandbox ? sandbox_report(job->sandbox) : json_null();
}

/*
 * What is asked of a job, also from inside its callbacks, is noted and done from
 * the loop: so nothing calls back before its start has returned, and no run is
 * ended while it drives.
 */
#include "engine/job.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/sized.h"
#include "engine/function_set.h"
#include "engine/group.h"
#include "engine/job_options.h"
#include "engine/job_result.h"
#include "engine/job_schemas.h"
#include "engine/request.h"
#include "engine/run.h"
#include "engine/validation.h"

static void post(struct rlmd_job *job)
{
	loop_post(job->posted);
}

static void on_trace(void *owner, enum trace_kind kind, json_t *event)
{
	job_tell_event(owner, kind, event);
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
	job_tell_end(job);
}

void job_end(struct rlmd_job *job, const struct rlmd_error *err, json_t *object)
{
	job->result.error = *err;
	job->result.object = object;
	job->result.output = json_get_text(object, "output");
	trace_event(job->trace, TRACE_RESULT, json_incref(object));
	job->state = JOB_ENDED;
	post(job);
}

/* Nothing of it was begun. */
static void refuse(struct rlmd_job *job, const struct rlmd_error *err)
{
	job_end(job, err, job_result_none(job, err));
}

static void work(struct rlmd_job *job)
{
	job->state = JOB_WORKS;
	job->work->start(job);
}

static void on_schemas(struct rlmd_job *job, const struct rlmd_error *err)
{
	if (err)
		refuse(job, err);
	else
		work(job);
}

static void begin(struct rlmd_job *job)
{
	if (job_schemas_check(job, on_schemas))
		job->state = JOB_CHECKS;
	else
		work(job);
}

/* As its last act it may free the job. */
static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_job *job = owner;

	(void)fd;
	(void)what;
	if (job->state == JOB_NEW && !job->doomed)
		begin(job);
	if (job->doomed) {
		job_destroy(job);
	} else if (job->state == JOB_ENDED) {
		tell_end(job);
	} else if (job->state == JOB_CHECKS && (job->cancelled || job->interrupted)) {
		validation_free(take_pointer(&job->validation));
		refuse(job, &(struct rlmd_error){.kind = RLMD_ERROR_CANCELLED,
						 .text = "stopped before there was a result"});
	} else if (job->state == JOB_WORKS && job->cancelled) {
		job->work->cancel(job);
	} else if (job->state == JOB_WORKS && job->interrupted && !job->yields) {
		job->yields = true;
		job->work->interrupt(job);
	}
}

static bool needs_sandbox(const struct rlmd_job *job)
{
	const struct rlmd_plan *plan = job->file ? rlmd_plan_file_plan(job->file) : NULL;

	for (size_t i = 0; plan && i < rlmd_plan_count(plan); i++)
		if (rlmd_plan_operation(plan, i)->mode == RLMD_OPERATION_RUN)
			return true;
	return !plan;
}

static bool find_sandbox(struct rlmd_job *job, struct rlmd_error *err)
{
	if (job->sandbox || !needs_sandbox(job))
		return true;
	job->sandbox = rlmd_engine_sandbox(job->engine, NULL, err);
	return job->sandbox;
}

/* What is kept of it, or comes from there, is the same for the same work. */
static void name_job(struct rlmd_job *job)
{
	const struct rlmd_plan *plan = job->file ? rlmd_plan_file_plan(job->file) : NULL;

	if (!llm_keeps(job->llm))
		trace_uuid(job->id);
	else if (plan && rlmd_plan_count(plan))
		trace_uuid_of(rlmd_plan_operation(plan, 0)->input, job->id);
	else
		trace_uuid_of(text_from(job->task, job->task_size), job->id);
}

/* Below its group, if it is in one. */
static void share(struct rlmd_job *job)
{
	struct flow *calls = scheduler_flow(job->engine->calls);
	struct flow *workers = scheduler_flow(job->engine->workers);
	const struct permits_options options = {
		.calls = job->group ? job->group->calls : calls,
		.workers = job->group ? job->group->workers : workers,
		.all_calls = flow_limit(calls),
		.all_workers = flow_limit(workers),
		.weight = job->weight,
		.max_calls = (size_t)job->config.max_parallel,
	};

	permits_init(&job->permits, job->base, &options);
}

/* What of it is to be known before it begins is among the notes. */
static void set_up(struct rlmd_job *job)
{
	struct rlmd_engine *engine = job->engine;
	json_t *warnings = llm_take_warnings(job->llm);

	json_array_extend(job->notes, warnings);
	json_decref(warnings);
	share(job);
	TAILQ_INIT(&job->sent);
	TAILQ_INIT(&job->waiting);
	name_job(job);
	job->log = log_child(&engine->log);
	log_add_text(&job->log, "job", job->id);
	job->trace = trace_new(!job->file && !job->config.without_tree,
			       job->hooks.lines | job->hooks.structs, on_trace, job);
	job->posted = event_new(job->base, -1, 0, on_posted, job);
	TAILQ_INSERT_TAIL(&engine->jobs, job, entry);
}

static struct rlmd_job *job_new(struct rlmd_engine *engine, const struct rlmd_job_options *options,
				enum job_purpose purpose, struct rlmd_error *err)
{
	struct rlmd_job *job;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a job needs an engine");
		return NULL;
	}
	job = xcalloc(1, sizeof *job);
	job->engine = engine;
	job->base = engine->base;
	job->started = clock_ms();
	if (job_take_options(job, options, purpose, err) &&
	    (purpose == JOB_TO_CHECK || (find_sandbox(job, err) && job_schemas_open(job, err))))
		return job;
	job_drop_options(job);
	free(job);
	return NULL;
}

struct rlmd_job *rlmd_job_start(struct rlmd_engine *engine, const struct rlmd_job_options *options,
				struct rlmd_error *err)
{
	struct rlmd_job *job = job_new(engine, options, JOB_TO_RUN, err);

	if (!job)
		return NULL;
	set_up(job);
	post(job);
	return job;
}

static bool check(struct rlmd_engine *engine, const struct rlmd_job_options *options, bool connect,
		  struct rlmd_error *err)
{
	struct rlmd_job *job = job_new(engine, options, JOB_TO_CHECK, err);

	if (!job)
		return false;
	if (connect && !job->file)
		llm_connect(job->llm, job->model);
	job_drop_options(job);
	free(job);
	return true;
}

bool rlmd_job_check(struct rlmd_engine *engine, const struct rlmd_job_options *options,
		    struct rlmd_error *err)
{
	return check(engine, options, false, err);
}

bool rlmd_job_prepare(struct rlmd_engine *engine, const struct rlmd_job_options *options,
		      struct rlmd_error *err)
{
	return check(engine, options, true, err);
}

void rlmd_job_interrupt(struct rlmd_job *job)
{
	if (!job || job->state > JOB_WORKS)
		return;
	job->interrupted = true;
	post(job);
}

void rlmd_job_cancel(struct rlmd_job *job)
{
	if (!job || job->state > JOB_WORKS)
		return;
	job->cancelled = true;
	post(job);
}

void job_break(struct rlmd_job *job, const struct rlmd_error *err)
{
	if (!job->broken.kind)
		job->broken = *err;
	rlmd_job_cancel(job);
}

void job_destroy(struct rlmd_job *job)
{
	llm_leave_journal(job->llm);
	TAILQ_REMOVE(&job->engine->jobs, job, entry);
	leave(job);
	job->telling = true; /* whoever frees it in a callback of its end frees nothing more */
	job->hooks.of = (struct rlmd_hooks){0};
	job->work->free(job);
	permits_done(&job->permits);
	event_free(job->posted);
	trace_free(job->trace);
	job_hooks_done(&job->hooks);
	job_drop_options(job);
	json_decref(job->result.object);
	free(job->result.json);
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
	job->hooks.of = (struct rlmd_hooks){0};
	leave(job);
	post(job);
}

bool rlmd_job_get_status(const struct rlmd_job *job, struct rlmd_job_status *ret)
{
	const struct budget *account = job ? job->work->account(job) : NULL;
	struct rlmd_job_status status = {0};

	if (!job)
		return false;
	status.turn = job->root ? run_turn(job->root) : 0;
	status.depth = job_deepest(job);
	status.calls_in_flight = job->calls_in_flight;
	status.elapsed_ms = clock_ms() - job->started;
	status.max_cost = job->config.limits.cost;
	status.interrupted = job->interrupted || job->cancelled;
	status.tokens = account ? budget_usage(account)->tokens : job->result.usage.tokens;
	status.cost = account ? budget_usage(account)->cost : job->result.usage.cost;
	job->work->count(job, &status.operations, &status.operations_ended);
	return sized_give(ret, &status, sizeof status, sizeof status);
}

bool job_may_ask(const struct rlmd_job *job, const char *model)
{
	const struct job_config *config = &job->config;

	if (!config->models || !model || !*model || !strcmp(model, job->model) ||
	    !strcmp(model, job->subcall_model))
		return true;
	for (size_t i = 0; i < config->model_count; i++)
		if (!fnmatch(config->models[i], model, FNM_NOESCAPE))
			return true;
	return false;
}

const char *rlmd_job_warning(const struct rlmd_job *job, size_t index)
{
	return job ? json_string_value(json_array_get(job->notes, index)) : NULL;
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

/*
 *   NEW -> CHECKS      begin       there are schemas: are they schemas?
 *   NEW -> WORKS       work        there are none
 *   CHECKS -> WORKS    work        they are
 *   any -> ENDED       job_end     there is a result
 *   ENDED -> OVER      tell_end    the host has it
 *
 * Requests to a job, also from inside its callbacks, are noted and done from the loop: so nothing
 * calls back before its start has returned, and no run is ended while it drives.
 */
#include "engine/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timer.h"
#include "engine/function_set.h"
#include "engine/group.h"
#include "engine/run.h"
#include "engine/validation.h"
#include "llm/llm.h"
#include "trace/result.h"

static void post(struct rlmd_job *job)
{
	timer_post(job->posted);
}

static void on_trace(void *owner, enum trace_kind kind, json_t *event)
{
	hooks_tell_event(owner, kind, event);
}

static void leave(struct rlmd_job *job)
{
	if (job->hosted.engine->awaited == &job->hosted)
		job->hosted.engine->awaited = NULL;
}

static void tell_end(struct rlmd_job *job)
{
	job->state = JOB_OVER;
	job->hosted.over = true;
	leave(job);
	hooks_tell_end(&job->scope.hooks, &job->result);
}

void job_end(struct rlmd_job *job, const struct rlmd_error *err, json_t *object)
{
	job->result.error = *err;
	job->result.object = object;
	job->result.output = json_get_text(object, "output");
	trace_event(job->scope.trace, TRACE_RESULT, json_incref(object));
	job->state = JOB_ENDED;
	post(job);
}

static bool holds(const json_t *texts, const json_t *wanted)
{
	const json_t *text;
	size_t i;

	json_array_foreach (texts, i, text)
		if (json_equal(text, wanted))
			return true;
	return false;
}

/* The notes may have warnings about providers from before the job began: none is given twice. */
static json_t *warnings_of(struct rlmd_job *job, const json_t *warnings)
{
	json_auto_t *more = llm_take_warnings(job->scope.llm);
	json_t *all = json_make_copy(warnings);
	const json_t *text;
	size_t i;

	json_extend(all, job->notes);
	json_array_foreach (more, i, text)
		if (!holds(all, text))
			json_append(all, json_incref((json_t *)text));
	return all;
}

void job_result_add(struct rlmd_job *job, const struct budget *account, const json_t *warnings,
		    json_t *object)
{
	job->result.usage = *budget_usage(account);
	job->result.duration_ms = budget_elapsed_ms(account);
	job->result.refuser = budget_refuser(account);
	json_put(object, "warnings", warnings_of(job, warnings));
	json_put(object, "sandbox", scope_sandbox(&job->scope));
	json_put(object, "model", json_from_text(text_of(job->scope.model)));
	json_put(object, "provider",
		 json_make_string(llm_provider(job->scope.llm, job->scope.model)));
	json_put(object, "priceTable", json_make_string(llm_price_date(job->scope.llm)));
}

/* That of a job whose work never began, new. */
static json_t *result_none(struct rlmd_job *job, const struct rlmd_error *err)
{
	struct budget *account = budget_new(&job->scope.config.limits, NULL, NULL);
	json_auto_t *warnings = json_make_array();
	json_t *object = job->kind->none();

	json_put(object, "usage", result_usage(account));
	job_result_add(job, account, warnings, object);
	json_put(object, "error",
		 result_error(err, llm_provider(job->scope.llm, job->scope.model)));
	budget_free(account);
	return object;
}

/* Nothing of it was begun. */
static void refuse(struct rlmd_job *job, const struct rlmd_error *err)
{
	job_end(job, err, result_none(job, err));
}

static void work(struct rlmd_job *job)
{
	job->state = JOB_WORKS;
	job->kind->start(job);
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
	if (job_options_check_schemas(job, on_schemas))
		job->state = JOB_CHECKS;
	else
		work(job);
}

/* At once: not from inside its callbacks. */
static void destroy(struct engine_job *hosted)
{
	struct rlmd_job *job = (struct rlmd_job *)hosted; /* which begins with it */

	llm_leave_journal(job->scope.llm);
	TAILQ_REMOVE(&job->hosted.engine->jobs, &job->hosted, entry);
	leave(job);
	job->scope.hooks.telling =
		true; /* whoever frees it in a callback of its end frees nothing more */
	job->scope.hooks.of = (struct rlmd_hooks){0};
	job->kind->free(job);
	scope_unshare(&job->scope);
	timer_free(job->posted);
	trace_free(job->scope.trace);
	hooks_done(&job->scope.hooks);
	job_options_drop(job);
	json_decref(job->result.object);
	free(job->result.json);
	free(job);
}

/* As its last act it may free the job. */
static void on_posted(void *owner)
{
	struct rlmd_job *job = owner;

	if (job->state == JOB_NEW && !job->doomed)
		begin(job);
	if (job->doomed) {
		destroy(&job->hosted);
	} else if (job->state == JOB_ENDED) {
		tell_end(job);
	} else if (job->state == JOB_CHECKS && (job->cancelled || job->interrupted)) {
		validation_free(take_pointer(&job->scope.validation));
		refuse(job, &(struct rlmd_error){.kind = RLMD_ERROR_CANCELLED,
						 .text = "stopped before there was a result"});
	} else if (job->state == JOB_WORKS && job->cancelled) {
		job->kind->cancel(job);
	} else if (job->state == JOB_WORKS && job->interrupted && !job->yields) {
		job->yields = true;
		job->kind->interrupt(job);
	}
}

struct rlmd_plan *job_plan(const struct rlmd_job *job)
{
	return rlmd_plan_file_plan(job->plan.file);
}

static bool needs_sandbox(const struct rlmd_job *job)
{
	const struct rlmd_plan *plan = job_plan(job);

	for (size_t i = 0; i < rlmd_plan_count(plan); i++)
		if (rlmd_plan_operation(plan, i)->mode == RLMD_OPERATION_RUN)
			return true;
	return !plan;
}

static bool find_sandbox(struct rlmd_job *job, struct rlmd_error *err)
{
	if (job->scope.sandbox || !needs_sandbox(job))
		return true;
	job_options_take_sandbox(job, rlmd_engine_sandbox(job->hosted.engine, NULL, err));
	return job->scope.sandbox;
}

/* Where exchanges are kept the same work has the same id; elsewhere the id is random. */
static void name_job(struct rlmd_job *job)
{
	const struct rlmd_plan *plan = job_plan(job);

	if (!llm_keeps(job->scope.llm))
		trace_uuid(job->scope.id);
	else if (plan)
		trace_uuid_of(rlmd_plan_operation(plan, 0)->input, job->scope.id);
	else
		trace_uuid_of(text_from(job->task.text, job->task.size), job->scope.id);
}

/* Below its group, if it is in one. */
static void share(struct rlmd_job *job)
{
	struct flow *calls = scheduler_flow(job->hosted.engine->calls);
	struct flow *workers = scheduler_flow(job->hosted.engine->workers);

	scope_share(&job->scope, job->group ? job->group->calls : calls, flow_limit(calls),
		    job->group ? job->group->workers : workers, flow_limit(workers), job->weight);
}

/* Warnings about the models become notes of the job. */
static void set_up(struct rlmd_job *job)
{
	struct rlmd_engine *engine = job->hosted.engine;
	json_t *warnings = llm_take_warnings(job->scope.llm);

	json_extend(job->notes, warnings);
	json_decref(warnings);
	share(job);
	name_job(job);
	job->scope.log = log_child(&engine->log);
	log_add_text(&job->scope.log, "job", job->scope.id);
	job->scope.trace = trace_new(job->kind == &job_task_kind && !job->without_tree,
				     job->scope.hooks.lines | job->scope.hooks.structs, on_trace,
				     &job->scope.hooks);
	job->posted = timer_new(job->scope.base, on_posted, job);
	TAILQ_INSERT_TAIL(&engine->jobs, &job->hosted, entry);
	job->hosted.destroy = destroy;
}

static struct rlmd_job *job_new(struct rlmd_engine *engine, const struct rlmd_job_options *options,
				enum job_purpose purpose, struct rlmd_error *err)
{
	struct rlmd_job *job;

	if (!engine) {
		error_set(err, RLMD_ERROR_USAGE, "a job needs an engine");
		return NULL;
	}
	if (!engine_is_ours(engine, err))
		return NULL;
	job = xcalloc(1, sizeof *job);
	job->hosted.engine = engine;
	job->scope.base = engine->base;
	TAILQ_INIT(&job->scope.activities);
	job->started = clock_ms();
	if (job_options_take(job, options, purpose, err) &&
	    (purpose == JOB_TO_CHECK ||
	     (find_sandbox(job, err) && job_options_open_schemas(job, err))))
		return job;
	job_options_drop(job);
	free(job);
	return NULL;
}

static struct rlmd_job *start(struct rlmd_engine *engine, const struct rlmd_job_options *options,
			      enum job_purpose purpose, struct rlmd_error *err)
{
	struct rlmd_job *job = job_new(engine, options, purpose, err);

	if (!job)
		return NULL;
	set_up(job);
	post(job);
	return job;
}

struct rlmd_job *rlmd_job_start(struct rlmd_engine *engine, const struct rlmd_job_options *options,
				struct rlmd_error *err)
{
	return start(engine, options, JOB_TO_RUN, err);
}

struct rlmd_job *job_session_start(struct rlmd_engine *engine,
				   const struct rlmd_job_options *options,
				   void (*freed)(void *owner), void *owner, struct rlmd_error *err)
{
	struct rlmd_job *job = start(engine, options, JOB_TO_SERVE, err);

	if (!job)
		return NULL;
	job->session = (struct job_session){.freed = freed, .owner = owner};
	job->hosted.over = true; /* it has no end that anybody could wait for */
	return job;
}

static bool check(struct rlmd_engine *engine, const struct rlmd_job_options *options, bool connect,
		  struct rlmd_error *err)
{
	struct rlmd_job *job = job_new(engine, options, JOB_TO_CHECK, err);

	if (!job)
		return false;
	if (connect && !job->plan.file)
		llm_connect(job->scope.llm, job->scope.model);
	job_options_drop(job);
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

void rlmd_job_free(struct rlmd_job *job)
{
	if (!job)
		return;
	engine_to_free(job->hosted.engine);
	if (!job->scope.hooks.telling) {
		destroy(&job->hosted);
		return;
	}
	job->doomed = job->hosted.over = true;
	job->scope.hooks.of = (struct rlmd_hooks){0};
	leave(job);
	post(job);
}

bool rlmd_job_get_status(const struct rlmd_job *job, struct rlmd_job_status *ret)
{
	const struct budget *account = job ? job->kind->account(job) : NULL;
	struct rlmd_job_status status = {0};

	if (!job)
		return false;
	status.turn = job->task.root ? run_turn(job->task.root) : 0;
	status.depth = activity_deepest(&job->scope.activities);
	status.calls_in_flight = activity_calls(&job->scope.activities);
	status.elapsed_ms = clock_ms() - job->started;
	status.max_cost = job->scope.config.limits.cost;
	status.interrupted = job->interrupted || job->cancelled;
	status.tokens = account ? budget_usage(account)->tokens : job->result.usage.tokens;
	status.cost = account ? budget_usage(account)->cost : job->result.usage.cost;
	job->kind->count(job, &status.operations, &status.operations_ended);
	return abi_copy_out(ret, &status, sizeof status, sizeof status);
}

/* As options say it, where 0 means the default. */
static int64_t limit_of(int64_t left)
{
	return left ? left : RLMD_NOTHING;
}

bool rlmd_job_get_left(const struct rlmd_job *job, struct rlmd_limits *ret)
{
	const struct budget *account = job ? job->kind->account(job) : NULL;
	struct budget_limits left;
	struct rlmd_limits limits;

	if (!job || (!account && job->state > JOB_WORKS))
		return false;
	left = account ? budget_left(account) : job->scope.config.limits;
	limits = (struct rlmd_limits){
		.cost = limit_of(left.cost),
		.tokens = limit_of(left.tokens),
		.time_ms = left.time_ms > BUDGET_TIME_MAX ? RLMD_UNLIMITED : limit_of(left.time_ms),
		.max_depth = limit_of(left.max_depth),
		.max_iterations = limit_of(left.max_iterations),
		.calls = limit_of(left.calls),
		.subruns = limit_of(left.subruns),
	};
	return abi_copy_out(ret, &limits, sizeof limits, sizeof limits);
}

void rlmd_job_each_activity(const struct rlmd_job *job, rlmd_activity_fn *tell, void *owner)
{
	const struct activity *activity;

	if (!job || !tell)
		return;
	TAILQ_FOREACH (activity, &job->scope.activities, entry) {
		struct rlmd_activity shown = activity_show(activity);

		tell(owner, &shown);
	}
}

const char *rlmd_job_warning(const struct rlmd_job *job, size_t index)
{
	return job ? json_string_value(json_array_get(job->notes, index)) : NULL;
}

/* --- what comes of it ---------------------------------------------------------------- */

const struct rlmd_result *rlmd_job_result(const struct rlmd_job *job)
{
	return job && job->state >= JOB_ENDED ? &job->result : NULL;
}

bool rlmd_result_success(const struct rlmd_result *result)
{
	return result && result->error.kind == RLMD_ERROR_NONE;
}

const struct rlmd_error *rlmd_result_error(const struct rlmd_result *result)
{
	return !result || rlmd_result_success(result) ? NULL : &result->error;
}

struct rlmd_text rlmd_result_output(const struct rlmd_result *result)
{
	return result ? result->output : rlmd_text_of(NULL);
}

enum rlmd_stop rlmd_result_stop(const struct rlmd_result *result)
{
	return result ? result->stop : RLMD_STOP_NONE;
}

bool rlmd_result_forced(const struct rlmd_result *result)
{
	return result && result->forced;
}

const char *rlmd_result_limited_by(const struct rlmd_result *result)
{
	const struct rlmd_error *err = rlmd_result_error(result);
	enum rlmd_stop stop = RLMD_STOP_NONE;

	if (err && err->kind == RLMD_ERROR_BUDGET)
		stop = err->stop;
	else if (!err && rlmd_result_forced(result))
		stop = result->stop;
	if ((stop != RLMD_STOP_MAX_COST && stop != RLMD_STOP_MAX_TOKENS) || !result->refuser)
		return NULL;
	return rlmd_account_name(result->refuser);
}

bool rlmd_result_usage(const struct rlmd_result *result, struct rlmd_usage *ret)
{
	const struct budget_usage *used = result ? &result->usage : NULL;
	struct rlmd_usage usage;

	if (!result)
		return false;
	usage = (struct rlmd_usage){
		.cost = used->cost,
		.tokens = used->tokens,
		.input_tokens = used->input_tokens,
		.output_tokens = used->output_tokens,
		.cached_tokens = used->cached_tokens,
		.duration_ms = result->duration_ms,
		.iterations = used->iterations,
		.subcalls = used->subcalls,
		.llm_calls = used->llm_calls,
		.max_depth_reached = used->max_depth_reached,
		.estimated = used->estimated,
		.cost_complete = used->cost_complete,
		.cached_calls = used->cached_calls,
		.journaled_cost = used->journaled_cost,
		.journaled_tokens = used->journaled_tokens,
		.journaled_calls = used->journaled_calls,
	};
	return abi_copy_out(ret, &usage, sizeof usage, sizeof usage);
}

/* Made when it is asked for, which few do: it is as long as the whole trace. */
struct rlmd_text rlmd_result_json(const struct rlmd_result *result)
{
	struct rlmd_result *kept = (struct rlmd_result *)result;

	if (!result)
		return rlmd_text_of(NULL);
	if (!kept->json)
		kept->json = json_to_string(result->object);
	return rlmd_text_of(kept->json);
}

const struct rlmd_plan_metrics *rlmd_result_metrics(const struct rlmd_result *result)
{
	return result ? &result->metrics : NULL;
}

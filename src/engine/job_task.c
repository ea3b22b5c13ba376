/* A job that is a task: its root run, and what users get of it. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/job.h"
#include "engine/job_result.h"
#include "engine/run.h"
#include "trace/result.h"

static json_t *result_object(struct rlmd_job *job, const struct run_result *run,
			     const struct rlmd_error *err)
{
	json_t *object = json_pack("{s:s, s:b, s:o, s:O?, s:o, s:s?}", "event", "result", "success",
				   err->kind == RLMD_ERROR_NONE, "output",
				   json_from_text(run->answer), "trace", trace_tree(job->trace),
				   "usage", result_usage(run_budget(job->root)), "stopReason",
				   rlmd_stop_name(run->stop));

	job_result_add(job, run_budget(job->root), run_warnings(job->root), object);
	job->result.stop = run->stop;
	if (err->kind)
		json_object_set_new(object, "error",
				    result_error(err, llm_provider(job->llm, job->model)));
	return object;
}

static void on_root(void *owner, const struct run_result *run)
{
	struct rlmd_job *job = owner;
	struct rlmd_error err = job->broken.kind ? job->broken : run->error;
	json_t *object;

	job->result.forced = run->forced;
	if (run->forced && job->config.strict && run->stop != RLMD_STOP_INTERRUPTED)
		error_limit(&err, run->stop,
			    "the answer was forced (%s), and --strict takes that for a failure",
			    rlmd_stop_name(run->stop));
	object = result_object(job, run, &err);
	run_free(take_pointer(&job->root));
	job_end(job, &err, object);
}

static void start(struct rlmd_job *job)
{
	struct run_options options = {
		.task = text_from(job->task, job->task_size),
		.context = &job->context,
		.form = {text_from(job->config.schema, job->config.schema_size),
			 job->hooks.of.check != NULL},
	};

	job->root = run_start(job, &options, on_root, job);
}

static void interrupt(struct rlmd_job *job)
{
	run_interrupt(job->root, clock_ms() + job->config.grace_ms);
}

static void cancel(struct rlmd_job *job)
{
	const struct rlmd_error stopped = {.kind = RLMD_ERROR_CANCELLED,
					   .text = "stopped before there was a result"};

	run_stop(job->root, job->broken.kind ? &job->broken : &stopped);
}

static const struct budget *account(const struct rlmd_job *job)
{
	return job->root ? run_budget(job->root) : NULL;
}

static void count(const struct rlmd_job *job, int64_t *ret_all, int64_t *ret_ended)
{
	(void)job;
	*ret_all = *ret_ended = 0;
}

static json_t *none(void)
{
	return json_pack("{s:s, s:b, s:s, s:n, s:n}", "event", "result", "success", 0, "output", "",
			 "trace", "stopReason");
}

static void free_work(struct rlmd_job *job)
{
	run_free(take_pointer(&job->root));
}

const struct job_work job_task = {
	.start = start,
	.interrupt = interrupt,
	.cancel = cancel,
	.account = account,
	.count = count,
	.free = free_work,
	.none = none,
};

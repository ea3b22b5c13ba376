/* A job that is a task: its root run, and what users get of it. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/job.h"
#include "engine/run.h"
#include "llm/llm.h"
#include "trace/result.h"

static json_t *result_object(struct rlmd_job *job, const struct run_result *run,
			     const struct rlmd_error *err)
{
	json_t *object = json_make(
		"{s:s, s:b, s:o, s:O?, s:o, s:s?}", "event", "result", "success",
		err->kind == RLMD_ERROR_NONE, "output", json_from_text(run->answer), "trace",
		trace_tree(job->scope.trace), "usage", result_usage(run_budget(job->task.root)),
		"stopReason", rlmd_stop_name(run->stop));

	job_result_add(job, run_budget(job->task.root), run_warnings(job->task.root), object);
	job->result.stop = run->stop;
	if (err->kind)
		json_put(object, "error",
			 result_error(err, llm_provider(job->scope.llm, job->scope.model)));
	return object;
}

static void on_root(void *owner, const struct run_result *run)
{
	struct rlmd_job *job = owner;
	struct rlmd_error err = job->broken.kind ? job->broken : run->error;
	json_t *object;

	job->result.forced = run->forced;
	if (run->forced && job->strict && run->stop != RLMD_STOP_INTERRUPTED)
		error_limit(&err, run->stop,
			    "the answer was forced (%s), which a strict job takes for a failure",
			    rlmd_stop_name(run->stop));
	object = result_object(job, run, &err);
	run_free(take_pointer(&job->task.root));
	job_end(job, &err, object);
}

static void start(struct rlmd_job *job)
{
	struct run_options options = {
		.task = text_from(job->task.text, job->task.size),
		.context = &job->task.context,
		.form = {text_from(job->task.schema, job->task.schema_size),
			 job->scope.hooks.of.check != NULL},
	};

	job->task.root = run_start(&job->scope, &options, on_root, job);
}

static void interrupt(struct rlmd_job *job)
{
	run_interrupt(job->task.root, clock_ms() + job->grace_ms);
}

static void cancel(struct rlmd_job *job)
{
	const struct rlmd_error stopped = {.kind = RLMD_ERROR_CANCELLED,
					   .text = "stopped before there was a result"};

	run_stop(job->task.root, job->broken.kind ? &job->broken : &stopped);
}

static const struct budget *account(const struct rlmd_job *job)
{
	return job->task.root ? run_budget(job->task.root) : NULL;
}

static void count(const struct rlmd_job *job, int64_t *ret_all, int64_t *ret_ended)
{
	(void)job;
	*ret_all = *ret_ended = 0;
}

static json_t *none(void)
{
	return json_make("{s:s, s:b, s:s, s:n, s:n}", "event", "result", "success", 0, "output", "",
			 "trace", "stopReason");
}

static void free_work(struct rlmd_job *job)
{
	run_free(take_pointer(&job->task.root));
}

const struct job_kind job_task_kind = {
	.start = start,
	.interrupt = interrupt,
	.cancel = cancel,
	.account = account,
	.count = count,
	.free = free_work,
	.none = none,
};

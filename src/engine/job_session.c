/*
 * A job that serves a session (rlmd/repl.h): the model calls and sub-runs of its code.
 *
 * It has no work of its own, and so ends only where its host ends it, or with the session.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/caller.h"
#include "engine/job.h"
#include "engine/subcall.h"
#include "pool/worker.h"
#include "trace/result.h"

struct session_under_way {
	struct caller caller;
	struct budget *budget; /* owned */
	struct subcall_list calls;
};

static void on_budget_warning(void *owner, const char *text)
{
	struct rlmd_job *job = owner;

	caller_warn(&job->session.under_way->caller, text);
	hooks_tell_budget_warning(&job->scope.hooks, text);
}

static void start(struct rlmd_job *job)
{
	struct session_under_way *session = xcalloc(1, sizeof *session);

	job->session.under_way = session;
	TAILQ_INIT(&session->calls);
	session->budget = budget_new(&job->scope.config.limits, on_budget_warning, job);
	session->caller = (struct caller){
		.scope = &job->scope,
		.id = job->scope.id,
		.log = log_child(&job->scope.log),
		.budget = session->budget,
		.context = &job->task.context,
		.model = job->scope.subcall_model,
		.answers_max = CALLER_ANSWERS_MAX,
		.warnings = json_make_array(),
	};
}

static void refuse(struct worker *worker, const struct worker_call *call)
{
	size_t count = call->count ? call->count : 1;
	auto_free struct worker_result *results = xcalloc(count, sizeof *results);

	for (size_t i = 0; i < count; i++)
		results[i] = (struct worker_result){.failed = true,
						    .kind = RLMD_ERROR_USAGE,
						    .message = "no model may be asked any more"};
	worker_reply(worker, call->id, results, count);
}

void job_session_call(struct rlmd_job *job, struct worker *worker, const struct worker_call *call)
{
	struct session_under_way *session = job->session.under_way;

	if (job->state == JOB_WORKS)
		subcall_start(&session->calls, &session->caller, worker, call);
	else
		refuse(worker, call);
}

void job_session_worker_lost(struct rlmd_job *job)
{
	if (job->session.under_way)
		subcall_free_all(&job->session.under_way->calls);
}

static void stop(struct rlmd_job *job)
{
	struct session_under_way *session = job->session.under_way;
	json_t *object = json_make("{s:s, s:b, s:o}", "event", "result", "success",
				   !job->broken.kind, "usage", result_usage(session->budget));

	subcall_stop_all(&session->calls);
	job_result_add(job, session->budget, session->caller.warnings, object);
	if (job->broken.kind)
		json_put(
			object, "error",
			result_error(&job->broken, llm_provider(job->scope.llm, job->scope.model)));
	job_end(job, &job->broken, object);
}

static const struct budget *account(const struct rlmd_job *job)
{
	return job->session.under_way ? job->session.under_way->budget : NULL;
}

static void count(const struct rlmd_job *job, int64_t *ret_all, int64_t *ret_ended)
{
	(void)job;
	*ret_all = *ret_ended = 0;
}

static json_t *none(void)
{
	return json_make("{s:s, s:b}", "event", "result", "success", 0);
}

static void free_work(struct rlmd_job *job)
{
	struct session_under_way *session = take_pointer(&job->session.under_way);

	if (session) {
		subcall_free_all(&session->calls);
		budget_free(session->budget);
		caller_done(&session->caller);
		free(session);
	}
	job->session.freed(job->session.owner);
}

const struct job_kind job_session_kind = {
	.start = start,
	.interrupt = stop,
	.cancel = stop,
	.account = account,
	.count = count,
	.free = free_work,
	.none = none,
};

/*
 * A job that is a plan: operations that are model calls and whole runs.
 *
 * One account for all operations, one line for model calls, one trace. Which
 * operation starts when is src/async's business (rlmd/plan.h).
 */
#include <rlmd/plan.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/caller.h"
#include "engine/job.h"
#include "engine/operation.h"
#include "trace/record.h"
#include "trace/result.h"

enum { ANSWERS_MAX = 512 << 20 }; /* bytes of all responses together, which the result holds */

struct plan_under_way {
	struct rlmd_job *job; /* lent: whose it is */
	struct caller caller;
	struct budget *budget; /* owned */
	struct operation_set set;
	int64_t ended; /* operations so far */
	bool tolerant; /* an operation that fails is no failure of the plan */
	struct rlmd_error
		failed; /* the first operation that did, but for those that it took with it */
};

static void on_budget_warning(void *owner, const char *text)
{
	struct plan_under_way *plan = owner;

	caller_warn(&plan->caller, text);
	hooks_tell_budget_warning(&plan->job->scope.hooks, text);
}

static void on_log(void *owner, const struct rlmd_plan_event *event)
{
	struct plan_under_way *plan = owner;

	record_plan(plan->job->scope.trace, plan->job->scope.id, event);
}

static enum rlmd_error_kind kind_of(const struct rlmd_plan_result *result)
{
	const struct operation *operation = result->operation->owner;

	switch (result->error) {
	case RLMD_PLAN_ERROR_TIMEOUT:
		return RLMD_ERROR_TIMEOUT;
	case RLMD_PLAN_ERROR_BUDGET:
		return RLMD_ERROR_BUDGET;
	case RLMD_PLAN_ERROR_INPUT:
		return RLMD_ERROR_INPUT;
	case RLMD_PLAN_ERROR_OPERATION:
		return operation->error;
	case RLMD_PLAN_OK:
	case RLMD_PLAN_ERROR_CANCELLED:
	case RLMD_PLAN_ERROR_DEPENDENCY:
	case RLMD_PLAN_ERROR_ALL_FAILED:
		break;
	}
	return RLMD_ERROR_NONE;
}

static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct plan_under_way *plan = owner;
	enum rlmd_error_kind kind = kind_of(result);

	plan->ended++;

	if (!plan->failed.kind && kind)
		error_set(&plan->failed, kind, "operation \"%s\" failed: %s", result->operation->id,
			  result->message);
}

/* One success is enough of alternatives, and where errors are no reason to stop. */
static struct rlmd_error failure_of(const struct plan_under_way *plan,
				    const struct rlmd_plan_summary *summary)
{
	struct rlmd_error err = {0};

	if (summary->error == RLMD_PLAN_ERROR_CANCELLED)
		error_set(&err, RLMD_ERROR_CANCELLED, "the plan was cancelled");
	else if (summary->error == RLMD_PLAN_ERROR_ALL_FAILED)
		error_set(&err, plan->failed.kind, "%s", summary->message);
	else if (summary->winner == RLMD_PLAN_NOBODY && !(plan->tolerant && summary->succeeded))
		err = plan->failed;
	return err;
}

static json_t *result_object(struct plan_under_way *plan)
{
	json_t *object = json_make("{s:s}", "event", "result"); /* first, as in every event */
	json_auto_t *report = operation_set_report(&plan->set);

	json_update(object, report);
	json_put(object, "usage", result_usage(plan->budget));
	job_result_add(plan->job, plan->budget, plan->caller.warnings, object);
	return object;
}

static void on_done(void *owner, const struct rlmd_plan_summary *summary)
{
	struct plan_under_way *plan = owner;
	struct rlmd_error err = plan->job->broken.kind ? plan->job->broken
						       : failure_of(plan, summary);

	operation_set_settle(&plan->set);
	plan->job->result.metrics = *summary->metrics;
	job_end(plan->job, &err, result_object(plan));
}

static struct caller caller_of(struct plan_under_way *plan)
{
	struct rlmd_job *job = plan->job;

	return (struct caller){
		.scope = &job->scope,
		.id = job->scope.id,
		.log = log_child(&job->scope.log),
		.budget = plan->budget,
		.context = &job->task.context,
		.model = job->scope.model,
		.depth = -1,
		.answers_max = ANSWERS_MAX,
		.warnings = json_make_array(),
	};
}

static void carry_out(struct plan_under_way *plan, struct rlmd_plan_file *file)
{
	const struct rlmd_plan_config *config = rlmd_plan_file_config(file);
	struct rlmd_execution_options options = {
		.size = sizeof options,
		.keep = true,
		.on_result = on_result,
		.on_log = on_log,
		.on_done = on_done,
		.owner = plan,
	};

	plan->tolerant = config->partial_failure == RLMD_PLAN_CONTINUE_ON_ERROR;
	caller_key(&plan->caller, NULL, 0, plan->set.key);
	operation_set_init(&plan->set, &plan->caller, rlmd_plan_file_plan(file));
	operation_set_start(&plan->set, config, &options);
}

static void start(struct rlmd_job *job)
{
	struct plan_under_way *plan = xcalloc(1, sizeof *plan);

	job->plan.under_way = plan;
	plan->job = job;
	plan->budget = budget_new(&job->scope.config.limits, on_budget_warning, plan);
	plan->caller = caller_of(plan);
	carry_out(plan, job->plan.file);
}

static void stop(struct rlmd_job *job)
{
	rlmd_execution_stop(job->plan.under_way->set.execution);
}

static const struct budget *account(const struct rlmd_job *job)
{
	return job->plan.under_way ? job->plan.under_way->budget : NULL;
}

static void count(const struct rlmd_job *job, int64_t *ret_all, int64_t *ret_ended)
{
	*ret_all = (int64_t)rlmd_plan_count(job_plan(job));
	*ret_ended = job->plan.under_way ? job->plan.under_way->ended : 0;
}

static json_t *none(void)
{
	return json_make("{s:s, s:{}, s:i, s:i, s:n, s:[]}", "event", "result", "results",
			 "totalTokens", 0, "duration", 0, "winner", "cancelled");
}

static void free_work(struct rlmd_job *job)
{
	struct plan_under_way *plan = take_pointer(&job->plan.under_way);

	if (!plan)
		return;
	operation_set_done(&plan->set);
	budget_free(plan->budget);
	caller_done(&plan->caller);
	free(plan);
}

const struct job_kind job_plan_kind = {
	.start = start,
	.interrupt = stop,
	.cancel = stop,
	.account = account,
	.count = count,
	.free = free_work,
	.none = none,
};

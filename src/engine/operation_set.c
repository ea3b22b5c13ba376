#include "engine/operation_set.h"

#include <stdlib.h>

#include "async/report.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "budget/budget.h"
#include "engine/caller.h"
#include "engine/job.h"

/* What an operation is taken to cost until one has ended; tokens. */
enum { CALL_TOKENS = 2500, RUN_TOKENS = 5 * CALL_TOKENS };

static bool is_task(const struct rlmd_operation *spec)
{
	return spec->mode == RLMD_OPERATION_RUN;
}

void operation_set_init(struct operation_set *set, struct caller *caller,
			struct rlmd_operation *specs, size_t count)
{
	set->caller = caller;
	set->specs = specs;
	set->count = count;
	set->all = xcalloc(count, sizeof *set->all);
	/* By their places, for they may begin in any order. */
	for (size_t i = 0; i < count; i++) {
		struct operation *operation = &set->all[i];

		operation->number = caller->calls++;
		specs[i].owner = operation;
		operation->set = set;
		operation->spec = &specs[i];
		operation->wanting = is_task(&specs[i]);
		set->tasks += operation->wanting;
	}
	if (set->tasks)
		admission_init(&set->admission, caller, set->tasks, count - set->tasks);
}

static int64_t remaining(void *owner)
{
	const struct operation_set *set = owner;
	const struct budget *budget = set->caller->budget;

	if (set->admission.aside && set->tasks == set->count)
		budget = set->admission.aside;
	return budget_unspent(budget).tokens;
}

static int64_t estimate(void *owner)
{
	const struct operation_set *set = owner;

	if (set->ended)
		return set->tokens / set->ended;
	return set->tasks ? RUN_TOKENS : CALL_TOKENS;
}

/* It may have ended without a start, and then its share is for others. */
static void on_result(void *owner, const struct rlmd_plan_result *result)
{
	struct operation *operation = result->operation->owner;
	struct operation_set *set = operation->set;

	if (operation->wanting)
		admission_decline(&set->admission);
	operation->wanting = false;
	if (!is_task(result->operation) && set->admission.calls)
		set->admission.calls--;
	if (set->keep)
		operation_done(operation);
	if (set->on_result)
		set->on_result(owner, result);
}

/* Of model calls no more than may be in flight: what would wait for its place had better do so
 * where priorities are known. */
static void limit_calls(const struct operation_set *set, struct rlmd_plan_config *config)
{
	size_t most = (size_t)set->caller->job->config.max_parallel;

	if (!set->tasks && config->max_parallel > most)
		config->max_parallel = most;
}

void operation_set_start(struct operation_set *set, const struct rlmd_plan *plan,
			 struct rlmd_execution_options options)
{
	options.orchestrator = operation_orchestrator;
	options.budget = (struct rlmd_budget_manager){remaining, estimate, NULL, set};
	limit_calls(set, &options.config);
	set->keep = options.keep;
	set->on_result = options.on_result;
	options.on_result = on_result;
	set->execution = rlmd_execution_start(set->caller->job->base, plan, &options);
}

json_t *operation_set_report(const struct operation_set *set)
{
	json_t *report = report_execution(set->execution);
	json_t *results = json_object_get(report, "results");

	for (size_t i = 0; i < set->count; i++)
		if (set->all[i].degraded && !set->all[i].failed)
			json_object_set_new(json_object_get(results, set->specs[i].id), "degraded",
					    json_string(set->all[i].degraded));
	return report;
}

void operation_set_settle(struct operation_set *set)
{
	admission_done(&set->admission);
}

void operation_set_done(struct operation_set *set)
{
	rlmd_execution_free(set->execution);
	for (size_t i = 0; i < set->count; i++) {
		operation_done(&set->all[i]);
		free(set->all[i].degraded); /* which the report of a plan has needed */
	}
	admission_done(&set->admission);
	if (set->caller)
		set->caller->answers -= set->answers;
	free(set->all);
	*set = (struct operation_set){0};
}

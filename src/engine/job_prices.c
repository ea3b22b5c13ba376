#include "engine/job_prices.h"

#include <rlmd/plan.h>

#include "engine/job.h"

static bool check(struct rlmd_job *job, const char *model, bool asked_for, struct rlmd_error *err)
{
	int64_t cost;

	if (job->config.limits.cost == BUDGET_UNLIMITED || llm_price(job->llm, model, 1, 1, &cost))
		return true;
	if (asked_for)
		return error_set(
			err, RLMD_ERROR_USAGE,
			"the price of model '%.100s' is not known, so the limit on cost "
			"(--max-cost) cannot be kept: leave the limit out, or give "
			"--price-table a file like {\"%.100s\": {\"input_cost_per_token\": 2e-06, "
			"\"output_cost_per_token\": 8e-06}}",
			model, model);
	job->config.limits.cost = BUDGET_UNLIMITED;
	llm_warn_unpriced(job->llm, model);
	return true;
}

static bool check_plan(struct rlmd_job *job, bool asked_for, struct rlmd_error *err)
{
	const struct rlmd_plan *plan = job->file ? rlmd_plan_file_plan(job->file) : NULL;

	for (size_t i = 0; plan && i < rlmd_plan_count(plan); i++) {
		const struct rlmd_operation *operation = rlmd_plan_operation(plan, i);

		if (operation->model && !check(job, operation->model, asked_for, err))
			return error_context(err, "operation \"%s\"", operation->id);
	}
	return true;
}

/* With nothing to spend a run cannot so much as begin with a model that has a price. */
static bool check_free(const struct rlmd_job *job, struct rlmd_error *err)
{
	int64_t cost;

	if (job->config.limits.cost || !llm_price(job->llm, job->model, 1, 1, &cost) || !cost)
		return true;
	return error_limit(err, RLMD_STOP_MAX_COST,
			   "model '%.100s' has a price, and --max-cost 0 allows only what is free: "
			   "choose a local model, or allow an amount",
			   job->model);
}

bool job_check_prices(struct rlmd_job *job, bool asked_for, bool shown, struct rlmd_error *err)
{
	return check(job, job->model, asked_for, err) &&
	       check(job, job->subcall_model, asked_for, err) && (shown || check_free(job, err)) &&
	       check_plan(job, asked_for, err);
}

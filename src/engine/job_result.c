#include "engine/job_result.h"

#include "base/json.h"
#include "base/sized.h"
#include "engine/job.h"
#include "trace/result.h"

static bool holds(const json_t *texts, const json_t *wanted)
{
	const json_t *text;
	size_t i;

	json_array_foreach (texts, i, text)
		if (json_equal(text, wanted))
			return true;
	return false;
}

/* What was found out about providers before it began may be among the notes. */
static json_t *warnings_of(struct rlmd_job *job, const json_t *warnings)
{
	json_auto_t *more = llm_take_warnings(job->llm);
	json_t *all = json_copy((json_t *)warnings);
	const json_t *text;
	size_t i;

	json_array_extend(all, job->notes);
	json_array_foreach (more, i, text)
		if (!holds(all, text))
			json_array_append(all, (json_t *)text);
	return all;
}

void job_result_add(struct rlmd_job *job, const struct budget *account, const json_t *warnings,
		    json_t *object)
{
	job->result.usage = *budget_usage(account);
	job->result.duration_ms = budget_elapsed_ms(account);
	job->result.refuser = budget_refuser(account);
	json_object_set_new(object, "warnings", warnings_of(job, warnings));
	json_object_set_new(object, "sandbox", job_sandbox(job));
	json_object_set_new(object, "model", json_from_text(text_of(job->model)));
	json_object_set_new(object, "provider", json_string(llm_provider(job->llm, job->model)));
	json_object_set_new(object, "priceTable", json_string(llm_price_date(job->llm)));
}

json_t *job_result_none(struct rlmd_job *job, const struct rlmd_error *err)
{
	struct budget *account = budget_new(&job->config.limits, NULL, NULL);
	json_auto_t *warnings = json_array();
	json_t *object = job->work->none();

	json_object_set_new(object, "usage", result_usage(account));
	job_result_add(job, account, warnings, object);
	json_object_set_new(object, "error", result_error(err, llm_provider(job->llm, job->model)));
	budget_free(account);
	return object;
}

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

	if (!err || err->kind != RLMD_ERROR_BUDGET || !result->refuser ||
	    (err->stop != RLMD_STOP_MAX_COST && err->stop != RLMD_STOP_MAX_TOKENS))
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
	return sized_give(ret, &usage, sizeof usage, sizeof usage);
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

#include "engine/job_result.h"

#include "base/json.h"
#include "engine/job.h"

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

void job_result_add(struct rlmd_job *job, const json_t *warnings, json_t *object)
{
	json_object_set_new(object, "warnings", warnings_of(job, warnings));
	json_object_set_new(object, "sandbox", job_sandbox(job));
	json_object_set_new(object, "model", json_from_text(text_of(job->model)));
	json_object_set_new(object, "provider", json_string(llm_provider(job->llm, job->model)));
	json_object_set_new(object, "priceTable", json_string(llm_price_date(job->llm)));
}

#include "engine/job_schemas.h"

#include <jansson.h>
#include <rlmd/plan.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/job.h"
#include "engine/validation.h"

enum { DEPTH_MAX = 100 };

static const struct rlmd_operation *operation_of(const struct rlmd_job *job, size_t i)
{
	return job->file ? rlmd_plan_operation(rlmd_plan_file_plan(job->file), i) : NULL;
}

/* Of a task one, of a plan one for each operation; some are empty. */
static size_t count_of(const struct rlmd_job *job)
{
	return job->file ? rlmd_plan_count(rlmd_plan_file_plan(job->file)) : 1;
}

static struct rlmd_text schema_at(const struct rlmd_job *job, size_t i)
{
	return job->file ? operation_of(job, i)->schema
			 : text_from(job->config.schema, job->config.schema_size);
}

static bool has_schemas(const struct rlmd_job *job)
{
	for (size_t i = 0; i < count_of(job); i++)
		if (schema_at(job, i).size)
			return true;
	return false;
}

/* Whose it is. False. */
static bool blame(const struct rlmd_job *job, size_t i, struct rlmd_error *err)
{
	error_context(err, "the schema");
	if (job->file)
		error_context(err, "operation \"%s\"", operation_of(job, i)->id);
	return false;
}

static bool is_readable(struct rlmd_text schema, struct rlmd_error *err)
{
	json_auto_t *value = NULL;

	if (schema.size > SCHEMA_MAX)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%zu bytes are too many: models are told all of it, and it may "
				 "have %d",
				 schema.size, (int)SCHEMA_MAX);
	value = json_read(schema, DEPTH_MAX, err);
	if (!value && err)
		err->kind = RLMD_ERROR_USAGE;
	if (!value)
		return error_context(err, "this is no JSON");
	return json_is_object(value) || json_is_boolean(value) ||
	       error_set(err, RLMD_ERROR_USAGE, "it has to be an object, or true or false");
}

bool job_schemas_read(const struct rlmd_job *job, struct rlmd_error *err)
{
	for (size_t i = 0; i < count_of(job); i++)
		if (schema_at(job, i).size && !is_readable(schema_at(job, i), err))
			return blame(job, i, err);
	return true;
}

bool job_schemas_open(struct rlmd_job *job, struct rlmd_error *err)
{
	struct rlmd_sandbox *sandbox;

	if (!has_schemas(job))
		return true;
	sandbox = engine_validator(job->engine, job->sandbox, err);
	if (!sandbox)
		return false;
	job->validation = validation_new(job->base, sandbox, &job->log,
					 job->config.block_timeout_ms);
	return true;
}

/* The helper counts those that there are. */
static size_t index_of(const struct rlmd_job *job, size_t of_those)
{
	size_t i = 0;

	while (!schema_at(job, i).size || of_those--)
		i++;
	return i;
}

static void on_checked(void *owner, const struct validation_result *result)
{
	struct rlmd_job *job = owner;
	struct rlmd_error err;

	if (!result->error && !result->wrong.size) {
		job->on_schemas(job, NULL);
		return;
	}
	if (result->error)
		err = *result->error;
	else
		error_set(&err, RLMD_ERROR_USAGE, "%s", result->wrong.bytes);
	err.kind = RLMD_ERROR_USAGE;
	blame(job, index_of(job, result->index), &err);
	job->on_schemas(job, &err);
}

bool job_schemas_check(struct rlmd_job *job, job_schemas_fn *done)
{
	size_t count = count_of(job), used = 0;
	auto_free struct rlmd_text *schemas = NULL;

	if (!job->validation)
		return false;
	schemas = xcalloc(count, sizeof *schemas);
	for (size_t i = 0; i < count; i++)
		if (schema_at(job, i).size)
			schemas[used++] = schema_at(job, i);
	job->on_schemas = done;
	validation_check_schemas(job->validation, schemas, used, on_checked, job);
	return true;
}

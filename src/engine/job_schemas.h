/*
 * engine/job_schemas.h - the schemas of a job: its task's, or those of its plan's operations.
 */
#pragma once

#include "base/error.h"

struct rlmd_job;

/* What can be told without a helper: that they are JSON, and not too long. */
bool job_schemas_read(const struct rlmd_job *, struct rlmd_error *);

/* What checks answers, where there are any. RLMD_ERROR_USAGE where jsonschema is missing, with the
 * way to install it; else as rlmd_engine_sandbox(). */
bool job_schemas_open(struct rlmd_job *, struct rlmd_error *);

/* Before the work begins; `err` is NULL where each is a schema, else RLMD_ERROR_USAGE. */
typedef void job_schemas_fn(struct rlmd_job *, const struct rlmd_error *err);

/* False: there are none, and nothing is told. Else that, once, and never before this returns. */
bool job_schemas_check(struct rlmd_job *, job_schemas_fn *);

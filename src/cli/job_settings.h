/*
 * cli/job_settings.h - the settings as the library takes them: of a job, its limits, its sandbox.
 */
#pragma once

#include <rlmd/context.h>
#include <rlmd/job.h>
#include <rlmd/review.h>
#include <rlmd/sandbox.h>

#include "batch/tenancies.h"
#include "cli/config.h"

/* Its work, its sandbox and its limits are to be added. Lent by the settings. */
struct rlmd_job_options job_settings_options(const struct config *);

/* `left_ms`: of the time that the settings allow. */
struct rlmd_limits job_settings_limits(const struct config *, int64_t left_ms);

/* Of all that directories have, which is read. Lent by the settings. */
struct rlmd_context_options job_settings_context(const struct config *, int64_t left_ms);

/* Whether they agree, with the rules that job_settings_review() is given; RLMD_ERROR_USAGE. */
bool job_settings_check_review(const struct config *, const char *rules, struct rlmd_error *);

/* Its task, its directory and the description of the change are to be added. `rules` stand in place
 * of the usual ones; NULL: beside them stand those of --add-rules. Lent by the settings. */
struct rlmd_review_options job_settings_review(const struct config *, const char *rules);

/* Lent by the settings. --require is left to the caller. */
struct rlmd_sandbox_options job_settings_sandbox(const struct config *);

/* As a tenant needs it: with uids that are no other's. Lent by the settings and the needs. */
struct rlmd_sandbox_options job_settings_tenant(const struct config *,
						const struct tenancy_needs *);

/*
 * engine/job_plan_dry_run.h - a plan carried out with operations that do nothing.
 *
 * So the order is the execution's own: that in which operations would start,
 * one at a time, if each took as long as the others. In a race, all fail.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"

struct rlmd_job;

/* {"strategy", "operations": [{"id", "type", "mode", "model", "dependsOn", "inputTokens"}],
 * "worstCaseTokens", "worstCaseCost", "fullReading", "fits", "misfits", ...}, new. NULL: the system
 * gives no event loop. */
json_t *job_plan_show(const struct rlmd_job *, struct rlmd_error *);

/*
 * cli/plan_dry_run.h - a plan carried out with operations that do nothing: what --dry-run shows.
 *
 * So the order is the execution's own: that in which operations would start,
 * one at a time, if each took as long as the others. In a race, all fail.
 */
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <jansson.h>
#include <rlmd/plan.h>

#include "engine/job.h"

/* {"strategy", "operations": [{"id", "type", "mode", "model", "dependsOn", "inputTokens"}],
 * "worstCaseTokens", "worstCaseCost", ...}, new. */
json_t *plan_dry_run(struct event_base *, const struct rlmd_plan_file *, const struct llm *,
		     const struct job_config *);

/* The object for a person to read; `max_cost` is the limit. */
void plan_dry_run_format(const json_t *, int64_t max_cost, struct evbuffer *out);

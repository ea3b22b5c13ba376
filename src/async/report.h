/* async/report.h - what executions tell, as JSON. */
#pragma once

#include <jansson.h>
#include <rlmd/plan.h>

/* New: {"results", "totalTokens", "duration", "winner", "cancelled", "error", "metrics"}. */
json_t *report_execution(const struct rlmd_execution *);

/* New: {"event", "ms", ...}. */
json_t *report_event(const struct rlmd_plan_event *);
const char *report_event_name(enum rlmd_plan_event_kind);

/* async/metrics.h - what executions add up to. */
#pragma once

#include <rlmd/plan.h>

/* Counts one operation that ended. */
void metrics_count(struct rlmd_plan_metrics *, const struct rlmd_plan_result *);

/* Counts `ms` in which `running` of `slots` were taken. */
void metrics_pass(struct rlmd_plan_metrics *, int64_t ms, size_t running, size_t slots);

/* Neither is negative; the sum stays within its range. */
int64_t metrics_sum(int64_t a, int64_t b);

/* As the plan files write them; static. */
const char *metrics_type_name(enum rlmd_operation_type);
const char *metrics_outcome_name(enum rlmd_plan_outcome);
const char *metrics_strategy_name(enum rlmd_plan_strategy);

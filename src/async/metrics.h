/* async/metrics.h - counts of executions, added up. */
#pragma once

#include <rlmd/plan.h>

/* One more than the last value of each enum. */
enum {
	METRICS_TYPES = RLMD_OPERATION_SYNTHESIZE + 1,
	METRICS_STRATEGIES = RLMD_PLAN_SEQUENTIAL + 1,
	METRICS_OUTCOMES = RLMD_OUTCOME_CANCELLED + 1,
};

struct rlmd_plan_metrics {
	int64_t operations[METRICS_TYPES][METRICS_OUTCOMES]; /* that ended */
	int64_t tokens;
	int64_t executions[METRICS_STRATEGIES];
	int64_t busy_ms;          /* time of all operations that ran */
	int64_t slot_ms;          /* time of all slots that were open to them */
	int64_t parallel_highest; /* that ran at once */
	int64_t budget_limited;   /* how often the budget changed the parallelism */
	int64_t races, races_won;
};

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

/*
 * engine/errand.h - the operations of one call or plan, ordered by src/async.
 *
 * There is one way to do several things at once here: a single question is a
 * plan of one operation. An errand says what an operation is (engine/slot.h), who
 * pays for it and what it may cost; when it starts is rlmd_execution's business.
 */
#pragma once

#include <jansson.h>
#include <rlmd/plan.h>
#include <stdint.h>

#include "engine/slot.h"

struct caller;

/* Embed it. Zero may be freed. */
struct errand {
	struct caller *caller;             /* lent */
	struct rlmd_operation *operations; /* lent: their owners are ours */
	struct slot *slots;                /* owned: one for each operation */
	size_t count, tasks;               /* operations; those that want a sub-run */
	struct admission admission;
	size_t answers;                   /* bytes so far, which count in the caller's */
	int64_t ended, tokens;            /* operations that had used some, and how many */
	struct rlmd_execution *execution; /* owned */
	bool keep;                        /* the execution keeps the answers, the slots do not */
	rlmd_plan_result_fn *on_result;   /* may be NULL: the owner of the options' */
};

void errand_init(struct errand *, struct caller *, struct rlmd_operation *, size_t count);

/*
 * The plan is that of the operations; both are lent. Orchestrator and budget manager of the options
 * are set here. Never calls back before it returns.
 */
void errand_start(struct errand *, const struct rlmd_plan *, struct rlmd_execution_options);

/* The whole as JSON (docs/plans.md), new: with why an answer is less than what was asked for. */
json_t *errand_report(const struct errand *);

/* All have ended: what was set aside for them returns. */
void errand_settle(struct errand *);
void errand_done(struct errand *); /* cancels; nobody is told */

void errand_on_slot(struct slot *); /* it has ended of itself */

/*
 * engine/operation_set.h - the operations of one call or plan, ordered by src/async.
 *
 * There is one way to do several things at once here: a single question is a
 * plan of one operation. The set knows who pays for its operations and what they
 * may cost; when one starts is the execution's business, what it does its own
 * (engine/operation.h).
 */
#pragma once

#include <jansson.h>
#include <rlmd/plan.h>
#include <stdint.h>

#include "engine/caller.h"
#include "engine/operation.h"

/* Embed it. Zero may be freed. */
struct operation_set {
	struct caller *caller;        /* lent */
	char mark[CALLER_MARK_SIZE];  /* of the call or plan */
	struct rlmd_operation *specs; /* lent: their owners are ours */
	struct operation *all;        /* owned: one for each */
	size_t count, tasks;          /* operations; those that want a sub-run */
	struct admission admission;
	size_t answers;                   /* bytes so far, which count in the caller's */
	int64_t ended, tokens;            /* operations that had used some, and how many */
	struct rlmd_execution *execution; /* owned */
	bool keep;                      /* the execution keeps the answers, the operations do not */
	rlmd_plan_result_fn *on_result; /* may be NULL: the owner of the options' */
};

/* Its mark, if it is to have one, is set before. */
void operation_set_init(struct operation_set *, struct caller *, struct rlmd_operation *,
			size_t count);

/*
 * The plan is that of the operations; both are lent. Orchestrator and budget manager of the options
 * are set here. Never calls back before it returns.
 */
void operation_set_start(struct operation_set *, const struct rlmd_plan *,
			 struct rlmd_execution_options);

/* The whole as JSON (docs/plans.md), new: with why an answer is less than what was asked for. */
json_t *operation_set_report(const struct operation_set *);

/* All have ended: what was set aside for them returns. */
void operation_set_settle(struct operation_set *);
void operation_set_done(struct operation_set *); /* cancels; nobody is told */

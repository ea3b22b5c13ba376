/*
 * engine/admission.h - which tasks of a call get a sub-run, out of what, and why not.
 *
 * In this order: a sub-run, out of the budget that is set aside for the call; one
 * call of a model, where little is left (ENG-14); a direct answer, where a limit
 * stands in the way (ENG-13). Whether little is left is asked once, before the
 * budget is set aside, for that alone leaves less than there was. A plan that no
 * run has ordered sets nothing aside: all that it has is for its operations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct budget;
struct caller;

enum way {
	WAY_SUBRUN,
	WAY_DOWNGRADED, /* one llm_query about the task and what fits of its context */
	WAY_DIRECT,     /* the same, because there may be no sub-run */
};

enum { ADMISSION_REASON_SIZE = 256 };

/* Zero: there is no task. */
struct admission {
	struct caller *caller; /* lent */
	struct budget *pool;   /* lent: what sub-runs are granted out of; NULL: there are none */
	struct budget *aside;  /* owned: the same, where it was set aside for the call; or NULL */
	size_t wanting;        /* tasks that have neither sub-run nor answer yet */
	size_t calls;          /* of models, which are paid out of the same and have not ended */
	struct rlmd_error blocked; /* why there is no pool; RLMD_ERROR_NONE: no limit is */
	char scarce[48];           /* likewise, where little is left */
};

/* `tasks` want a sub-run, beside `calls` of models. */
void admission_init(struct admission *, struct caller *, size_t tasks, size_t calls);
void admission_done(struct admission *); /* the sub-runs must be gone; idempotent */

/* The way of the next task, and the reason for it where it is no sub-run, else "". */
enum way admission_way(const struct admission *, char ret_reason[static ADMISSION_REASON_SIZE]);

/* A task becomes a sub-run now: returns among how many the pool is shared (budget_new_child()). */
int64_t admission_begin(struct admission *);
void admission_decline(struct admission *); /* that task goes another way, or nowhere */

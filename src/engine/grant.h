/*
 * engine/grant.h - which tasks of a call get a sub-run, out of what, and why not.
 *
 * In this order: a sub-run, out of the purse that is set aside for the call; one
 * call of a model, where little is left (ENG-14); a direct answer, where a limit
 * stands in the way (ENG-13). Whether little is left is asked once, before the
 * purse is set aside, for that alone leaves less than there was.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/run.h"

struct room;

enum way {
	WAY_SUBRUN,
	WAY_DOWNGRADED, /* one llm_query about the task and what fits of its context */
	WAY_DIRECT,     /* the same, because there may be no sub-run */
};

struct grant {
	const struct room *room; /* lent */
	struct run *caller;      /* lent */
	struct budget *pool;     /* owned: of the call's sub-runs; NULL: it has none */
	size_t wanting;          /* tasks that have neither sub-run nor answer yet */
	const char *blocked;     /* static: why there is no pool */
	char scarce[48];         /* likewise, where little is left */
};

/* `tasks` want a sub-run of `caller`. */
void grant_init(struct grant *, const struct room *, struct run *caller, size_t tasks);
void grant_done(struct grant *); /* the sub-runs must be gone; idempotent */

/* The way of the next task, and the reason for it where it is no sub-run (lent). */
enum way grant_way(const struct grant *, const char **ret_reason);

/* Sets the pool and the share of the task that takes its way now. */
void grant_share(struct grant *, struct run_options *ret);
void grant_decline(struct grant *); /* that task goes another way */

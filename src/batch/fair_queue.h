/*
 * batch/fair_queue.h - whose job comes next: tenants share by their weights.
 *
 * They share the places where jobs are at work, and take turns at those: each claim moves a tenant
 * back by its share. One that comes late, or comes back after it had nothing to do, begins where
 * the others are: what it did not use is not owed to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rlmd/rlmd.h>

/* Why none of a tenant's jobs is begun any more. */
enum tenant_stop {
	TENANT_STOP_NONE,
	TENANT_STOP_KEY,    /* its key was refused */
	TENANT_STOP_MONEY,  /* what it may spend is spent, or held by others */
	TENANT_STOP_HALTED, /* too many of its jobs failed */
	TENANT_STOP_UNABLE, /* what it requires cannot be had here */
	TENANT_STOP_BUSY,   /* its provider wants no more work yet */
};

struct tenancy;

struct fair_tenant {
	char *name;              /* owned; "": nobody's */
	struct tenancy *tenancy; /* lent: what it has; NULL: nobody has asked yet */
	int64_t weight;          /* from 1 */
	int64_t at_work;         /* jobs that it has begun and that are not over */
	int64_t due_ms;          /* of the loop's clock: nothing is to be claimed before */
	bool ready;              /* it may have jobs that are due */
	enum tenant_stop stop;
	int64_t stop_ends_ms; /* of the loop's clock; INT64_MAX: never by itself */
	/* private */
	uint64_t passed;
};

/* Zero is empty. */
struct fair_queue {
	struct fair_tenant **tenants; /* owned */
	size_t count;
	uint64_t now; /* where the one is that had the last turn */
};

void fair_queue_done(struct fair_queue *);

/* The tenant of that name, which is added with a weight of 1 where it is not there; lent. */
struct fair_tenant *fair_queue_get(struct fair_queue *, struct rlmd_text tenant);

/* From now on it may have jobs. */
void fair_queue_wake(struct fair_queue *, struct fair_tenant *);

/* None of its jobs is claimed any more until then; one that is stopped for good stays so, for the
 * first reason. TENANT_STOP_NONE: it may go on, and may have jobs. */
void fair_queue_stop(struct fair_queue *, struct fair_tenant *, enum tenant_stop, int64_t ends_ms);

/* Whether no time will come when it goes on. */
bool fair_queue_is_over(const struct fair_tenant *);

/* Those that wait for a time that is over now may have jobs, and those whose stop is over. */
void fair_queue_wake_due(struct fair_queue *, int64_t now_ms);

/* When the next one's time comes, or came; INT64_MAX: none waits. */
int64_t fair_queue_due(const struct fair_queue *);

/* Whether somebody is ready. */
bool fair_queue_any(const struct fair_queue *);

/*
 * The one whose turn it is, which then moves back, where so many places are free; NULL: none is
 * ready, or what is free is kept for others. Of several it is the one that has the fewest at work
 * by its weight: who holds its places for long takes no more of them than its share. A tenant that
 * has no job at work, and may have one now or later, has a place kept for it, as far as there are
 * as many. Lent.
 */
struct fair_tenant *fair_queue_next(struct fair_queue *, int64_t free);

/*
 * batch/turns.h - whose job comes next: tenants share by their weights.
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
enum turn_stop {
	TURN_GOES_ON,
	TURN_KEY,    /* its key was refused */
	TURN_MONEY,  /* what it may spend is spent, or held by others */
	TURN_HALTED, /* too many of its jobs failed */
	TURN_UNABLE, /* what it requires cannot be had here */
	TURN_BUSY,   /* its provider wants no more work yet */
};

struct tenancy;

struct turn {
	char *tenant;            /* owned; "": nobody's */
	struct tenancy *tenancy; /* lent: what it has; NULL: nobody has asked yet */
	int64_t weight;          /* from 1 */
	int64_t at_work;         /* jobs that it has begun and that are not over */
	int64_t due_ms;          /* of the loop's clock: nothing is to be claimed before */
	bool ready;              /* it may have jobs that are due */
	enum turn_stop stop;
	int64_t stop_ends_ms; /* of the loop's clock; INT64_MAX: never by itself */
	/* private */
	uint64_t passed;
};

/* Zero is empty. */
struct turns {
	struct turn **tenants; /* owned */
	size_t count;
	uint64_t now; /* where the one is that had the last turn */
};

void turns_done(struct turns *);

/* The tenant of that name, which is added with a weight of 1 where it is not there; lent. */
struct turn *turns_get(struct turns *, struct rlmd_text tenant);

/* From now on it may have jobs. */
void turns_wake(struct turns *, struct turn *);

/* None of its jobs is claimed any more until then; one that is stopped for good stays so, for the
 * first reason. TURN_GOES_ON: it may go on, and may have jobs. */
void turns_stop(struct turns *, struct turn *, enum turn_stop, int64_t ends_ms);

/* Whether no time will come when it goes on. */
bool turn_is_over(const struct turn *);

/* Those that wait for a time that is over now may have jobs, and those whose stop is over. Returns
 * when the next one's comes; INT64_MAX: none waits. */
int64_t turns_wake_due(struct turns *, int64_t now_ms);

/* Whether somebody is ready. */
bool turns_any(const struct turns *);

/*
 * The one whose turn it is, which then moves back, where so many places are free; NULL: none is
 * ready, or what is free is kept for others. Of several it is the one that has the fewest at work
 * by its weight: who holds its places for long takes no more of them than its share. Who has none
 * at work, and may have jobs now or later, has a place kept, as far as there are as many. Lent.
 */
struct turn *turns_next(struct turns *, int64_t free);

/*
 * batch/turns.h - whose job comes next: tenants take turns by their weights.
 *
 * Each claim moves a tenant back by its share. One that comes late, or comes back after it had
 * nothing to do, begins where the others are: what it did not use is not owed to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rlmd/rlmd.h>

struct turn {
	char *tenant;   /* owned; "": nobody's */
	int64_t weight; /* from 1 */
	int64_t due_ms; /* of the loop's clock: nothing is to be claimed before */
	bool ready;     /* it may have jobs that are due */
	bool stopped;   /* none of its jobs is begun any more */
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

/* Those that wait for a time that is over now may have jobs. Returns when the next one's comes;
 * INT64_MAX: none waits. */
int64_t turns_wake_due(struct turns *, int64_t now_ms);

/* The one whose turn it is, which then moves back; NULL: none is ready. Lent. */
struct turn *turns_next(struct turns *);

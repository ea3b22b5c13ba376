/*
 * batch/lease.h - an account of the store, and this process's lease of it.
 *
 * The store's account says what may be spent in a batch or in a day, on all machines together. A
 * lease is the part of it that this process may spend. Jobs pay out of an account of the library
 * (rlmd/budget.h), which follows the lease:
 *
 * - its limits are what the lease has, and what was free in the store when that was last asked;
 * - its cover is what the lease has open: the most that this process may have spent if it dies.
 *
 * No call waits for the store while the lease is open for it; the lease is made larger before the
 * next call would have to wait.
 *
 *   account -> lease -> held: what calls in flight may cost, and as much again, renewed by ticks
 *     ^                   |
 *     `---- next job -----+--> settled: no job used it for a while, the day is over, the end
 *
 * Leases stand below each other as their accounts do. Functions for a job take the lowest one, and
 * go up from there.
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct lease;
struct store;
struct store_result;

enum { LEASE_AS_IT_IS = -1 }; /* a limit: the store's own, which others have set */

struct lease_options {
	struct event_base *base;  /* lent */
	struct store *store;      /* lent */
	int64_t batch;            /* 0: the account is of the store's current day */
	const char *tenant;       /* lent: as the store has it */
	const char *name;         /* of the account, in errors: "tenant 'acme'" */
	const char *node;         /* lent: the holder of the lease */
	int64_t lease_ms;         /* twice that of a job */
	struct rlmd_amount limit; /* RLMD_UNLIMITED: none */
	struct rlmd_amount bound; /* the most that one job takes; RLMD_UNLIMITED: it has no limit */
	struct lease *above;      /* lent; NULL: none */
	/* After LEASE_WAITS: lease_look() may have another answer now; or the lease is closed.
	 * From the loop. */
	void (*changed)(void *owner, struct lease *);
	/* The store failed; the lease is of no use any more. */
	void (*failed)(void *owner, const struct store_result *);
	void *owner; /* lent */
};

/* Nothing is asked of the store before lease_look() or a job wants it. */
struct lease *lease_new(const struct lease_options *);
void lease_free(struct lease *); /* after the jobs; the store ends it when its time is over */

struct rlmd_account *lease_account(const struct lease *); /* lent: jobs pay out of it */

enum lease_state {
	LEASE_READY,
	LEASE_WAITS, /* the store is asked; `changed` comes */
	LEASE_EMPTY, /* too little is left for a job */
};

/* Why no job may be begun. */
struct lease_lack {
	int64_t again_ms; /* when to ask again, on clock_ms(); INT64_MAX: never, and then also: */
	char *why;     /* whose limit it is and what can be done, for people; the caller frees it */
	bool reported; /* a caller had this before, and no job was begun since */
};

/* Whether a job may be begun; of LEASE_EMPTY also why not. */
enum lease_state lease_look(struct lease *lowest, struct lease_lack *ret);

/* The cost of a job; zero: it was not begun. */
struct lease_job {
	bool succeeded;
	struct rlmd_amount cost, paid; /* in all its attempts; by this one */
};

/* A job is begun; it has ended. True: jobs of any tenant may be begun by its end, not only those
 * that pay out of `lowest`. */
void lease_use(struct lease *lowest);
bool lease_leave(struct lease *lowest, const struct lease_job *);

/* The mean cost of jobs in other processes; it has no meaning after one has ended in this one. */
void lease_expect(struct lease *, struct rlmd_amount cost);

/* A job could not go on for the limit of this account, which is none of its own. Where others used
 * it, fewer jobs will at once; where none did, and a second job finds the same, none is begun
 * before there is more. */
void lease_note_short(struct lease *lowest, const char *account, enum rlmd_stop);

/* The cost that an entry of a journal has, and the leases at which it counts. */
enum { LEASE_ACCOUNTS = 3 };
struct lease_bill {
	struct rlmd_amount amount;
	int64_t leases[LEASE_ACCOUNTS];
	size_t count;
};

/* lease_pay(): an entry with this bill is on its way into the store. lease_paid(): it is there, or
 * it is not (`lost` NULL); `lost` has for each lease of the bill whether it was over by then. */
struct lease_bill lease_pay(struct lease *lowest, struct rlmd_amount);
void lease_paid(struct lease *lowest, const struct lease_bill *, const bool *lost);

/* At least thrice while a job's lease lasts: renews, and gives the unused part back. */
void lease_tick(struct lease *);

/* No job uses it any more: what is left is given back. True: there is nothing to wait for;
 * otherwise `changed` comes, and then it is to be asked again. */
bool lease_close(struct lease *);

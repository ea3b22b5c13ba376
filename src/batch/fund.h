/*
 * batch/fund.h - money of one account of the store, as one process spends it.
 *
 * The account says what may be spent in a batch, or in a day, on all machines together. A fund has
 * a lease of it, and an account of the library that jobs pay out of. That one's limits are what
 * the lease has and what the store said last that nobody holds; its cover is what the lease has
 * open: what this process may have spent when it dies. So no call waits for the store while that
 * is enough for those that are in flight; more is asked for before it is not.
 *
 *   account -> lease -> held: what calls in flight may cost, and as much again, renewed by ticks
 *     ^                   |
 *     `---- next job -----+--> settled: no job used it for a while, the day is over, the end
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct fund;
struct store;
struct store_result;

enum { FUND_AS_IT_IS = -1 }; /* a limit: whatever the store has, where others said it */

struct fund_options {
	struct event_base *base;    /* lent */
	struct store *store;        /* lent */
	int64_t batch;              /* 0: it is of the store's day, whichever that is */
	const char *tenant;         /* lent: as the store has it */
	const char *name;           /* of the account, where it is short: "tenant 'acme'" */
	const char *node;           /* lent: who holds the lease */
	int64_t lease_ms;           /* of money: twice that of a job */
	struct rlmd_amount limit;   /* RLMD_UNLIMITED: none */
	struct rlmd_account *above; /* referenced; or NULL */
	/* Whether it is ready can be told now, where it could not; or it is closed. From the loop.
	 */
	void (*changed)(void *owner, struct fund *);
	/* The store does not do what it has to; the fund is of no use any more. */
	void (*failed)(void *owner, const struct store_result *);
	void *owner; /* lent */
};

/* Nothing is asked of the store before somebody wants money of it. */
struct fund *fund_new(const struct fund_options *);
void fund_free(struct fund *); /* after the jobs; the lease stays until it runs out. NULL is fine */

struct rlmd_account *fund_account(const struct fund *); /* lent: jobs pay out of it */
struct rlmd_amount fund_limit(const struct fund *); /* of the store's account, once it is known */

enum fund_state {
	FUND_READY,
	FUND_OPENS, /* the store is asked; `changed` comes */
	FUND_EMPTY, /* nothing is left that would do */
};

/* Whether a job may be begun. FUND_EMPTY: `ret_again_ms` is when to ask again, on clock_ms();
 * INT64_MAX: nobody will give anything back. */
enum fund_state fund_look(struct fund *, int64_t *ret_again_ms);

/* A job that pays out of it is begun; it has ended. */
void fund_use(struct fund *);
void fund_leave(struct fund *);

/* A job could not go on as this was too little for it. True: others used it at that moment, and not
 * as many will from now on. */
bool fund_narrow(struct fund *);

/* It was too little for a job by itself, of this kind: RLMD_STOP_MAX_COST or _TOKENS. */
void fund_note_short(struct fund *, enum rlmd_stop);

/* Whether the end of a job may let another one begin. */
bool fund_is_tight(const struct fund *);

/* The kind that it is short of; RLMD_STOP_NONE: it is not. */
enum rlmd_stop fund_lacks(const struct fund *);

/* An entry of a journal that says so much was spent is on its way into the store: of which lease
 * (0: of none). Later, whether it is there. */
int64_t fund_pay(struct fund *, struct rlmd_amount);
void fund_paid(struct fund *, int64_t lease, struct rlmd_amount, bool kept);

/* Now and then, thrice while a job's lease lasts at least: renews, gives back what is not used. */
void fund_tick(struct fund *);

/* No job uses it any more: what is left is given back. True: there is nothing to wait for;
 * otherwise `changed` comes, once fund_is_closed(). */
bool fund_close(struct fund *);
bool fund_is_closed(const struct fund *);

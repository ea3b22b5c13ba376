/*
 * rlmd/budget.h - accounts: what a batch, a tenant or a day may spend.
 *
 * An account has limits on cost and tokens, and may stand below another one:
 * jobs below a batch, the batch below its tenant, the tenant below the day.
 * Whoever pays out of one pays out of all above it. Nothing is spent that was
 * not reserved before: a reservation is for the most that something can cost,
 * and holds that in every account up to the topmost; where one of them has less
 * left, it is refused, and the error says by name whose limit it is. A bill
 * beyond its reservation is spent all the same, and counted as overrun; what is
 * overdrawn by it refuses everything until others have given back as much.
 *
 * A job pays out of an account that it is given (rlmd/job.h), beside limits of
 * its own; its calls wait while what is short is held by other jobs' calls in
 * flight, for most of that comes back. With rlmd_account_reserve() anybody else can
 * pay out of one. How many calls, runs and turns there may be, how deep and how
 * long, is limited by each job alone.
 *
 * Money is an integer of 10^-12 US dollars (pico-dollars), so that sums are
 * exact. They saturate at INT64_MAX, 9.2 million dollars.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_account;
struct rlmd_charge;

enum { RLMD_ACCOUNT_NAME_MAX = 100 }; /* bytes */

/* Of a limit, zero is the default: there is none. */
#define RLMD_UNLIMITED INT64_MAX /* none, whatever the default */
#define RLMD_NOTHING   (-1)      /* nothing may be spent: only what is free */

/* It will not grow. */
struct rlmd_amount {
	int64_t cost;   /* pico-dollars */
	int64_t tokens; /* input and output */
};

struct rlmd_account_limits {
	size_t size;    /* sizeof(struct rlmd_account_limits) */
	int64_t cost;   /* pico-dollars */
	int64_t tokens; /* input and output */
};

/*
 * An account below `above` (referenced; NULL: below none). `limits` may be NULL: it only counts.
 * `name` is what errors and warnings call it, as in "Cost budget exhausted (the limit of batch
 * 7)": UTF-8, at least one byte. NULL and RLMD_ERROR_USAGE for a name or limits that cannot be.
 */
RLMD_API struct rlmd_account *rlmd_account_new(const char *name,
					       const struct rlmd_account_limits *limits,
					       struct rlmd_account *above, struct rlmd_error *);

/* Its maker needs it no more. It lives on while accounts below it, jobs or reservations use it.
 * NULL is fine. */
RLMD_API void rlmd_account_free(struct rlmd_account *);

RLMD_API const char *rlmd_account_name(const struct rlmd_account *); /* lent; "" of NULL */

/*
 * Other limits from now on, of it alone: what was spent and reserved stays. Below that it is
 * overdrawn, as by a bill beyond its reservation. Calls that wait for more try again. False and
 * RLMD_ERROR_USAGE for limits that cannot be, and of no account.
 */
RLMD_API bool rlmd_account_set_limits(struct rlmd_account *, const struct rlmd_account_limits *,
				      struct rlmd_error *);

/*
 * For limits that several processes share, so that nothing is overspent when one of them dies: what
 * it may have spent then is known beforehand to the others. `amount` is that, since the account
 * was made: what was spent through it, and the most that its calls in flight may cost, are within
 * it together, and a call that would go beyond waits for the next cover, or for the end of others.
 */
struct rlmd_account_cover {
	size_t size; /* sizeof(struct rlmd_account_cover) */
	struct rlmd_amount amount;
	/* So much is needed for a call that waits, or for one more like that which was just sent.
	 * Comes any number of times, from inside of the library: it may only note it. */
	void (*lacks)(void *owner, struct rlmd_amount needed);
	void *owner; /* lent until the account and all below it are gone, or the next cover */
};

/* The cover from now on; NULL: none, it needs none. Calls that wait try again. False and
 * RLMD_ERROR_USAGE for what cannot be. */
RLMD_API bool rlmd_account_set_cover(struct rlmd_account *, const struct rlmd_account_cover *,
				     struct rlmd_error *);

/* What neither it nor any account above it has spent or reserved, each kind for itself; never
 * negative; RLMD_UNLIMITED: none of them limits it. Of NULL nothing is left. */
RLMD_API struct rlmd_amount rlmd_account_remaining(const struct rlmd_account *);

/*
 * Reserves `most` here and in all accounts above. NULL: RLMD_ERROR_BUDGET with `stop` and text
 * saying which limit of which account it was, nothing being held then, or RLMD_ERROR_USAGE for a
 * negative amount. Exactly one of the next two has to follow.
 */
RLMD_API struct rlmd_charge *rlmd_account_reserve(struct rlmd_account *, struct rlmd_amount most,
						  struct rlmd_error *);

/* What it was for cost this much, and was one call; what is negative counts as zero. The
 * reservation is gone. NULL is fine. */
RLMD_API void rlmd_charge_settle(struct rlmd_charge *, struct rlmd_amount actual);

/* It was never done, and has cost nothing. Likewise. */
RLMD_API void rlmd_charge_drop(struct rlmd_charge *);

/*
 * What was spent through an account and all below it: a value that may be kept, and given to an
 * account of a later process. Its members mean the same for ever.
 */
struct rlmd_spending {
	size_t size;             /* sizeof(struct rlmd_spending) */
	int64_t cost;            /* pico-dollars that were billed */
	int64_t tokens;          /* input and output, likewise */
	int64_t calls;           /* of models */
	int64_t reserved_cost;   /* held at that moment for what had not ended */
	int64_t reserved_tokens; /* likewise */
	int64_t overrun_cost;    /* of `cost`, billed beyond what was reserved for it */
	int64_t overrun_tokens;  /* likewise */
	bool estimated;          /* some of it was never reported by a provider */
};

/* Fills in as much as `size` says. False and RLMD_ERROR_USAGE where that cannot be. */
RLMD_API bool rlmd_account_save(const struct rlmd_account *, struct rlmd_spending *ret,
				struct rlmd_error *);

/*
 * Goes on from what was saved. What was reserved then counts as spent, for nobody will hear any
 * more what became of it: set that to zero where it is known that it came to nothing. Only this
 * account changes: those above have values of their own, saved at the same moment. False and
 * RLMD_ERROR_USAGE where something was spent or reserved here already, or a member is negative.
 */
RLMD_API bool rlmd_account_restore(struct rlmd_account *, const struct rlmd_spending *,
				   struct rlmd_error *);

/* {"version": 1, "cost": ..., "tokens": ..., "calls": ..., "reservedCost": ..., "reservedTokens":
 * ..., "overrunCost": ..., "overrunTokens": ..., "estimated": ...}, all whole numbers but the last.
 * The caller frees it. NULL for a `size` that cannot be. */
RLMD_API char *rlmd_spending_json(const struct rlmd_spending *);

/* The way back: fills in as much as `ret->size` says; unknown members are passed over, and of the
 * numbers only the first three must be there. False and RLMD_ERROR_INPUT for what is no such
 * object, RLMD_ERROR_USAGE for a `size` that cannot be. */
RLMD_API bool rlmd_spending_from_json(struct rlmd_text json, struct rlmd_spending *ret,
				      struct rlmd_error *);

#ifdef __cplusplus
}
#endif

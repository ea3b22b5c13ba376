/*
 * rlmd/budget.h - accounts: what a batch, a tenant or a day may spend.
 *
 * An account has limits on cost and tokens, and may stand below another one:
 * jobs below a batch, the batch below its tenant, the tenant below the day. A
 * payment out of an account is a payment out of all accounts above it. It is
 * reserved first: a reservation holds the most that a call can cost, in every
 * account up to the topmost. If one of them has less left, the reservation is
 * refused, and the error names that account. A bill above its reservation is
 * paid, and the difference is counted as overrun. An overdrawn account refuses
 * every reservation until enough has been given back.
 *
 * A job pays out of the account that it is given (rlmd/job.h) and has limits of
 * its own. If an account is short because other jobs' calls in flight hold
 * reservations, a call waits: most of a reservation comes back. Hosts pay for
 * work of their own with rlmd_account_reserve(). The numbers of calls, runs and
 * turns, the depth and the time are limits of each job.
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

#define RLMD_ACCOUNT_LIMITS_INIT RLMD_INIT(struct rlmd_account_limits)

/*
 * An account below `above` (referenced; NULL: below none). `limits` may be NULL: it only counts.
 * `name` is what errors and warnings call it, as in "Cost budget exhausted (the limit of batch
 * 7)": UTF-8, at least one byte. NULL and RLMD_ERROR_USAGE for an invalid name or limits.
 */
RLMD_API struct rlmd_account *rlmd_account_new(const char *name,
					       const struct rlmd_account_limits *limits,
					       struct rlmd_account *above, struct rlmd_error *);

/* Drops the reference of rlmd_account_new(). Accounts below it, jobs and reservations hold
 * references of their own. NULL is fine. */
RLMD_API void rlmd_account_unref(struct rlmd_account *);

RLMD_API const char *rlmd_account_name(const struct rlmd_account *); /* lent; "" of NULL */

/*
 * Changes the limits of this account. Spending and reservations stay: the account is overdrawn if
 * the new limits are lower. Calls that wait for money try again. False and RLMD_ERROR_USAGE for
 * impossible limits, or NULL as the account.
 */
RLMD_API bool rlmd_account_set_limits(struct rlmd_account *, const struct rlmd_account_limits *,
				      struct rlmd_error *);

/*
 * A cover is for limits that several processes share. It bounds the spending of this process since
 * the account was made plus the most that its calls in flight may cost, so that the other
 * processes know how much was lost at most if this one dies. A call beyond the cover waits for a
 * larger one, or for other calls to end.
 */
struct rlmd_account_cover {
	size_t size; /* sizeof(struct rlmd_account_cover) */
	struct rlmd_amount amount;
	/* The cover would have to be this large for a call that waits, or for one more like the
	 * last. Called any number of times from inside of the library: it may only take notes. */
	void (*lacks)(void *owner, struct rlmd_amount needed);
	void *owner; /* lent until the account and all below it are gone, or the next cover */
};

#define RLMD_ACCOUNT_COVER_INIT RLMD_INIT(struct rlmd_account_cover)

/* Sets the cover; NULL: the account needs none. Calls that wait try again. False and
 * RLMD_ERROR_USAGE for an impossible amount. */
RLMD_API bool rlmd_account_set_cover(struct rlmd_account *, const struct rlmd_account_cover *,
				     struct rlmd_error *);

/* The smallest rest, cost and tokens apart, of the account and all above it, without what is
 * reserved. Never negative. RLMD_UNLIMITED: no limit. NULL as the account: zero. */
RLMD_API struct rlmd_amount rlmd_account_remaining(const struct rlmd_account *);

/*
 * Reserves `most` in the account and in all above it. NULL: RLMD_ERROR_BUDGET, whose `stop` and
 * text say which limit of which account was too low (nothing is held then), or RLMD_ERROR_USAGE
 * for a negative amount. End the reservation with exactly one of the next two functions.
 */
RLMD_API struct rlmd_charge *rlmd_account_reserve(struct rlmd_account *, struct rlmd_amount most,
						  struct rlmd_error *);

/* Ends a reservation with its bill, which counts as one call. Negative members count as zero. NULL
 * is fine. */
RLMD_API void rlmd_charge_settle(struct rlmd_charge *, struct rlmd_amount actual);

/* Ends a reservation without a bill: nothing was spent, no call was made. NULL is fine. */
RLMD_API void rlmd_charge_drop(struct rlmd_charge *);

/*
 * The spending through an account and all below it. Keep it, and give it to an account of a later
 * process. The meaning of the members will not change.
 */
struct rlmd_spending {
	size_t size;             /* sizeof(struct rlmd_spending) */
	int64_t cost;            /* pico-dollars that were billed */
	int64_t tokens;          /* input and output that were billed */
	int64_t calls;           /* of models */
	int64_t reserved_cost;   /* held at that moment for what had not ended */
	int64_t reserved_tokens; /* held at that moment */
	int64_t overrun_cost;    /* of `cost`, billed beyond what was reserved for it */
	int64_t overrun_tokens;  /* of `tokens`, beyond what was reserved for it */
	bool estimated;          /* some of it was never reported by a provider */
};

#define RLMD_SPENDING_INIT RLMD_INIT(struct rlmd_spending)

/* False and RLMD_ERROR_USAGE if ret->size is unknown. */
RLMD_API bool rlmd_account_save(const struct rlmd_account *, struct rlmd_spending *ret,
				struct rlmd_error *);

/*
 * Adds saved spending to a new account. Saved reservations count as spent, as the bills of those
 * calls are unknown: set them to zero if you know that the calls were not made. Accounts above do
 * not change: restore each from its own value. False and RLMD_ERROR_USAGE if the account has spent
 * or reserved something already, or a member is negative.
 */
RLMD_API bool rlmd_account_restore(struct rlmd_account *, const struct rlmd_spending *,
				   struct rlmd_error *);

/* {"version": 1, "cost": ..., "tokens": ..., "calls": ..., "reservedCost": ..., "reservedTokens":
 * ..., "overrunCost": ..., "overrunTokens": ..., "estimated": ...}, all whole numbers but the last.
 * The caller frees it. NULL for an invalid `size`. */
RLMD_API char *rlmd_spending_json(const struct rlmd_spending *);

/* The way back: fills in as much as `ret->size` says. Unknown members are passed over; only the
 * first three numbers must be there. False and RLMD_ERROR_INPUT for any other text,
 * RLMD_ERROR_USAGE for an invalid `size`. */
RLMD_API bool rlmd_spending_from_json(struct rlmd_text json, struct rlmd_spending *ret,
				      struct rlmd_error *);

#ifdef __cplusplus
}
#endif

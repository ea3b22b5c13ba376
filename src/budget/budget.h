/*
 * budget/budget.h - what a run and all below it may still spend.
 *
 * A budget is an account (budget/account.h) with limits on time, iterations and depth besides; a
 * tree of them also has limits on model calls and sub-runs. Nothing is spent that was not reserved
 * before: budget_reserve() holds the most that an operation can cost, account_settle() replaces
 * that by what it did cost, account_drop() gives it back. Sub-runs are granted money out of their
 * parent's account, so that what running siblings hold counts as spent until they end, and a child
 * cannot spend, or see, more than its grant. Accounts above the root (rlmd/budget.h) grant nothing:
 * they are paid where the budget that makes a call is. docs/budget.md has the rules, with an
 * example.
 *
 * Arithmetic, texts and defaults are those of specification 004 (LIB-22 to
 * LIB-25), with the readings of docs/conformance.md.
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "budget/account.h"

#define BUDGET_UNLIMITED RLMD_UNLIMITED

/* Milliseconds: the longest limit on time, thirty days; and a thousand years, the time where there
 * is none: sums of it with clocks, and parts of it, are times like others. */
#define BUDGET_TIME_MAX      INT64_C(2592000000)
#define BUDGET_TIME_NO_LIMIT INT64_C(31557600000000)

struct budget_limits {
	int64_t cost;    /* pico-dollars; 0: only what is free; BUDGET_UNLIMITED: any */
	int64_t tokens;  /* input and output; BUDGET_UNLIMITED: any */
	int64_t time_ms; /* from budget_new() on; above BUDGET_TIME_MAX there is no limit */
	int max_depth;   /* absolute: the root is 0; a sub-run's depth is less than this */
	int max_iterations;
	int64_t calls;              /* of models, of the whole tree; BUDGET_UNLIMITED: any */
	int64_t subruns;            /* of the whole tree; BUDGET_UNLIMITED: any */
	struct rlmd_account *above; /* lent, referenced by the root: what is spent is spent there,
				       too, and its limits hold; NULL: none */
};

/* The real use by this account and all below it, up to now. */
struct budget_usage {
	int64_t cost, tokens, input_tokens, output_tokens, cached_tokens;
	int64_t iterations, subcalls, llm_calls;
	int64_t cached_calls; /* of llm_calls: answered before, at no cost */
	int64_t journaled_cost, journaled_tokens, journaled_calls; /* of the same: had by earlier
								      attempts at the work */
	int max_depth_reached;
	bool estimated;     /* some of it was never reported by a provider */
	bool cost_complete; /* false: the price of some call is unknown */
};

struct budget;

/* At 80 % of a limit, once a kind; `text` as in LIB-23 ("Cost at 83% of budget"). */
typedef void budget_warning_fn(void *owner, const char *text);

/* The root's account. The clock starts now. */
struct budget *budget_new(const struct budget_limits *, budget_warning_fn *, void *owner);

/*
 * A new budget that the sub-runs of one call share, granted out of `parent`: half of the
 * remaining cost, tokens and time, half of the iterations rounded up, the same absolute max_depth
 * (LIB-22). It makes no calls of its own. `parent` must outlive it.
 */
struct budget *budget_new_pool(struct budget *parent);

/*
 * A sub-run's account at `depth` (its own, absolute), granted out of a pool: its part of what is
 * left there, where `among` sub-runs (this one included; > 0) still want one. So a batch of n
 * divides, and what one returns goes to those that start later. Time and iterations are not
 * divided. Check budget_subcall_block() first. `pool` must outlive it.
 */
struct budget *budget_new_child(struct budget *pool, int depth, int64_t among, budget_warning_fn *,
				void *owner);

/* Settles with the parent: what was used is spent there, the rest of the grant returns.
 * Nothing may be outstanding (asserted). NULL is fine. */
void budget_free(struct budget *);

/*
 * Why not; RLMD_STOP_NONE: it may. The error is RLMD_ERROR_BUDGET then and has the words of LIB-24
 * (those of base/stops.def), and the name of the account above whose limit it was. Checks the
 * warnings too. `depth` is that of the run that asks.
 */
enum rlmd_stop budget_iteration_block(struct budget *, struct rlmd_error *);
enum rlmd_stop budget_subcall_block(struct budget *, int depth, struct rlmd_error *);

/* The account above the job whose limit was the last to refuse something to the job or below it;
 * NULL: the last limit was one of their own, or there was none. Lent. */
const struct rlmd_account *budget_refuser(const struct budget *);

/* Which limited kind has less than `percent` of its limit left, as "cost", "tokens" or "time"
 * (ENG-14); NULL: none. */
const char *budget_scarce(const struct budget *, int percent);

/* Counts a call against the tree's limit on calls, for good; RLMD_ERROR_BUDGET
 * (RLMD_STOP_MAX_CALLS): there was none left. */
bool budget_admit_call(struct budget *, struct rlmd_error *);

/* Reserves; account_settle() or account_drop() ends it. Fails with RLMD_ERROR_BUDGET and why, as
 * above, and then holds nothing. */
bool budget_reserve(struct budget *, struct reservation *, struct rlmd_amount most,
		    struct rlmd_error *);

/* The account: for what calls in flight and those that wait for money have to tell it. Lent. */
struct rlmd_account *budget_account(struct budget *);

/* Counts in the usage of this account and all above it, at once; a call, settled before, checks
 * the warnings of each. */
void budget_count_call(struct budget *, const struct budget_usage *one_call);
/*
 * Spends again here the bills of an earlier attempt at the same work: they count as above, and
 * against the limit on calls, so that the work has the budget that it would have had in one go.
 * Never refused. Accounts above the root have paid them, and do not pay again.
 */
void budget_count_again(struct budget *, const struct budget_usage *);
void budget_count_iteration(struct budget *);
void budget_count_subcall(struct budget *, int depth);

/* Money that is neither spent nor reserved, here and in the accounts above the root; never
 * negative; BUDGET_UNLIMITED stays that. */
struct rlmd_amount budget_remaining(const struct budget *);
/* The same with reservations added: money that was not billed yet. */
struct rlmd_amount budget_unspent(const struct budget *);
int64_t budget_remaining_ms(const struct budget *);
int budget_remaining_iterations(const struct budget *);
struct budget_limits budget_left(const struct budget *); /* of all limits; `above` is NULL */
const struct budget_limits *budget_limits(const struct budget *);
/* By this budget and all below it: billed beyond what had been reserved. */
struct rlmd_amount budget_overrun(const struct budget *);
const struct budget_usage *budget_usage(const struct budget *);
int64_t budget_elapsed_ms(const struct budget *);
int64_t budget_deadline(const struct budget *); /* on clock_ms() */

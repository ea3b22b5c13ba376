/*
 * budget/budget.h - what a run and all below it may still spend.
 *
 * An account has limits on cost, tokens, time, iterations and depth; a tree of
 * them also on model calls and sub-runs. Nothing is spent that was not taken
 * before: charge_take() reserves the most that an operation can cost,
 * charge_settle() replaces that by what it did cost, charge_drop() gives it back.
 * What sub-runs may spend is granted out of their parent's account, which holds
 * it as a charge, so that what running siblings hold counts as spent until they
 * end, and a child cannot spend, or see, more than its grant. Accounts above the
 * root (rlmd/budget.h) grant nothing: what is reserved and settled anywhere in the
 * tree is so in each of them at that moment, for others pay out of them, too.
 * docs/budget.md has the rules, with an example.
 *
 * Arithmetic, texts and defaults are those of specification 004 (LIB-22 to
 * LIB-25), with the readings of docs/conformance.md.
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define BUDGET_UNLIMITED RLMD_UNLIMITED

struct budget_limits {
	int64_t cost;    /* pico-dollars; 0: only what is free; BUDGET_UNLIMITED: any */
	int64_t tokens;  /* input and output; BUDGET_UNLIMITED: any */
	int64_t time_ms; /* from budget_new() on */
	int max_depth;   /* absolute: the root is 0; a sub-run's depth is less than this */
	int max_iterations;
	int64_t calls;              /* of models, of the whole tree; BUDGET_UNLIMITED: any */
	int64_t subruns;            /* of the whole tree; BUDGET_UNLIMITED: any */
	struct rlmd_account *above; /* lent, referenced by the root: what is spent is spent there,
				       too, and its limits hold; NULL: none */
};

/* What was really used, by this account and all below it, while it happens. */
struct budget_usage {
	int64_t cost, tokens, input_tokens, output_tokens, cached_tokens;
	int64_t iterations, subcalls, llm_calls;
	int64_t cached_calls; /* of llm_calls: answered before, at no cost */
	int64_t journaled_cost, journaled_tokens, journaled_calls; /* of the same: had by earlier
								      attempts at the work */
	int64_t overrun_cost, overrun_tokens; /* billed beyond what had been reserved */
	int max_depth_reached;
	bool estimated;     /* some of it was never reported by a provider */
	bool cost_complete; /* false: the price of some call is unknown */
};

struct budget;

enum budget_kind { BUDGET_COST, BUDGET_TOKENS, BUDGET_TIME };

/* At 80 % of a limit, once a kind; `text` as in LIB-23 ("Cost at 83% of budget"). */
typedef void budget_warning_fn(void *owner, const char *text);

/* The root's account. The clock starts now. */
struct budget *budget_new(const struct budget_limits *, budget_warning_fn *, void *owner);

/*
 * What the sub-runs of one call may spend together, granted out of `parent`: half of the
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

/* Of a root: the account above whose limit was the last one, of all that refused something to it or
 * below it; NULL: it was a limit of their own, or none. Lent. */
const struct rlmd_account *budget_refuser(const struct budget *);

/* Which limited kind has less than `percent` of its limit left, as "cost", "tokens" or "time"
 * (ENG-14); NULL: none. */
const char *budget_scarce(const struct budget *, int percent);

/* Counts a call against the tree's limit on calls, for good; RLMD_ERROR_BUDGET
 * (RLMD_STOP_MAX_CALLS): there was none left. */
bool budget_admit_call(struct budget *, struct rlmd_error *);

/* A model call's reservation: embed it; zero is empty; every destructor drops it. */
struct charge {
	struct budget *budget; /* lent; NULL when empty */
	struct rlmd_amount amount;
};

/* Reserves; fails with RLMD_ERROR_BUDGET and why, as above, and then holds nothing. */
bool charge_take(struct charge *, struct budget *, struct rlmd_amount, struct rlmd_error *);

/* Replaces the reservation by what was billed. More than was reserved is still spent, and counted
 * as overrun; so what two reservations were for is settled with each for itself. While an account
 * has spent and promised more than its limit, nothing is taken from it or below it. */
void charge_settle(struct charge *, struct rlmd_amount actual);
void charge_drop(struct charge *); /* idempotent */

/* Counts in the usage of this account and all above it, at once; a call, settled before, checks
 * the warnings of each. */
void budget_count_call(struct budget *, const struct budget_usage *one_call);
/*
 * What an earlier attempt at the same work was billed, or has had: it is spent here again, and
 * counts as above and against the limit on calls, so that the work has the purse that it would have
 * had in one go. Never refused. Accounts above the root have paid it, and do not pay again.
 */
void budget_count_again(struct budget *, const struct budget_usage *);
void budget_count_iteration(struct budget *);
void budget_count_subcall(struct budget *, int depth);

/* What is not spent and not reserved, here and in the accounts above the root; never negative;
 * BUDGET_UNLIMITED stays that. */
struct rlmd_amount budget_remaining(const struct budget *);
/* Likewise, but for what is reserved: what nothing has been billed for. */
struct rlmd_amount budget_unspent(const struct budget *);
int64_t budget_remaining_ms(const struct budget *);
int budget_remaining_iterations(const struct budget *);
const struct budget_limits *budget_limits(const struct budget *);
const struct budget_usage *budget_usage(const struct budget *);
int64_t budget_elapsed_ms(const struct budget *);
int64_t budget_deadline(const struct budget *); /* on clock_ms() */

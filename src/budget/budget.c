/*
 * Two kinds of numbers, kept apart on purpose. `spent` and `reserved` are the
 * money: what this account settled itself, and what it has promised. A child's
 * grant is one such promise, so a child's spending does not move its parent's
 * `spent` before it is freed. `usage` is the report: every call and iteration
 * counts there at once, in the account and in all above it.
 *
 * Accounts above the root are paid where a charge is: each member of the tree
 * knows the lowest of them. Grants are between members only.
 *
 * Only a bill beyond its reservation can overdraw an account, that is, make what
 * it has spent and promised more than its limit.
 *
 * Nothing overflows: sums saturate, and "unlimited" is the largest number,
 * which no sum or part of it turns into a limit.
 */
#include "budget/budget.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/number.h"
#include "budget/account.h"

enum { KINDS = BUDGET_TIME + 1 };

struct budget {
	struct budget *parent; /* lent; NULL: the root */
	struct charge grant;   /* what the parent holds for us */
	struct budget_limits limits;
	struct rlmd_amount spent;
	struct rlmd_amount reserved;
	struct budget_usage usage;
	int64_t started;                    /* on clock_ms() */
	int64_t iterations;                 /* our own; those in `usage` are of all below too */
	int64_t outstanding;                /* charges not yet settled or dropped */
	int64_t calls;                      /* admitted; counted in the root, for all */
	int64_t subruns;                    /* begun; likewise */
	const struct rlmd_account *refuser; /* lent: likewise, whose limit refused something last */
	bool warned[KINDS];
	budget_warning_fn *fn; /* or NULL */
	void *owner;           /* lent: fn's */
};

static struct rlmd_amount own_remaining(const struct budget *budget)
{
	return (struct rlmd_amount){
		amount_rest(budget->limits.cost, budget->spent.cost, budget->reserved.cost),
		amount_rest(budget->limits.tokens, budget->spent.tokens, budget->reserved.tokens),
	};
}

static void hold(struct charge *charge, struct budget *budget, struct rlmd_amount amount)
{
	charge->budget = budget;
	charge->amount = amount;
	budget->reserved = amount_add(budget->reserved, amount);
	budget->outstanding++;
}

/* The account is free of the reservation; what it was for is over. */
static struct budget *release(struct charge *charge)
{
	struct budget *budget = charge->budget;

	assert(budget);
	/* Not below zero: a sum that had saturated was too small. */
	budget->reserved = amount_beyond(budget->reserved, charge->amount);
	budget->outstanding--;
	*charge = (struct charge){0};
	return budget;
}

/*
 * A child that was billed more than it had reserved may have outgrown its grant. Then the
 * grant grows with it, at once, so that its siblings cannot spend that again.
 */
static void cover(struct budget *budget)
{
	for (; budget->parent; budget = budget->parent) {
		struct rlmd_amount needed = amount_add(budget->spent, budget->reserved);
		struct rlmd_amount more = amount_beyond(needed, budget->grant.amount);

		if (!more.cost && !more.tokens)
			return;
		budget->grant.amount = amount_add(budget->grant.amount, more);
		budget->parent->reserved = amount_add(budget->parent->reserved, more);
	}
}

static void spend(struct charge *charge, struct rlmd_amount actual)
{
	struct budget *budget = release(charge);

	budget->spent = amount_add(budget->spent, actual);
	cover(budget);
}

struct budget *budget_new(const struct budget_limits *limits, budget_warning_fn *fn, void *owner)
{
	struct budget *budget = xcalloc(1, sizeof *budget);

	budget->limits = *limits;
	account_ref(limits->above);
	budget->started = clock_ms();
	budget->usage.cost_complete = true;
	budget->fn = fn;
	budget->owner = owner;
	return budget;
}

/* Nothing can be set aside out of what is unlimited: such a grant is empty. */
static struct budget *new_granted(struct budget *parent, const struct budget_limits *limits,
				  budget_warning_fn *fn, void *owner)
{
	struct budget *budget = budget_new(limits, fn, owner);
	struct rlmd_amount grant = {
		.cost = limits->cost == BUDGET_UNLIMITED ? 0 : limits->cost,
		.tokens = limits->tokens == BUDGET_UNLIMITED ? 0 : limits->tokens,
	};

	hold(&budget->grant, parent, grant);
	budget->parent = parent;
	return budget;
}

static int64_t part_of(int64_t amount, int64_t parts)
{
	return amount == BUDGET_UNLIMITED ? amount : amount / parts;
}

struct budget *budget_new_pool(struct budget *parent)
{
	struct rlmd_amount left = budget_remaining(parent);
	struct budget_limits limits = parent->limits;

	limits.cost = part_of(left.cost, 2);
	limits.tokens = part_of(left.tokens, 2);
	limits.time_ms = part_of(budget_remaining_ms(parent), 2);
	limits.max_iterations -= limits.max_iterations / 2;
	return new_granted(parent, &limits, NULL, NULL);
}

static struct budget *root_of(struct budget *budget)
{
	while (budget->parent)
		budget = budget->parent;
	return budget;
}

struct budget *budget_new_child(struct budget *pool, int depth, int64_t among,
				budget_warning_fn *fn, void *owner)
{
	struct rlmd_amount left = budget_remaining(pool);
	struct budget_limits limits = pool->limits;
	struct budget *child;

	assert(among > 0);
	limits.cost = part_of(left.cost, among);
	limits.tokens = part_of(left.tokens, among);
	limits.time_ms = budget_remaining_ms(pool);
	child = new_granted(pool, &limits, fn, owner);
	child->usage.max_depth_reached = depth;
	root_of(pool)->subruns++;
	return child;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	assert(!budget->outstanding);
	if (budget->parent)
		spend(&budget->grant, budget->spent);
	account_unref(budget->limits.above);
	free(budget);
}

static int64_t limit_of(const struct budget *budget, enum budget_kind kind)
{
	switch (kind) {
	case BUDGET_COST:
		return budget->limits.cost;
	case BUDGET_TOKENS:
		return budget->limits.tokens;
	case BUDGET_TIME:
		return budget->limits.time_ms;
	}
	return 0;
}

static int64_t used_of(const struct budget *budget, enum budget_kind kind)
{
	switch (kind) {
	case BUDGET_COST:
		return budget->usage.cost;
	case BUDGET_TOKENS:
		return budget->usage.tokens;
	case BUDGET_TIME:
		return budget_elapsed_ms(budget);
	}
	return 0;
}

static int64_t left_of(const struct budget *budget, enum budget_kind kind)
{
	switch (kind) {
	case BUDGET_COST:
		return budget_remaining(budget).cost;
	case BUDGET_TOKENS:
		return budget_remaining(budget).tokens;
	case BUDGET_TIME:
		return budget_remaining_ms(budget);
	}
	return 0;
}

/* Keeps the ratio of two numbers, and makes them small enough to be multiplied by 400. */
static void shrink(int64_t *a, int64_t *b)
{
	while (*a > INT64_MAX / 400 || *b > INT64_MAX / 400) {
		*a /= 2;
		*b /= 2;
	}
}

/* `used` in per cent of `limit`, half a per cent rounded up. */
static int64_t percent_of(int64_t used, int64_t limit)
{
	shrink(&used, &limit);
	return limit ? (used * 200 + limit) / (limit * 2) : INT64_MAX;
}

static void check_warnings(struct budget *budget)
{
	static const char *const names[KINDS] = {"Cost", "Tokens", "Time"};

	for (int kind = 0; budget->fn && kind < KINDS; kind++) {
		int64_t used = used_of(budget, (enum budget_kind)kind);
		int64_t limit = limit_of(budget, (enum budget_kind)kind);
		char text[64];

		if (budget->warned[kind] || limit <= 0 || limit == BUDGET_UNLIMITED ||
		    used < limit - limit / 5)
			continue;
		budget->warned[kind] = true;
		snprintf(text, sizeof text, "%s at %" PRId64 "%% of budget", names[kind],
			 percent_of(used, limit));
		budget->fn(budget->owner, text);
	}
}

/* What an account above has overdrawn is no longer there for those below to spend. */
static enum rlmd_stop overdraft(const struct budget *budget)
{
	for (; budget; budget = budget->parent) {
		if (amount_exceeds(budget->limits.cost, budget->spent.cost, budget->reserved.cost))
			return RLMD_STOP_MAX_COST;
		if (amount_exceeds(budget->limits.tokens, budget->spent.tokens,
				   budget->reserved.tokens))
			return RLMD_STOP_MAX_TOKENS;
	}
	return RLMD_STOP_NONE;
}

/* A cost limit of zero means "only what is free": it blocks nothing that is. */
static enum rlmd_stop block_reason(struct budget *budget, const struct rlmd_account **ret_who)
{
	struct rlmd_amount left = own_remaining(budget);
	enum rlmd_stop reason = overdraft(budget);
	const struct budget *root = root_of(budget);

	check_warnings(budget);
	if (reason)
		return reason;
	if (!left.cost && budget->limits.cost > 0)
		return RLMD_STOP_MAX_COST;
	if (!left.tokens)
		return RLMD_STOP_MAX_TOKENS;
	if (!budget_remaining_ms(budget))
		return RLMD_STOP_MAX_TIME;
	if (root->calls >= root->limits.calls)
		return RLMD_STOP_MAX_CALLS;
	return account_block(budget->limits.above, ret_who);
}

static enum rlmd_stop refuse(struct budget *budget, enum rlmd_stop reason,
			     const struct rlmd_account *who, struct rlmd_error *err)
{
	if (reason)
		root_of(budget)->refuser = who;
	return account_tell(reason, who, err);
}

const struct rlmd_account *budget_refuser(const struct budget *budget)
{
	return budget->refuser;
}

enum rlmd_stop budget_iteration_block(struct budget *budget, struct rlmd_error *err)
{
	const struct rlmd_account *who = NULL;
	enum rlmd_stop reason = block_reason(budget, &who);

	if (!reason && !budget_remaining_iterations(budget))
		reason = RLMD_STOP_MAX_ITERATIONS;
	return refuse(budget, reason, who, err);
}

enum rlmd_stop budget_subcall_block(struct budget *budget, int depth, struct rlmd_error *err)
{
	const struct rlmd_account *who = NULL;
	enum rlmd_stop reason = block_reason(budget, &who);

	if (!reason && depth >= budget->limits.max_depth - 1)
		reason = RLMD_STOP_MAX_DEPTH;
	if (!reason && root_of(budget)->subruns >= budget->limits.subruns)
		reason = RLMD_STOP_MAX_SUBRUNS;
	return refuse(budget, reason, who, err);
}

const char *budget_scarce(const struct budget *budget, int percent)
{
	static const char *const names[KINDS] = {"cost", "tokens", "time"};

	for (int kind = 0; kind < KINDS; kind++) {
		int64_t left = left_of(budget, (enum budget_kind)kind);
		int64_t limit = limit_of(budget, (enum budget_kind)kind);

		if (limit <= 0 || limit == BUDGET_UNLIMITED)
			continue;
		shrink(&left, &limit);
		if (left * 100 < limit * percent)
			return names[kind];
	}
	return NULL;
}

bool budget_admit_call(struct budget *budget, struct rlmd_error *err)
{
	struct budget *root = root_of(budget);

	if (root->calls >= root->limits.calls)
		return !refuse(budget, RLMD_STOP_MAX_CALLS, NULL, err);
	root->calls++;
	return true;
}

bool charge_take(struct charge *charge, struct budget *budget, struct rlmd_amount amount,
		 struct rlmd_error *err)
{
	const struct rlmd_account *who = NULL;
	struct rlmd_amount left = own_remaining(budget);
	enum rlmd_stop reason = overdraft(budget);

	assert(!charge->budget && amount.cost >= 0 && amount.tokens >= 0);
	if (!reason && amount.cost > left.cost)
		reason = RLMD_STOP_MAX_COST;
	if (!reason && amount.tokens > left.tokens)
		reason = RLMD_STOP_MAX_TOKENS;
	if (!reason)
		reason = account_lacks(budget->limits.above, amount, &who);
	if (refuse(budget, reason, who, err))
		return false;
	hold(charge, budget, amount);
	account_hold(budget->limits.above, amount);
	return true;
}

void charge_settle(struct charge *charge, struct rlmd_amount actual)
{
	struct budget *budget = charge->budget;
	struct rlmd_amount overrun;

	actual = amount_beyond(actual, (struct rlmd_amount){0});
	overrun = amount_beyond(actual, charge->amount);
	account_settle(budget->limits.above, charge->amount, actual);
	spend(charge, actual);
	for (; budget; budget = budget->parent) {
		struct budget_usage *usage = &budget->usage;

		usage->overrun_cost = money_add(usage->overrun_cost, overrun.cost);
		usage->overrun_tokens = money_add(usage->overrun_tokens, overrun.tokens);
	}
}

void charge_drop(struct charge *charge)
{
	if (!charge->budget)
		return;
	account_release(charge->budget->limits.above, charge->amount);
	release(charge);
}

static void count(struct budget *budget, const struct budget_usage *call)
{
	for (; budget; budget = budget->parent) {
		struct budget_usage *usage = &budget->usage;

		usage->cost = money_add(usage->cost, call->cost);
		usage->tokens = money_add(usage->tokens, call->tokens);
		usage->input_tokens = money_add(usage->input_tokens, call->input_tokens);
		usage->output_tokens = money_add(usage->output_tokens, call->output_tokens);
		usage->cached_tokens = money_add(usage->cached_tokens, call->cached_tokens);
		usage->llm_calls += call->llm_calls;
		usage->cached_calls += call->cached_calls;
		usage->estimated |= call->estimated;
		usage->cost_complete &= call->cost_complete;
		check_warnings(budget);
	}
}

void budget_count_call(struct budget *budget, const struct budget_usage *call)
{
	account_count_calls(budget->limits.above, call->llm_calls, call->estimated);
	count(budget, call);
}

void budget_count_again(struct budget *budget, const struct budget_usage *had)
{
	budget->spent = amount_add(budget->spent, (struct rlmd_amount){had->cost, had->tokens});
	cover(budget);
	root_of(budget)->calls += had->llm_calls;
	for (struct budget *each = budget; each; each = each->parent) {
		struct budget_usage *usage = &each->usage;

		usage->journaled_cost = money_add(usage->journaled_cost, had->cost);
		usage->journaled_tokens = money_add(usage->journaled_tokens, had->tokens);
		usage->journaled_calls += had->llm_calls;
	}
	count(budget, had);
}

void budget_count_iteration(struct budget *budget)
{
	budget->iterations++;
	for (; budget; budget = budget->parent)
		budget->usage.iterations++;
}

void budget_count_subcall(struct budget *budget, int depth)
{
	for (; budget; budget = budget->parent) {
		budget->usage.subcalls++;
		if (budget->usage.max_depth_reached < depth)
			budget->usage.max_depth_reached = depth;
	}
}

struct rlmd_amount budget_remaining(const struct budget *budget)
{
	return amount_least(own_remaining(budget), account_remaining(budget->limits.above));
}

struct rlmd_amount budget_unspent(const struct budget *budget)
{
	struct rlmd_amount own = {
		amount_rest(budget->limits.cost, budget->usage.cost, 0),
		amount_rest(budget->limits.tokens, budget->usage.tokens, 0),
	};

	return amount_least(own, account_unspent(budget->limits.above));
}

int64_t budget_remaining_ms(const struct budget *budget)
{
	return amount_rest(budget->limits.time_ms, budget_elapsed_ms(budget), 0);
}

int budget_remaining_iterations(const struct budget *budget)
{
	return (int)int64_max(budget->limits.max_iterations - budget->iterations, 0);
}

const struct budget_limits *budget_limits(const struct budget *budget)
{
	return &budget->limits;
}

const struct budget_usage *budget_usage(const struct budget *budget)
{
	return &budget->usage;
}

/* Whatever the clock does, no account gets more time than it was given. */
int64_t budget_elapsed_ms(const struct budget *budget)
{
	return int64_max(clock_ms() - budget->started, 0);
}

int64_t budget_deadline(const struct budget *budget)
{
	return money_add(budget->started, budget->limits.time_ms);
}

/*
 * Two kinds of numbers, kept apart on purpose. `spent` and `reserved` are the
 * money: what this account settled itself, and what it has promised. A child's
 * grant is one such promise, so a child's spending does not move its parent's
 * `spent` before it is freed. `usage` is the report: every call and iteration
 * counts there at once, in the account and in all above it.
 *
 * Nothing overflows: sums saturate, and "unlimited" is the largest number,
 * which no sum or half of it turns into a limit.
 */
#include "budget/budget.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/money.h"

#define COST_REASON       "Cost budget exhausted"
#define TOKENS_REASON     "Token budget exhausted"
#define TIME_REASON       "Time budget exhausted"
#define ITERATIONS_REASON "Max iterations reached"
#define DEPTH_REASON      "Max depth reached"

enum { KINDS = BUDGET_TIME + 1 };

struct budget {
	struct budget *parent; /* lent; NULL: the root */
	struct charge grant;   /* what the parent holds for us */
	struct budget_limits limits;
	struct budget_amount spent;
	struct budget_amount reserved;
	struct budget_usage usage;
	int64_t started;     /* on clock_ms() */
	int64_t iterations;  /* our own; those in `usage` are of all below too */
	int64_t outstanding; /* charges not yet settled or dropped */
	bool warned[KINDS];
	budget_warning_fn *fn; /* or NULL */
	void *owner;           /* lent: fn's */
};

static int64_t at_least_zero(int64_t value)
{
	return value > 0 ? value : 0;
}

static struct budget_amount amount_add(struct budget_amount a, struct budget_amount b)
{
	return (struct budget_amount){money_add(a.cost, b.cost), money_add(a.tokens, b.tokens)};
}

static int64_t left_of(int64_t limit, int64_t spent, int64_t reserved)
{
	if (limit == BUDGET_UNLIMITED)
		return limit;
	return at_least_zero(limit - money_add(spent, reserved));
}

static int64_t half_of(int64_t amount)
{
	return amount == BUDGET_UNLIMITED ? amount : amount / 2;
}

struct budget *budget_new(const struct budget_limits *limits, budget_warning_fn *fn, void *owner)
{
	struct budget *budget = xcalloc(1, sizeof *budget);

	budget->limits = *limits;
	budget->started = clock_ms();
	budget->usage.cost_complete = true;
	budget->fn = fn;
	budget->owner = owner;
	return budget;
}

/* Nothing can be set aside out of what is unlimited: such a grant is empty. */
static struct budget_amount grant_of(const struct budget_limits *limits)
{
	return (struct budget_amount){
		.cost = limits->cost == BUDGET_UNLIMITED ? 0 : limits->cost,
		.tokens = limits->tokens == BUDGET_UNLIMITED ? 0 : limits->tokens,
	};
}

struct budget *budget_new_child(struct budget *parent, int depth, budget_warning_fn *fn,
				void *owner)
{
	struct budget_amount left = budget_remaining(parent);
	struct budget_limits limits = {
		.cost = half_of(left.cost),
		.tokens = half_of(left.tokens),
		.time_ms = half_of(budget_remaining_ms(parent)),
		.max_depth = parent->limits.max_depth,
		.max_iterations = parent->limits.max_iterations / 2 +
				  parent->limits.max_iterations % 2,
	};
	struct budget *child = budget_new(&limits, fn, owner);
	bool granted = charge_take(&child->grant, parent, grant_of(&limits), NULL);

	assert(granted);
	child->parent = parent;
	child->usage.max_depth_reached = depth;
	return child;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	assert(!budget->outstanding);
	if (budget->parent)
		charge_settle(&budget->grant, budget->spent);
	free(budget);
}

static int64_t amount_used(const struct budget *budget, enum budget_kind kind)
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

/* `used` in per cent of `limit`, half a per cent rounded up. */
static int64_t percent(int64_t used, int64_t limit)
{
	while (used > INT64_MAX / 400 || limit > INT64_MAX / 400) {
		used /= 2;
		limit /= 2;
	}
	return limit ? (used * 200 + limit) / (limit * 2) : INT64_MAX;
}

static void check_warnings(struct budget *budget)
{
	static const char *const names[KINDS] = {"Cost", "Tokens", "Time"};

	for (int kind = 0; kind < KINDS; kind++) {
		int64_t used = amount_used(budget, (enum budget_kind)kind);
		int64_t limit = limit_of(budget, (enum budget_kind)kind);
		char text[64];

		if (budget->warned[kind] || limit <= 0 || limit == BUDGET_UNLIMITED ||
		    used < limit - limit / 5)
			continue;
		budget->warned[kind] = true;
		snprintf(text, sizeof text, "%s at %" PRId64 "%% of budget", names[kind],
			 percent(used, limit));
		if (budget->fn)
			budget->fn(budget->owner, text);
	}
}

/* A cost limit of zero means "only what is free": it blocks nothing that is. */
static const char *block_reason(struct budget *budget)
{
	struct budget_amount left = budget_remaining(budget);

	check_warnings(budget);
	if (!left.cost && (budget->limits.cost > 0 || budget->spent.cost > 0))
		return COST_REASON;
	if (!left.tokens)
		return TOKENS_REASON;
	if (!budget_remaining_ms(budget))
		return TIME_REASON;
	return NULL;
}

const char *budget_iteration_block(struct budget *budget)
{
	const char *reason = block_reason(budget);

	if (!reason && !budget_remaining_iterations(budget))
		reason = ITERATIONS_REASON;
	return reason;
}

const char *budget_subcall_block(struct budget *budget, int depth)
{
	const char *reason = block_reason(budget);

	if (!reason && depth >= budget->limits.max_depth - 1)
		reason = DEPTH_REASON;
	return reason;
}

/*
 * A child that spent more than it had reserved may have outgrown its grant. Then the
 * grant grows with it, at once, so that its siblings cannot spend that again.
 */
static void cover(struct budget *budget)
{
	for (; budget->parent; budget = budget->parent) {
		struct budget_amount *grant = &budget->grant.amount;
		struct budget_amount needed = amount_add(budget->spent, budget->reserved);
		struct budget_amount more = {
			.cost = at_least_zero(needed.cost - grant->cost),
			.tokens = at_least_zero(needed.tokens - grant->tokens),
		};

		if (!more.cost && !more.tokens)
			return;
		*grant = amount_add(*grant, more);
		budget->parent->reserved = amount_add(budget->parent->reserved, more);
	}
}

bool charge_take(struct charge *charge, struct budget *budget, struct budget_amount amount,
		 struct error *err)
{
	struct budget_amount left = budget_remaining(budget);

	assert(!charge->budget && amount.cost >= 0 && amount.tokens >= 0);
	if (amount.cost > left.cost)
		return error_set(err, ERROR_BUDGET, COST_REASON);
	if (amount.tokens > left.tokens)
		return error_set(err, ERROR_BUDGET, TOKENS_REASON);
	charge->budget = budget;
	charge->amount = amount;
	budget->reserved = amount_add(budget->reserved, amount);
	budget->outstanding++;
	return true;
}

/* The account is free of the reservation; what it was for is over. */
static struct budget *release(struct charge *charge)
{
	struct budget *budget = charge->budget;

	assert(budget);
	/* Not below zero: a sum that had saturated was too small. */
	budget->reserved.cost = at_least_zero(budget->reserved.cost - charge->amount.cost);
	budget->reserved.tokens = at_least_zero(budget->reserved.tokens - charge->amount.tokens);
	budget->outstanding--;
	*charge = (struct charge){0};
	return budget;
}

void charge_settle(struct charge *charge, struct budget_amount actual)
{
	struct budget *budget = release(charge);

	actual.cost = at_least_zero(actual.cost);
	actual.tokens = at_least_zero(actual.tokens);
	budget->spent = amount_add(budget->spent, actual);
	cover(budget);
}

void charge_drop(struct charge *charge)
{
	if (charge->budget)
		release(charge);
}

void budget_count_call(struct budget *budget, const struct budget_usage *call)
{
	for (; budget; budget = budget->parent) {
		struct budget_usage *usage = &budget->usage;

		usage->cost = money_add(usage->cost, call->cost);
		usage->tokens = money_add(usage->tokens, call->tokens);
		usage->input_tokens = money_add(usage->input_tokens, call->input_tokens);
		usage->output_tokens = money_add(usage->output_tokens, call->output_tokens);
		usage->cached_tokens = money_add(usage->cached_tokens, call->cached_tokens);
		usage->llm_calls += call->llm_calls;
		usage->estimated |= call->estimated;
		usage->cost_complete &= call->cost_complete;
	}
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

struct budget_amount budget_remaining(const struct budget *budget)
{
	return (struct budget_amount){
		.cost = left_of(budget->limits.cost, budget->spent.cost, budget->reserved.cost),
		.tokens = left_of(budget->limits.tokens, budget->spent.tokens,
				  budget->reserved.tokens),
	};
}

int64_t budget_remaining_ms(const struct budget *budget)
{
	return left_of(budget->limits.time_ms, budget_elapsed_ms(budget), 0);
}

int budget_remaining_iterations(const struct budget *budget)
{
	return (int)at_least_zero(budget->limits.max_iterations - budget->iterations);
}

const struct budget_limits *budget_limits(const struct budget *budget)
{
	return &budget->limits;
}

const struct budget_usage *budget_usage(const struct budget *budget)
{
	return &budget->usage;
}

int64_t budget_elapsed_ms(const struct budget *budget)
{
	return clock_ms() - budget->started;
}

int64_t budget_deadline(const struct budget *budget)
{
	return money_add(budget->started, budget->limits.time_ms);
}

/*
 * Two kinds of numbers, kept apart on purpose. `account` is the money: what this budget's own calls
 * were billed and hold, and what it has granted. A child's grant is a reservation, so a child's
 * spending does not move its parent's account before it is freed. `usage` is the report: every call
 * and iteration counts there at once, in the budget and in all above it.
 *
 * Nothing overflows: sums saturate, and "unlimited" is the largest number, which no sum or part of
 * it turns into a limit.
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

struct budget {
	struct rlmd_account account; /* cost and tokens */
	struct budget *parent;       /* lent; NULL: the root */
	struct budget_limits limits;
	struct budget_usage usage;
	int64_t started;                    /* on clock_ms() */
	int64_t iterations;                 /* our own; those in `usage` are of all below too */
	int64_t calls;                      /* admitted; counted in the root, for all */
	int64_t subruns;                    /* begun; likewise */
	const struct rlmd_account *refuser; /* lent: likewise, whose limit refused something last */
	bool warned_cost, warned_tokens, warned_time;
	budget_warning_fn *fn; /* or NULL */
	void *owner;           /* lent: fn's */
};

static struct budget *new_below(struct budget *parent, const struct budget_limits *limits,
				budget_warning_fn *fn, void *owner)
{
	struct rlmd_amount limit = {limits->cost, limits->tokens};
	struct budget *budget = xcalloc(1, sizeof *budget);

	if (parent)
		account_open_granted(&budget->account, limit, &parent->account);
	else
		account_open(&budget->account, limit, limits->above);
	budget->parent = parent;
	budget->limits = *limits;
	budget->started = clock_ms();
	budget->usage.cost_complete = true;
	budget->fn = fn;
	budget->owner = owner;
	return budget;
}

struct budget *budget_new(const struct budget_limits *limits, budget_warning_fn *fn, void *owner)
{
	return new_below(NULL, limits, fn, owner);
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
	return new_below(parent, &limits, NULL, NULL);
}

static struct budget *root_of(const struct budget *budget)
{
	while (budget->parent)
		budget = budget->parent;
	return (struct budget *)budget;
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
	child = new_below(pool, &limits, fn, owner);
	child->usage.max_depth_reached = depth;
	root_of(pool)->subruns++;
	return child;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	account_close(&budget->account);
	free(budget);
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

static void check_warning(struct budget *budget, bool *warned, const char *name, int64_t used,
			  int64_t limit)
{
	char text[64];

	if (*warned || limit <= 0 || limit == BUDGET_UNLIMITED || used < limit - limit / 5)
		return;
	*warned = true;
	snprintf(text, sizeof text, "%s at %" PRId64 "%% of budget", name, percent_of(used, limit));
	budget->fn(budget->owner, text);
}

static void check_warnings(struct budget *budget)
{
	const struct budget_limits *limits = &budget->limits;

	if (!budget->fn)
		return;
	check_warning(budget, &budget->warned_cost, "Cost", budget->usage.cost, limits->cost);
	check_warning(budget, &budget->warned_tokens, "Tokens", budget->usage.tokens,
		      limits->tokens);
	check_warning(budget, &budget->warned_time, "Time", budget_elapsed_ms(budget),
		      limits->time_ms);
}

/* A cost limit of zero means "only what is free": it blocks nothing that is. */
static enum rlmd_stop block_reason(struct budget *budget, const struct rlmd_account **ret_who)
{
	struct rlmd_amount left = account_rest(&budget->account);
	enum rlmd_stop reason = account_overdraft(&budget->account);
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
	return account_block(root->account.above, ret_who);
}

static enum rlmd_stop refuse(struct budget *budget, enum rlmd_stop reason,
			     const struct rlmd_account *who, struct rlmd_error *err)
{
	if (reason)
		root_of(budget)->refuser = who && who->name ? who : NULL;
	return account_tell(reason, who, err);
}

const struct rlmd_account *budget_refuser(const struct budget *budget)
{
	return root_of(budget)->refuser;
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

static bool is_scarce(int64_t left, int64_t limit, int percent)
{
	if (limit <= 0 || limit == BUDGET_UNLIMITED)
		return false;
	shrink(&left, &limit);
	return left * 100 < limit * percent;
}

const char *budget_scarce(const struct budget *budget, int percent)
{
	const struct budget_limits *limits = &budget->limits;
	struct rlmd_amount left = budget_remaining(budget);

	if (is_scarce(left.cost, limits->cost, percent))
		return "cost";
	if (is_scarce(left.tokens, limits->tokens, percent))
		return "tokens";
	return is_scarce(budget_remaining_ms(budget), limits->time_ms, percent) ? "time" : NULL;
}

bool budget_admit_call(struct budget *budget, struct rlmd_error *err)
{
	struct budget *root = root_of(budget);

	if (root->calls >= root->limits.calls)
		return !refuse(budget, RLMD_STOP_MAX_CALLS, NULL, err);
	root->calls++;
	return true;
}

bool budget_reserve(struct budget *budget, struct reservation *reservation, struct rlmd_amount most,
		    struct rlmd_error *err)
{
	const struct rlmd_account *who = NULL;
	enum rlmd_stop reason = account_lacks(&budget->account, most, &who);

	assert(most.cost >= 0 && most.tokens >= 0);
	if (refuse(budget, reason, who, err))
		return false;
	account_reserve(&budget->account, reservation, most);
	return true;
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
	account_count_calls(&budget->account, call->llm_calls, call->estimated);
	count(budget, call);
}

void budget_count_again(struct budget *budget, const struct budget_usage *had)
{
	account_spend(&budget->account, (struct rlmd_amount){had->cost, had->tokens});
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
	return account_remaining(&budget->account);
}

struct rlmd_amount budget_unspent(const struct budget *budget)
{
	const struct budget *root = root_of(budget);
	struct rlmd_amount own = {
		amount_rest(budget->limits.cost, budget->usage.cost, 0),
		amount_rest(budget->limits.tokens, budget->usage.tokens, 0),
	};

	return amount_least(own, account_unspent(root->account.above));
}

struct rlmd_amount budget_overrun(const struct budget *budget)
{
	return budget->account.overrun;
}

int64_t budget_remaining_ms(const struct budget *budget)
{
	return amount_rest(budget->limits.time_ms, budget_elapsed_ms(budget), 0);
}

int budget_remaining_iterations(const struct budget *budget)
{
	return (int)int64_max(budget->limits.max_iterations - budget->iterations, 0);
}

struct rlmd_account *budget_account(struct budget *budget)
{
	return &budget->account;
}

static int64_t left_of(int64_t limit, int64_t used)
{
	return limit == BUDGET_UNLIMITED ? limit : int64_max(limit - used, 0);
}

struct budget_limits budget_left(const struct budget *budget)
{
	const struct budget *root = root_of(budget);
	struct rlmd_amount left = budget_remaining(budget);

	return (struct budget_limits){
		.cost = left.cost,
		.tokens = left.tokens,
		.time_ms = budget_remaining_ms(budget),
		.max_depth = budget->limits.max_depth,
		.max_iterations = budget_remaining_iterations(budget),
		.calls = left_of(root->limits.calls, root->calls),
		.subruns = left_of(root->limits.subruns, root->subruns),
	};
}

const struct budget_limits *budget_limits(const struct budget *budget)
{
	return &budget->limits;
}

const struct budget_usage *budget_usage(const struct budget *budget)
{
	return &budget->usage;
}

/* No account gets more time than it was given, even if the clock jumps. */
int64_t budget_elapsed_ms(const struct budget *budget)
{
	return int64_max(clock_ms() - budget->started, 0);
}

int64_t budget_deadline(const struct budget *budget)
{
	return money_add(budget->started, budget->limits.time_ms);
}

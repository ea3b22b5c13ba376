/* base/amount.h - arithmetic of amounts: nothing overflows, and nothing is below zero. */
#pragma once

#include <rlmd/budget.h>

#include "base/money.h"
#include "base/number.h"

static inline struct rlmd_amount amount_add(struct rlmd_amount a, struct rlmd_amount b)
{
	return (struct rlmd_amount){money_add(a.cost, b.cost), money_add(a.tokens, b.tokens)};
}

/* The part of `amount` that is beyond `than`. */
static inline struct rlmd_amount amount_beyond(struct rlmd_amount amount, struct rlmd_amount than)
{
	return (struct rlmd_amount){int64_max(amount.cost - than.cost, 0),
				    int64_max(amount.tokens - than.tokens, 0)};
}

/* The smaller one of each kind. */
static inline struct rlmd_amount amount_least(struct rlmd_amount a, struct rlmd_amount b)
{
	return (struct rlmd_amount){int64_min(a.cost, b.cost), int64_min(a.tokens, b.tokens)};
}

/* The larger one of each kind. */
static inline struct rlmd_amount amount_most(struct rlmd_amount a, struct rlmd_amount b)
{
	return (struct rlmd_amount){int64_max(a.cost, b.cost), int64_max(a.tokens, b.tokens)};
}

static inline struct rlmd_amount amount_part(struct rlmd_amount amount, int64_t parts)
{
	return (struct rlmd_amount){amount.cost / parts, amount.tokens / parts};
}

/* Whether so much is beyond a limit, of which RLMD_UNLIMITED is none. */
static inline bool amount_exceeds(int64_t limit, int64_t spent, int64_t reserved)
{
	return limit != RLMD_UNLIMITED && money_add(spent, reserved) > limit;
}

static inline int64_t amount_rest(int64_t limit, int64_t spent, int64_t reserved)
{
	if (limit == RLMD_UNLIMITED)
		return limit;
	return int64_max(limit - money_add(spent, reserved), 0);
}

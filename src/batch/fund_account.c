#include "base/amount.h"
#include "base/number.h"
#include "batch/fund_private.h"

/* Of a kind without a limit nothing is held, and no end is seen. */
struct rlmd_amount fund_where_limited(const struct fund *fund, struct rlmd_amount amount,
				      int64_t otherwise)
{
	return (struct rlmd_amount){
		fund->limit.cost == RLMD_UNLIMITED ? otherwise : amount.cost,
		fund->limit.tokens == RLMD_UNLIMITED ? otherwise : amount.tokens,
	};
}

struct rlmd_amount fund_spent(const struct fund *fund, struct rlmd_amount *ret_reserved)
{
	struct rlmd_spending spending = {.size = sizeof spending};

	rlmd_account_save(fund->account, &spending, NULL);
	*ret_reserved = (struct rlmd_amount){spending.reserved_cost, spending.reserved_tokens};
	return (struct rlmd_amount){spending.cost, spending.tokens};
}

/* What has to be open for this to be at risk, from the account's beginning on. */
struct rlmd_amount fund_open_for(const struct fund *fund, struct rlmd_amount at_risk)
{
	return amount_beyond(at_risk, amount_add(fund->base, fund->kept));
}

/* Of this lease: what journals show, and what none does. */
struct rlmd_amount fund_spent_here(const struct fund *fund)
{
	struct rlmd_amount reserved;

	return amount_most(amount_beyond(fund_spent(fund, &reserved), fund->base), fund->queued);
}

void fund_set_cover(struct fund *fund)
{
	struct rlmd_account_cover cover = {sizeof cover, {0}, fund_on_lack, fund};

	cover.amount = amount_add(fund->base,
				  amount_least(amount_add(fund->kept, fund->open), fund->size));
	cover.amount = fund_where_limited(fund, cover.amount, INT64_MAX);
	if (fund->limited && cover.amount.cost == fund->cover.cost &&
	    cover.amount.tokens == fund->cover.tokens)
		return;
	fund->cover = cover.amount;
	rlmd_account_set_cover(fund->account, fund->limited ? &cover : NULL, NULL);
}

static int64_t limit_of(int64_t amount)
{
	return amount ? amount : RLMD_NOTHING;
}

static struct rlmd_amount ceiling_of(const struct fund *fund)
{
	return fund_where_limited(fund, amount_add(amount_add(fund->base, fund->size), fund->left),
				  RLMD_UNLIMITED);
}

void fund_set_limits(struct fund *fund)
{
	struct rlmd_amount ceiling = ceiling_of(fund);
	const struct rlmd_account_limits limits = {sizeof limits, limit_of(ceiling.cost),
						   limit_of(ceiling.tokens)};

	rlmd_account_set_limits(fund->account, &limits, NULL);
}

/* What is neither spent nor reserved. */
static struct rlmd_amount rest_of(const struct fund *fund)
{
	struct rlmd_amount reserved, spent = fund_spent(fund, &reserved);

	return fund_where_limited(
		fund, amount_beyond(ceiling_of(fund), amount_add(spent, reserved)), RLMD_UNLIMITED);
}

enum rlmd_stop fund_lacks(const struct fund *fund)
{
	struct rlmd_amount rest = rest_of(fund);

	if (!fund->limited)
		return RLMD_STOP_NONE;
	if (!rest.cost || (fund->scarce == RLMD_STOP_MAX_COST && rest.cost <= fund->scant.cost))
		return RLMD_STOP_MAX_COST;
	if (!rest.tokens ||
	    (fund->scarce == RLMD_STOP_MAX_TOKENS && rest.tokens <= fund->scant.tokens))
		return RLMD_STOP_MAX_TOKENS;
	return RLMD_STOP_NONE;
}

bool fund_narrow(struct fund *fund)
{
	if (fund->users < 2)
		return false;
	fund->most_users = fund->users - 1;
	return true;
}

bool fund_is_tight(const struct fund *fund)
{
	return fund->most_users || fund_lacks(fund);
}

void fund_note_short(struct fund *fund, enum rlmd_stop kind)
{
	fund->scarce = kind;
	fund->scant = rest_of(fund);
}

/*
 * Three sums, from the account's beginning on: what was spent through it (`spent`); what was spent
 * when the lease was taken (`base`); and of what came since, what journals that are in the store
 * show (`kept`). The lease has `open` beside what journals show, so what is spent and in flight may
 * be base + kept + open: the cover. In the store's sums the lease has spent what journals show,
 * also those that are on their way (`queued`), for operations take effect in their order.
 *
 * What was spent and is in no journal, like the estimate of a call that was cut, is part of what is
 * open until the lease is settled.
 */
#include "batch/fund.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/number.h"
#include "base/text.h"
#include "batch/fund_private.h"
#include "store/store.h"

enum {
	RENEWALS = 6,   /* while a lease lasts */
	LOOK_MS = 1000, /* how often to look whether others gave something back */
};

/* --- the store ---------------------------------------------------------------------- */

static void go_on(struct fund *fund);

/* True: it is of no use any more. */
static bool has_failed(struct fund *fund, const struct store_result *result)
{
	fund->query = NULL;
	if (!result->fault)
		return false;
	fund->dead = true;
	fund->step = FUND_STEP_NONE;
	fund->options.failed(fund->options.owner, result);
	return true;
}

static void tell(struct fund *fund)
{
	if (!fund->awaited && !fund->closing)
		return;
	fund->awaited = false;
	fund->options.changed(fund->options.owner, fund);
}

static void on_settled(void *owner, const struct store_result *result)
{
	struct fund *fund = owner;

	if (has_failed(fund, result))
		return;
	if (fund->step == FUND_STEP_SETTLE) {
		fund->lease = 0;
		fund->step = FUND_STEP_NONE;
	} else {
		fund->former = 0;
	}
	go_on(fund);
	tell(fund);
}

static void settle(struct fund *fund)
{
	struct rlmd_amount spent = fund_spent_here(fund);

	fund->step = FUND_STEP_SETTLE;
	fund->query = store_money_settle(fund->options.store, fund->lease, spent.cost, spent.tokens,
					 on_settled, fund);
	fund->size = fund->open = fund->left = (struct rlmd_amount){0};
	fund_set_cover(fund);
}

/* What was in flight under it has to be open in the next one before it is settled: until then it
 * counts as it did. */
static void settle_former(struct fund *fund)
{
	fund->query = store_money_settle(fund->options.store, fund->former, fund->former_spent.cost,
					 fund->former_spent.tokens, on_settled, fund);
}

/* The lease is no more ours, or its day is over. */
static void leave_lease(struct fund *fund)
{
	struct rlmd_amount reserved;

	fund->former = fund->lease;
	fund->former_spent = fund_spent_here(fund);
	fund->lease = 0;
	fund->base = fund_spent(fund, &reserved);
	fund->kept = fund->queued = fund->size = fund->open = (struct rlmd_amount){0};
	fund->step = FUND_STEP_NONE;
	fund->held = false;
	fund_set_cover(fund);
}

static void on_held(void *owner, const struct store_result *result)
{
	const struct store_lease *lease = &result->lease;
	struct fund *fund = owner;

	if (has_failed(fund, result))
		return;
	if (!lease->id) {
		leave_lease(fund);
		go_on(fund);
		return;
	}
	fund->held = true;
	fund->size = (struct rlmd_amount){lease->cost, lease->tokens};
	fund->open = (struct rlmd_amount){lease->open_cost, lease->open_tokens};
	fund->left = (struct rlmd_amount){lease->free_cost, lease->free_tokens};
	fund->others_hold = lease->others_ms != INT64_MAX;
	fund->held_ms = clock_ms();
	fund_set_limits(fund);
	fund_set_cover(fund);
	go_on(fund);
	tell(fund);
}

/* So much is to be open: the store is told before it is risked, and after it is not. */
static void hold(struct fund *fund, struct rlmd_amount open)
{
	struct rlmd_amount size = fund_where_limited(
		fund, amount_add(fund->queued, amount_add(open, open)), 0);

	open = fund_where_limited(fund, open, 0);
	fund->wanted = (struct rlmd_amount){0};
	fund->open = (struct rlmd_amount){int64_min(fund->open.cost, open.cost),
					  int64_min(fund->open.tokens, open.tokens)};
	fund_set_cover(fund);
	fund->query = store_money_hold(fund->options.store, fund->lease, size.cost, size.tokens,
				       open.cost, open.tokens, fund->options.lease_ms, on_held,
				       fund);
}

static void on_taken(void *owner, const struct store_result *result)
{
	struct fund *fund = owner;
	struct rlmd_amount reserved, spent;

	if (has_failed(fund, result))
		return;
	fund->lease = result->lease.id;
	fund->step = FUND_STEP_OPEN;
	fund->held = false;
	spent = fund_spent(fund, &reserved);
	hold(fund, amount_most(fund->wanted, fund_open_for(fund, amount_add(spent, reserved))));
}

static void take(struct fund *fund)
{
	struct rlmd_amount reserved;

	if (!fund->former)
		fund->base = fund_spent(fund, &reserved);
	fund->kept = fund->queued = (struct rlmd_amount){0};
	fund->step = FUND_STEP_TAKE;
	fund->query = store_money_take(fund->options.store, fund->id, text_of(fund->options.node),
				       0, 0, fund->options.lease_ms, on_taken, fund);
}

static void on_account(void *owner, const struct store_result *result)
{
	const struct store_account *account = &result->account;
	struct fund *fund = owner;

	if (has_failed(fund, result))
		return;
	if (fund->id != account->id)
		fund->scarce = RLMD_STOP_NONE;
	fund->id = account->id;
	fund->limit = (struct rlmd_amount){account->limit_cost, account->limit_tokens};
	fund->limited = fund->limit.cost != RLMD_UNLIMITED || fund->limit.tokens != RLMD_UNLIMITED;
	fund->day_ends_ms = fund->options.batch ? INT64_MAX : clock_ms() + account->ends_ms;
	if (fund->limited) {
		take(fund);
		return;
	}
	fund->step = FUND_STEP_OPEN;
	fund->held = true;
	fund_set_limits(fund);
	fund_set_cover(fund);
	go_on(fund);
	tell(fund);
}

static void ask_account(struct fund *fund)
{
	const struct fund_options *options = &fund->options;

	fund->step = FUND_STEP_ACCOUNT;
	fund->query = store_account(options->store, options->batch, text_of(options->tenant),
				    options->limit.cost, options->limit.tokens, on_account, fund);
}

/* What the lease has open, or is large, does not reach for what calls want. */
static bool wants_more(const struct fund *fund)
{
	struct rlmd_amount more = amount_beyond(fund->wanted, fund->open);
	struct rlmd_amount larger = amount_add(fund->queued, fund->wanted);

	larger = fund_where_limited(fund, amount_beyond(larger, fund->size), 0);
	return more.cost || more.tokens || (fund->wanted.cost && larger.cost) ||
	       (fund->wanted.tokens && larger.tokens);
}

/* With a quarter more than is wanted, the next call need not wait. */
static struct rlmd_amount ample(struct rlmd_amount amount)
{
	return amount_add(amount, amount_part(amount, 4));
}

static bool may_settle_former(const struct fund *fund)
{
	struct rlmd_amount reserved, spent = fund_spent(fund, &reserved);
	struct rlmd_amount bare = amount_beyond(fund_open_for(fund, amount_add(spent, reserved)),
						fund->open);

	bare = fund_where_limited(fund, bare, 0);
	return fund->former && (!fund->users || (fund->held && !bare.cost && !bare.tokens));
}

/* What is next, where nothing is asked of the store. */
static void go_on(struct fund *fund)
{
	bool open = fund->step == FUND_STEP_OPEN;

	if (fund->query || fund->dead)
		return;
	if (may_settle_former(fund))
		settle_former(fund);
	else if (fund->closing && open && fund->lease)
		settle(fund);
	else if (fund->closing)
		return;
	else if (fund->step == FUND_STEP_NONE && fund->users)
		ask_account(fund);
	else if (open && fund->lease && wants_more(fund))
		hold(fund, amount_most(fund->open, ample(fund->wanted)));
}

/* --- users -------------------------------------------------------------------------- */

/* From inside a call that is about to be sent, or was: the store is asked, and tells later. */
void fund_on_lack(void *owner, struct rlmd_amount needed)
{
	struct fund *fund = owner;

	fund->wanted = amount_most(fund->wanted,
				   fund_where_limited(fund, fund_open_for(fund, needed), 0));
	fund->peak = amount_most(fund->peak, fund->wanted);
	loop_post(fund->posted);
}

static void on_posted(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	go_on(owner);
}

/* What jobs here have reserved comes back with their ends; what others hold, when they end. */
static enum fund_state look_at_lack(struct fund *fund, int64_t *ret_again_ms)
{
	const int64_t now_ms = clock_ms(), due_ms = fund->held_ms + LOOK_MS;

	if (!fund->users && fund->others_hold && due_ms <= now_ms) {
		if (!fund->query)
			hold(fund, fund->open);
		fund->awaited = true;
		return FUND_OPENS;
	}
	*ret_again_ms = fund->users ? now_ms + LOOK_MS : fund->others_hold ? due_ms : INT64_MAX;
	fund->exhausted = *ret_again_ms == INT64_MAX;
	return FUND_EMPTY;
}

enum fund_state fund_look(struct fund *fund, int64_t *ret_again_ms)
{
	if (fund->exhausted) {
		*ret_again_ms = INT64_MAX;
		return FUND_EMPTY;
	}
	if (fund->step == FUND_STEP_OPEN && fund->held &&
	    (fund_lacks(fund) || (fund->most_users && fund->users >= fund->most_users)))
		return look_at_lack(fund, ret_again_ms);
	if (fund->step == FUND_STEP_OPEN && fund->held)
		return FUND_READY;
	if (fund->step == FUND_STEP_NONE && !fund->query && !fund->dead)
		ask_account(fund);
	fund->awaited = true;
	return FUND_OPENS;
}

void fund_use(struct fund *fund)
{
	fund->users++;
	fund->idle = false;
}

void fund_leave(struct fund *fund)
{
	fund->users--;
}

int64_t fund_pay(struct fund *fund, struct rlmd_amount bill)
{
	if (fund->lease)
		fund->queued = amount_add(fund->queued, bill);
	return fund->lease;
}

void fund_paid(struct fund *fund, int64_t lease, struct rlmd_amount bill, bool kept)
{
	struct rlmd_amount reserved, spent;

	if (!lease || lease != fund->lease || fund->dead)
		return;
	if (!kept) {
		fund->queued = amount_beyond(fund->queued, bill);
		return;
	}
	spent = fund_spent(fund, &reserved); /* without this one, which is reserved still */
	fund->peak = amount_most(fund->peak, fund_open_for(fund, amount_add(spent, reserved)));
	fund->kept = amount_add(fund->kept, bill);
	fund_set_cover(fund);
}

/* More is open than was wanted for a while; never less than what is in flight now. */
static struct rlmd_amount shrunk(struct fund *fund)
{
	struct rlmd_amount reserved, spent = fund_spent(fund, &reserved), peak;

	fund->peak = amount_most(fund->peak, fund_open_for(fund, amount_add(spent, reserved)));
	peak = ample(amount_most(fund->peak, fund->former_peak));
	fund->former_peak = fund->peak;
	fund->peak = (struct rlmd_amount){0};
	return (struct rlmd_amount){int64_min(fund->open.cost, peak.cost),
				    int64_min(fund->open.tokens, peak.tokens)};
}

void fund_tick(struct fund *fund)
{
	const int64_t now_ms = clock_ms();
	bool idle = !fund->users && fund->idle;

	fund->idle = !fund->users;
	if (fund->query || fund->dead || fund->step != FUND_STEP_OPEN)
		return;
	if (idle && !fund->lease)
		fund->step = FUND_STEP_NONE; /* it has no limit; next time it may have one */
	else if (idle)
		settle(fund);
	else if (now_ms >= fund->day_ends_ms && fund->lease)
		leave_lease(fund);
	else if (fund->lease && now_ms - fund->held_ms >= fund->options.lease_ms / RENEWALS)
		hold(fund, amount_most(shrunk(fund), ample(fund->wanted)));
	go_on(fund);
}

/* --- its life ------------------------------------------------------------------------ */

struct fund *fund_new(const struct fund_options *options)
{
	struct fund *fund = xcalloc(1, sizeof *fund);

	fund->options = *options;
	fund->limited = true;
	fund->cover.cost = -1; /* none is set yet */
	fund->posted = event_new(options->base, -1, 0, on_posted, fund);
	fund->account = rlmd_account_new(options->name, NULL, options->above, NULL);
	if (!fund->account)
		fund->account = rlmd_account_new("its tenant", NULL, options->above, NULL);
	fund_set_cover(fund);
	return fund;
}

void fund_free(struct fund *fund)
{
	if (!fund)
		return;
	store_forget(fund->query);
	event_free(fund->posted);
	rlmd_account_set_cover(fund->account, NULL, NULL);
	rlmd_account_free(fund->account);
	free(fund);
}

struct rlmd_account *fund_account(const struct fund *fund)
{
	return fund->account;
}

struct rlmd_amount fund_limit(const struct fund *fund)
{
	return fund->limit;
}

bool fund_is_closed(const struct fund *fund)
{
	return fund->dead || (fund->closing && !fund->query && !fund->lease && !fund->former);
}

bool fund_close(struct fund *fund)
{
	fund->closing = true;
	go_on(fund);
	return fund_is_closed(fund);
}

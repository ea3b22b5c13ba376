/*
 * Three sums, from the account's beginning on: what was spent through it (`spent_of`); what was
 * spent when the lease was taken (`before`); and of what came since, what journals in the store
 * show (`journaled`). The lease has `open` beside what journals show, so what is spent and in
 * flight may be before + journaled + open, within the lease's size: the cover. In the store's sums
 * the lease has spent what journals show, also those on their way (`entered`), for operations take
 * effect in their order.
 *
 * Money that was spent and is in no journal, like the estimate of a call that was cut, is part of
 * the open amount until the lease is settled.
 */
#include "batch/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/money.h"
#include "base/number.h"
#include "base/text.h"
#include "base/timer.h"
#include "store/store.h"

enum {
	RENEWALS = 6,   /* while a lease lasts */
	LOOK_MS = 1000, /* how often to look whether others gave something back */
	ENOUGH = 2, /* jobs in turn that could not go on alone: it is not one that is too large */
};

struct lease {
	struct lease_options options;
	struct rlmd_account *account; /* owned */
	struct query *query;          /* lent: the one operation at a time */
	struct timer *posted;         /* owned: looks what is next */
	struct timer *midnight;       /* owned: the account's day is over */
	int64_t account_id, id;       /* in the store; 0: not known, there is no lease */
	struct rlmd_amount limit;     /* of the store's account */
	struct rlmd_amount before, journaled, entered;
	struct rlmd_amount size, open;        /* of the lease */
	struct rlmd_amount free;              /* of the account: nobody holds it */
	struct rlmd_amount cover;             /* as it was set last */
	struct rlmd_amount wanted;            /* to be open, since the store was asked last */
	struct rlmd_amount peak, former_peak; /* had to be open at most, since the last ticks */
	int64_t day_ends_ms;                  /* on clock_ms() */
	int64_t asked_ms;                     /* likewise: when the store said what the lease has */
	int64_t former;                       /* a lease of before, to be settled; 0: none */
	struct rlmd_amount former_spent;
	bool ready;       /* what may be spent is known */
	bool limited;     /* the account has a limit; else there is no lease */
	bool awaited;     /* somebody waits for `changed` */
	bool idle;        /* no job used it at the last tick */
	bool others_hold; /* something that may come back */
	bool closing, dead;

	/* Whether one more job may be begun. */
	size_t users, most_users;    /* 0: as many as want to */
	struct rlmd_amount expected; /* the mean cost of jobs that succeeded lately; zero: none */
	struct rlmd_amount ended;    /* of what was spent, by jobs that have ended */
	struct rlmd_amount scant;    /* the rest at which a job could not go on; -1: none such */
	int refusals;                /* jobs in turn that could not go on, alone */
	bool exhausted;              /* nothing is left, and nobody will give anything back */
	bool reported;               /* that it is empty */
};

static const struct rlmd_amount never = {-1, -1};

/* --- sums ----------------------------------------------------------------------------- */

/* Of a kind without a limit nothing is held, and no end is seen. */
static struct rlmd_amount where_limited(const struct lease *lease, struct rlmd_amount amount,
					int64_t otherwise)
{
	return (struct rlmd_amount){
		lease->limit.cost == RLMD_UNLIMITED ? otherwise : amount.cost,
		lease->limit.tokens == RLMD_UNLIMITED ? otherwise : amount.tokens,
	};
}

static struct rlmd_spending spending_of(const struct lease *lease)
{
	struct rlmd_spending spending = RLMD_SPENDING_INIT;

	rlmd_account_save(lease->account, &spending, NULL);
	return spending;
}

static struct rlmd_amount spent_of(const struct lease *lease)
{
	struct rlmd_spending spending = spending_of(lease);

	return (struct rlmd_amount){spending.cost, spending.tokens};
}

static struct rlmd_amount reserved_of(const struct lease *lease)
{
	struct rlmd_spending spending = spending_of(lease);

	return (struct rlmd_amount){spending.reserved_cost, spending.reserved_tokens};
}

static struct rlmd_amount at_risk(const struct lease *lease)
{
	return amount_add(spent_of(lease), reserved_of(lease));
}

/* How much has to be open for this to be at risk, counted from the account's beginning. */
static struct rlmd_amount open_for(const struct lease *lease, struct rlmd_amount risk)
{
	risk = amount_beyond(risk, amount_add(lease->before, lease->journaled));
	return where_limited(lease, risk, 0);
}

static void note_peak(struct lease *lease, struct rlmd_amount open)
{
	lease->peak = amount_most(lease->peak, open);
}

/* With a quarter more than is wanted, the next call need not wait. */
static struct rlmd_amount ample(struct rlmd_amount amount)
{
	return amount_add(amount, amount_part(amount, 4));
}

/* From inside a call that is about to be sent, or was: the store is asked, and tells later. */
static void on_lack(void *owner, struct rlmd_amount needed)
{
	struct lease *lease = owner;

	lease->wanted = amount_most(lease->wanted, open_for(lease, needed));
	note_peak(lease, lease->wanted);
	timer_post(lease->posted);
}

static void set_cover(struct lease *lease)
{
	struct rlmd_account_cover cover = {sizeof cover, {0}, on_lack, lease};
	struct rlmd_amount open = amount_add(lease->journaled, lease->open);

	cover.amount = amount_add(lease->before, amount_least(open, lease->size));
	cover.amount = where_limited(lease, cover.amount, INT64_MAX);
	if (lease->limited && cover.amount.cost == lease->cover.cost &&
	    cover.amount.tokens == lease->cover.tokens)
		return;
	lease->cover = cover.amount;
	rlmd_account_set_cover(lease->account, lease->limited ? &cover : NULL, NULL);
}

/* The most that may be spent from the account's beginning on. */
static struct rlmd_amount ceiling_of(const struct lease *lease)
{
	return where_limited(lease, amount_add(amount_add(lease->before, lease->size), lease->free),
			     RLMD_UNLIMITED);
}

static int64_t limit_of(int64_t amount)
{
	return amount ? amount : RLMD_NOTHING;
}

static void set_limits(struct lease *lease)
{
	struct rlmd_amount ceiling = ceiling_of(lease);
	const struct rlmd_account_limits limits = {sizeof limits, limit_of(ceiling.cost),
						   limit_of(ceiling.tokens)};

	rlmd_account_set_limits(lease->account, &limits, NULL);
}

/* --- the store ------------------------------------------------------------------------ */

static void go_on(struct lease *lease);

/* True: it is of no use any more. */
static bool has_failed(struct lease *lease, const struct store_result *result)
{
	lease->query = NULL;
	if (!result->fault)
		return false;
	lease->dead = true;
	lease->ready = false;
	lease->options.failed(lease->options.owner, result);
	return true;
}

static void tell(struct lease *lease)
{
	if (!lease->awaited && !lease->closing)
		return;
	lease->awaited = false;
	lease->options.changed(lease->options.owner, lease);
}

/* The lease is over, or given up; what was spent of it is to be settled. */
static void leave_lease(struct lease *lease)
{
	struct rlmd_amount spent = spent_of(lease);

	lease->former = lease->id;
	lease->former_spent = amount_most(amount_beyond(spent, lease->before), lease->entered);
	lease->id = 0;
	lease->before = spent;
	lease->journaled = lease->entered = (struct rlmd_amount){0};
	lease->size = lease->open = (struct rlmd_amount){0};
	lease->ready = false;
	set_cover(lease);
}

static void on_held(void *owner, const struct store_result *result)
{
	const struct store_lease *held = &result->lease;
	struct lease *lease = owner;

	if (has_failed(lease, result))
		return;
	if (!held->id) {
		leave_lease(lease);
		go_on(lease);
		return;
	}
	lease->ready = true;
	lease->size = (struct rlmd_amount){held->cost, held->tokens};
	lease->open = (struct rlmd_amount){held->open_cost, held->open_tokens};
	lease->free = (struct rlmd_amount){held->free_cost, held->free_tokens};
	lease->others_hold = held->others_ms != INT64_MAX;
	lease->asked_ms = clock_ms();
	set_limits(lease);
	set_cover(lease);
	go_on(lease);
	tell(lease);
}

/* So much is to be open: the store is told before it is risked, and after it is not. */
static void hold(struct lease *lease, struct rlmd_amount open)
{
	struct rlmd_amount size;

	open = where_limited(lease, open, 0);
	size = where_limited(lease, amount_add(lease->entered, amount_add(open, open)), 0);
	lease->wanted = (struct rlmd_amount){0};
	lease->open = amount_least(lease->open, open);
	set_cover(lease);
	lease->query = store_lease_hold(lease->options.store, lease->id, size.cost, size.tokens,
					open.cost, open.tokens, lease->options.lease_ms, on_held,
					lease);
}

static void on_taken(void *owner, const struct store_result *result)
{
	struct lease *lease = owner;

	if (has_failed(lease, result))
		return;
	lease->id = result->lease.id;
	hold(lease, amount_most(lease->wanted, open_for(lease, at_risk(lease))));
}

static void take(struct lease *lease)
{
	if (!lease->former)
		lease->before = spent_of(lease);
	lease->query = store_lease_take(lease->options.store, lease->account_id,
					text_of(lease->options.node), 0, 0, lease->options.lease_ms,
					on_taken, lease);
}

static void await_midnight(struct lease *lease, int64_t in_ms)
{
	lease->day_ends_ms = clock_ms() + in_ms;
	timer_start(lease->midnight, in_ms);
}

static void on_account(void *owner, const struct store_result *result)
{
	const struct store_account *account = &result->account;
	struct lease *lease = owner;

	if (has_failed(lease, result))
		return;
	if (lease->account_id != account->id) {
		lease->scant = never;
		lease->most_users = 0;
	}
	lease->account_id = account->id;
	lease->limit = (struct rlmd_amount){account->limit_cost, account->limit_tokens};
	lease->limited = lease->limit.cost != RLMD_UNLIMITED ||
			 lease->limit.tokens != RLMD_UNLIMITED;
	if (!lease->options.batch)
		await_midnight(lease, account->ends_ms);
	if (lease->limited) {
		take(lease);
		return;
	}
	lease->ready = true;
	set_limits(lease);
	set_cover(lease);
	go_on(lease);
	tell(lease);
}

static void ask_account(struct lease *lease)
{
	const struct lease_options *options = &lease->options;

	lease->query = store_account(options->store, options->batch, text_of(options->tenant),
				     options->limit.cost, options->limit.tokens, on_account, lease);
}

/* Whether calls want more than the lease has open, or than its size allows. */
static bool wants_more(const struct lease *lease)
{
	struct rlmd_amount more = amount_beyond(lease->wanted, lease->open);
	struct rlmd_amount larger = amount_add(lease->entered, lease->wanted);

	larger = where_limited(lease, amount_beyond(larger, lease->size), 0);
	return more.cost || more.tokens || (lease->wanted.cost && larger.cost) ||
	       (lease->wanted.tokens && larger.tokens);
}

static void on_settled(void *owner, const struct store_result *result)
{
	struct lease *lease = owner;

	if (has_failed(lease, result))
		return;
	lease->former = 0;
	go_on(lease);
	tell(lease);
}

/*
 * The calls in flight under the former lease have to be open in the next one before it is settled:
 * until then it counts as it did. Where nothing is in flight any more, and the next one never was
 * open for all of that, the rest was spent under the former one.
 */
static bool settle_former(struct lease *lease)
{
	struct rlmd_amount open = open_for(lease, at_risk(lease)), rest;

	open = amount_beyond(open, lease->open);
	if (!lease->former || (lease->users && (!lease->ready || open.cost || open.tokens)))
		return false;
	rest = amount_beyond(open_for(lease, spent_of(lease)), lease->open);
	lease->former_spent = amount_add(lease->former_spent, rest);
	lease->before = amount_add(lease->before, rest);
	lease->query = store_lease_settle(lease->options.store, lease->former,
					  lease->former_spent.cost, lease->former_spent.tokens,
					  on_settled, lease);
	return true;
}

/* Calls are of the account of their day, and a new day has money again. */
static void leave_day(struct lease *lease)
{
	if (lease->id)
		leave_lease(lease);
	lease->ready = false;
	lease->day_ends_ms = INT64_MAX;
	lease->exhausted = false;
	lease->awaited = true;
}

/* Takes the next step, unless the store is being asked something. */
static void go_on(struct lease *lease)
{
	if (lease->query || lease->dead)
		return;
	if (clock_ms() >= lease->day_ends_ms && !lease->former && !lease->closing)
		leave_day(lease);
	if (settle_former(lease))
		return;
	if (lease->closing && lease->id) {
		leave_lease(lease);
		settle_former(lease);
	} else if (lease->closing) {
		return;
	} else if (!lease->ready && lease->users) {
		ask_account(lease);
	} else if (lease->id && wants_more(lease)) {
		hold(lease, amount_most(lease->open, ample(lease->wanted)));
	}
}

static void on_posted(void *owner)
{
	go_on(owner);
}

static void on_midnight(void *owner)
{
	go_on(owner);
	tell(owner);
}

/* --- whether a job may be begun --------------------------------------------------------- */

/* Neither spent nor reserved. */
static struct rlmd_amount rest_of(const struct lease *lease)
{
	return where_limited(lease, amount_beyond(ceiling_of(lease), at_risk(lease)),
			     RLMD_UNLIMITED);
}

/* The jobs at work will still cost this, as far as they are like others. */
static struct rlmd_amount promised(const struct lease *lease, struct rlmd_amount each)
{
	struct rlmd_amount all = {money_times(each.cost, lease->users),
				  money_times(each.tokens, lease->users)};

	return amount_beyond(all, amount_beyond(spent_of(lease), lease->ended));
}

/* The part of one more job that there is too little for. Reservations of the jobs at work are a
 * part of what these will cost. */
static struct rlmd_amount missing(const struct lease *lease)
{
	bool known = lease->expected.cost || lease->expected.tokens;
	struct rlmd_amount each = known ? ample(lease->expected) : lease->options.bound, needed;

	if (!known && !lease->users)
		return (struct rlmd_amount){0};
	needed = amount_add(amount_add(spent_of(lease), promised(lease, each)), each);
	return where_limited(lease, amount_beyond(needed, ceiling_of(lease)), 0);
}

/* The kind that it is short of, for one more job like the others; while none has ended, one job at
 * a time is begun for which its bound is too much. */
static enum rlmd_stop lacks(const struct lease *lease)
{
	struct rlmd_amount rest = rest_of(lease), short_by;

	if (!lease->limited)
		return RLMD_STOP_NONE;
	/* A limit of nothing is not used up by models that cost nothing; what costs is refused. */
	if ((!rest.cost && lease->limit.cost) || rest.cost <= lease->scant.cost)
		return RLMD_STOP_MAX_COST;
	if (!rest.tokens || rest.tokens <= lease->scant.tokens)
		return RLMD_STOP_MAX_TOKENS;
	short_by = missing(lease);
	return short_by.cost     ? RLMD_STOP_MAX_COST
	       : short_by.tokens ? RLMD_STOP_MAX_TOKENS
				 : RLMD_STOP_NONE;
}

/* How to go on despite the limit. */
static char *remedy_of(const struct lease *lease, const char *kind)
{
	if (!lease->options.above)
		return xasprintf("jobs stay pending, and a higher --max-batch-%s lets the next "
				 "start go on with them",
				 kind);
	if (!lease->options.batch)
		return xasprintf("its jobs stay pending for a start on another day (UTC), or with "
				 "a higher max-%s-per-day in rlmd.conf",
				 kind);
	return xasprintf("its jobs stay pending, and a higher max-%s in rlmd.conf lets the next "
			 "start go on with them",
			 kind);
}

static const char *period_of(const struct lease *lease)
{
	return !lease->options.above ? "" : lease->options.batch ? " of this batch" : " a day";
}

static void say(struct rlmd_amount amount, bool cost, char out[static 32])
{
	if (cost)
		money_format(amount.cost, out);
	else
		snprintf(out, 32, "%" PRId64 " tokens", amount.tokens);
}

static char *why_empty(const struct lease *lease)
{
	bool cost = lacks(lease) != RLMD_STOP_MAX_TOKENS;
	auto_free char *remedy = remedy_of(lease, cost ? "cost" : "tokens");
	char limit[32], left[32], job[32];
	auto_free char *rest = NULL;

	say(lease->limit, cost, limit);
	say(rest_of(lease), cost, left);
	say(lease->expected, cost, job);
	if (lease->expected.cost || lease->expected.tokens)
		rest = xasprintf("%s is left, and a job takes about %s", left, job);
	return xasprintf("the limit of %s, %s%s, is reached: %s (%s)",
			 rlmd_account_name(lease->account), limit, period_of(lease), remedy,
			 rest ? rest
			      : "no job was done with it here: it may be too little for one");
}

/* Money that jobs here have reserved comes back with their ends; money that others hold, when
 * their leases end. */
static enum lease_state look_at_lack(struct lease *lease, int64_t *ret_again_ms)
{
	const int64_t now_ms = clock_ms(), due_ms = lease->asked_ms + LOOK_MS;

	if (!lease->users && lease->others_hold && due_ms <= now_ms) {
		if (!lease->query)
			hold(lease, lease->open);
		lease->awaited = true;
		return LEASE_WAITS;
	}
	*ret_again_ms = lease->users ? now_ms + LOOK_MS : lease->others_hold ? due_ms : INT64_MAX;
	lease->exhausted = *ret_again_ms == INT64_MAX;
	return LEASE_EMPTY;
}

static enum lease_state look(struct lease *lease, int64_t *ret_again_ms)
{
	if (lease->exhausted) {
		*ret_again_ms = INT64_MAX;
		return LEASE_EMPTY;
	}
	if (lease->ready &&
	    (lacks(lease) || (lease->most_users && lease->users >= lease->most_users)))
		return look_at_lack(lease, ret_again_ms);
	if (lease->ready)
		return LEASE_READY;
	if (!lease->query && !lease->dead)
		ask_account(lease);
	lease->awaited = true;
	return LEASE_WAITS;
}

enum lease_state lease_look(struct lease *lowest, struct lease_lack *ret)
{
	enum lease_state state = LEASE_READY;

	for (struct lease *lease = lowest; lease; lease = lease->options.above) {
		enum lease_state each = look(lease, &ret->again_ms);

		if (each == LEASE_EMPTY && ret->again_ms == INT64_MAX) {
			ret->why = why_empty(lease);
			ret->reported = lease->reported;
			lease->reported = true;
		}
		if (each == LEASE_EMPTY)
			return each;
		if (each == LEASE_WAITS)
			state = each;
	}
	for (struct lease *lease = lowest; lease; lease = lease->options.above)
		if (state == LEASE_READY) /* a new day, or a higher limit: the next end is news */
			lease->reported = false;
	return state;
}

void lease_use(struct lease *lowest)
{
	for (struct lease *lease = lowest; lease; lease = lease->options.above) {
		lease->users++;
		lease->idle = false;
	}
}

static void learn_cost(struct lease *lease, struct rlmd_amount cost)
{
	struct rlmd_amount *expected = &lease->expected;

	if (!expected->cost && !expected->tokens)
		*expected = cost;
	else
		*expected = amount_add(amount_beyond(*expected, amount_part(*expected, 4)),
				       amount_part(cost, 4));
}

bool lease_leave(struct lease *lowest, const struct lease_job *job)
{
	bool tight = false; /* the topmost one */

	for (struct lease *lease = lowest; lease; lease = lease->options.above) {
		tight = lease->most_users || lacks(lease);
		lease->users--;
		lease->ended = lease->users ? amount_add(lease->ended, job->paid) : spent_of(lease);
		if (job->succeeded) {
			learn_cost(lease, job->cost);
			lease->refusals = 0;
		}
	}
	return tight;
}

void lease_expect(struct lease *lease, struct rlmd_amount cost)
{
	if (!lease->expected.cost && !lease->expected.tokens)
		lease->expected = cost;
}

static void note_short(struct lease *lease, enum rlmd_stop kind)
{
	struct rlmd_amount rest = rest_of(lease);

	if (lease->users > 1)
		lease->most_users = lease->users - 1;
	else if (++lease->refusals < ENOUGH)
		return;
	else if (kind == RLMD_STOP_MAX_TOKENS)
		lease->scant.tokens = rest.tokens;
	else
		lease->scant.cost = rest.cost;
}

void lease_note_short(struct lease *lowest, const char *account, enum rlmd_stop kind)
{
	for (struct lease *lease = lowest; lease; lease = lease->options.above)
		if (!strcmp(rlmd_account_name(lease->account), account))
			note_short(lease, kind);
}

/* --- what was billed -------------------------------------------------------------------- */

struct lease_bill lease_pay(struct lease *lowest, struct rlmd_amount amount)
{
	struct lease_bill bill = {.amount = amount};

	for (struct lease *lease = lowest; lease; lease = lease->options.above) {
		if (!lease->id)
			continue;
		lease->entered = amount_add(lease->entered, amount);
		bill.leases[bill.count++] = lease->id;
	}
	return bill;
}

static void paid(struct lease *lease, struct rlmd_amount bill)
{
	/* Without this one, which is reserved still. */
	note_peak(lease, open_for(lease, at_risk(lease)));
	lease->journaled = amount_add(lease->journaled, bill);
	set_cover(lease);
}

/* When a lease is over, the store counts what was open as spent. A bill that comes later is a part
 * of that: it must not let as much be sent once more, for others may have the rest by now. */
void lease_paid(struct lease *lowest, const struct lease_bill *bill, const bool *lost)
{
	for (struct lease *lease = lowest; lease; lease = lease->options.above)
		for (size_t i = 0; i < bill->count; i++) {
			if (bill->leases[i] != lease->id || lease->dead)
				continue;
			if (!lost)
				lease->entered = amount_beyond(lease->entered, bill->amount);
			else if (!lost[i])
				paid(lease, bill->amount);
		}
}

/* --- its life --------------------------------------------------------------------------- */

/* More is open than was wanted for a while; never less than what is in flight now. */
static struct rlmd_amount shrunk(struct lease *lease)
{
	struct rlmd_amount peak;

	note_peak(lease, open_for(lease, at_risk(lease)));
	peak = ample(amount_most(lease->peak, lease->former_peak));
	lease->former_peak = lease->peak;
	lease->peak = (struct rlmd_amount){0};
	return amount_least(lease->open, peak);
}

void lease_tick(struct lease *lease)
{
	bool idle = !lease->users && lease->idle;

	lease->idle = !lease->users;
	if (lease->query || lease->dead || !lease->ready)
		return;
	if (idle && !lease->id)
		lease->ready = false; /* it has no limit; next time it may have one */
	else if (idle && !lease->former)
		leave_lease(lease);
	else if (lease->id && clock_ms() - lease->asked_ms >= lease->options.lease_ms / RENEWALS)
		hold(lease, amount_most(shrunk(lease), ample(lease->wanted)));
	go_on(lease);
}

struct lease *lease_new(const struct lease_options *options)
{
	struct rlmd_account *above = options->above ? options->above->account : NULL;
	struct lease *lease = xcalloc(1, sizeof *lease);

	lease->options = *options;
	lease->limited = true;
	lease->scant = lease->cover = never;
	lease->day_ends_ms = INT64_MAX;
	lease->posted = timer_new(options->base, on_posted, lease);
	lease->midnight = timer_new(options->base, on_midnight, lease);
	lease->account = rlmd_account_new(options->name, NULL, above, NULL);
	if (!lease->account) /* the name is too long */
		lease->account = rlmd_account_new("its tenant", NULL, above, NULL);
	set_cover(lease);
	return lease;
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	store_forget(lease->query);
	timer_free(lease->posted);
	timer_free(lease->midnight);
	rlmd_account_set_cover(lease->account, NULL, NULL);
	rlmd_account_unref(lease->account);
	free(lease);
}

bool lease_close(struct lease *lease)
{
	lease->closing = true;
	go_on(lease);
	return lease->dead || (!lease->query && !lease->id && !lease->former);
}

struct rlmd_account *lease_account(const struct lease *lease)
{
	return lease->account;
}

#include "budget/account.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/stop.h"
#include "base/text.h"

struct rlmd_account {
	char *name;                 /* owned */
	struct rlmd_account *above; /* referenced; NULL: none */
	size_t references;          /* its maker's, jobs', reservations', of accounts below */
	struct rlmd_amount limit, spent, reserved, overrun;
	int64_t calls;
	bool estimated;
	size_t in_flight;                     /* calls that will give back of what is reserved */
	struct rlmd_amount flying;            /* of what is reserved, theirs */
	struct rlmd_account_cover cover;      /* size 0: none is needed */
	TAILQ_HEAD(, account_waiter) waiters; /* lent: for the end of these, in order */
};

struct rlmd_charge {
	struct rlmd_account *account; /* referenced */
	struct rlmd_amount held;
};

static struct rlmd_amount rest_of(const struct rlmd_account *account)
{
	return (struct rlmd_amount){
		amount_rest(account->limit.cost, account->spent.cost, account->reserved.cost),
		amount_rest(account->limit.tokens, account->spent.tokens, account->reserved.tokens),
	};
}

/* What is reserved is there. */
static struct rlmd_amount unspent_of(const struct rlmd_account *account)
{
	return (struct rlmd_amount){
		amount_rest(account->limit.cost, account->spent.cost, 0),
		amount_rest(account->limit.tokens, account->spent.tokens, 0),
	};
}

static enum rlmd_stop overdraft(const struct rlmd_account *account)
{
	if (amount_exceeds(account->limit.cost, account->spent.cost, account->reserved.cost))
		return RLMD_STOP_MAX_COST;
	if (amount_exceeds(account->limit.tokens, account->spent.tokens, account->reserved.tokens))
		return RLMD_STOP_MAX_TOKENS;
	return RLMD_STOP_NONE;
}

static enum rlmd_stop blocks(const struct rlmd_account *account)
{
	struct rlmd_amount left = rest_of(account);
	enum rlmd_stop reason = overdraft(account);

	if (account->in_flight) {
		left = unspent_of(account);
		reason = RLMD_STOP_NONE;
	}
	if (!reason && !left.cost && account->limit.cost)
		reason = RLMD_STOP_MAX_COST;
	if (!reason && !left.tokens)
		reason = RLMD_STOP_MAX_TOKENS;
	return reason;
}

enum rlmd_stop account_block(const struct rlmd_account *account,
			     const struct rlmd_account **ret_who)
{
	for (; account; account = account->above) {
		enum rlmd_stop reason = blocks(account);

		if (reason) {
			*ret_who = account;
			return reason;
		}
	}
	return RLMD_STOP_NONE;
}

static enum rlmd_stop lacks(const struct rlmd_account *account, struct rlmd_amount amount)
{
	struct rlmd_amount left = rest_of(account);
	enum rlmd_stop reason = overdraft(account);

	if (!reason && amount.cost > left.cost)
		reason = RLMD_STOP_MAX_COST;
	if (!reason && amount.tokens > left.tokens)
		reason = RLMD_STOP_MAX_TOKENS;
	return reason;
}

enum rlmd_stop account_lacks(const struct rlmd_account *account, struct rlmd_amount amount,
			     const struct rlmd_account **ret_who)
{
	for (; account; account = account->above) {
		enum rlmd_stop reason = lacks(account, amount);

		if (reason) {
			*ret_who = account;
			return reason;
		}
	}
	return RLMD_STOP_NONE;
}

enum rlmd_stop account_tell(enum rlmd_stop reason, const struct rlmd_account *who,
			    struct rlmd_error *err)
{
	if (reason && who)
		error_limit(err, reason, "%s (the limit of %s)", stop_words(reason), who->name);
	else if (reason)
		error_limit(err, reason, "%s", stop_words(reason));
	return reason;
}

void account_hold(struct rlmd_account *account, struct rlmd_amount amount)
{
	for (; account; account = account->above)
		account->reserved = amount_add(account->reserved, amount);
}

/* Not below zero: a sum that had saturated was too small. */
void account_release(struct rlmd_account *account, struct rlmd_amount held)
{
	for (; account; account = account->above)
		account->reserved = amount_beyond(account->reserved, held);
}

void account_settle(struct rlmd_account *account, struct rlmd_amount held,
		    struct rlmd_amount actual)
{
	struct rlmd_amount overrun = amount_beyond(actual, held);

	account_release(account, held);
	for (; account; account = account->above) {
		account->spent = amount_add(account->spent, actual);
		account->overrun = amount_add(account->overrun, overrun);
	}
}

void account_count_calls(struct rlmd_account *account, int64_t calls, bool estimated)
{
	for (; account; account = account->above) {
		account->calls = money_add(account->calls, calls);
		account->estimated |= estimated;
	}
}

static void wake(struct rlmd_account *account)
{
	struct account_waiter *waiter;

	while ((waiter = TAILQ_FIRST(&account->waiters))) {
		account_wait_no_more(waiter);
		waiter->fn(waiter->owner);
	}
}

/* Whether this may be at risk, besides what is; its host is told where not. */
static bool is_covered(const struct rlmd_account *account, struct rlmd_amount amount)
{
	const struct rlmd_account_cover *cover = &account->cover;
	struct rlmd_amount needed, beyond;

	if (!cover->size)
		return true;
	needed = amount_add(amount_add(account->spent, account->flying), amount);
	beyond = amount_beyond(needed, cover->amount);
	if (!beyond.cost && !beyond.tokens)
		return true;
	cover->lacks(cover->owner, needed);
	return false;
}

struct rlmd_account *account_uncovered(struct rlmd_account *account, struct rlmd_amount amount)
{
	while (account && is_covered(account, amount))
		account = account->above;
	return account;
}

void account_begin_call(struct rlmd_account *account, struct rlmd_amount amount)
{
	for (; account; account = account->above) {
		account->in_flight++;
		account->flying = amount_add(account->flying, amount);
		is_covered(account, amount); /* so that the next one need not wait */
	}
}

void account_end_call(struct rlmd_account *account, struct rlmd_amount amount)
{
	for (; account; account = account->above) {
		account->in_flight--;
		account->flying = amount_beyond(account->flying, amount);
		wake(account);
	}
}

struct rlmd_account *account_awaited(struct rlmd_account *account, struct rlmd_amount amount)
{
	while (account && !lacks(account, amount))
		account = account->above;
	return account && account->in_flight ? account : NULL;
}

void account_wait(struct rlmd_account *account, struct account_waiter *waiter,
		  void (*fn)(void *owner), void *owner)
{
	waiter->account = account;
	waiter->fn = fn;
	waiter->owner = owner;
	TAILQ_INSERT_TAIL(&account->waiters, waiter, entry);
}

void account_wait_no_more(struct account_waiter *waiter)
{
	if (waiter->account)
		TAILQ_REMOVE(&waiter->account->waiters, waiter, entry);
	waiter->account = NULL;
}

struct rlmd_amount account_remaining(const struct rlmd_account *account)
{
	struct rlmd_amount least = {RLMD_UNLIMITED, RLMD_UNLIMITED};

	for (; account; account = account->above)
		least = amount_least(least, rest_of(account));
	return least;
}

struct rlmd_amount account_unspent(const struct rlmd_account *account)
{
	struct rlmd_amount least = {RLMD_UNLIMITED, RLMD_UNLIMITED};

	for (; account; account = account->above)
		least = amount_least(least, unspent_of(account));
	return least;
}

struct rlmd_account *account_ref(struct rlmd_account *account)
{
	if (account)
		account->references++;
	return account;
}

/* Iterative, for who knows how many stand above each other. */
void account_unref(struct rlmd_account *account)
{
	while (account && !--account->references) {
		struct rlmd_account *above = account->above;

		free(account->name);
		free(account);
		account = above;
	}
}

/* --- rlmd/budget.h --------------------------------------------------------------------- */

static bool read_limit(int64_t given, int64_t *ret)
{
	if (given < RLMD_NOTHING)
		return false;
	*ret = given == RLMD_NOTHING ? 0 : given ? given : RLMD_UNLIMITED;
	return true;
}

static bool read_limits(const struct rlmd_account_limits *given, struct rlmd_amount *ret,
			struct rlmd_error *err)
{
	struct rlmd_account_limits limits;

	if (!sized_take(&limits, sizeof limits, given, sizeof limits, "rlmd_account_limits", err))
		return false;
	if (!read_limit(limits.cost, &ret->cost) || !read_limit(limits.tokens, &ret->tokens))
		return error_set(err, RLMD_ERROR_USAGE,
				 "a limit of an account is negative: RLMD_NOTHING allows nothing, "
				 "0 or RLMD_UNLIMITED anything");
	return true;
}

static bool check_name(const char *name, struct rlmd_error *err)
{
	if (!name || !*name || strlen(name) > RLMD_ACCOUNT_NAME_MAX || !text_is_utf8(text_of(name)))
		return error_set(err, RLMD_ERROR_USAGE,
				 "the name of an account must have 1 to %d bytes of UTF-8",
				 RLMD_ACCOUNT_NAME_MAX);
	return true;
}

struct rlmd_account *rlmd_account_new(const char *name, const struct rlmd_account_limits *limits,
				      struct rlmd_account *above, struct rlmd_error *err)
{
	struct rlmd_amount limit;
	struct rlmd_account *account;

	if (!check_name(name, err) || !read_limits(limits, &limit, err))
		return NULL;
	account = xcalloc(1, sizeof *account);
	account->name = xstrdup(name);
	account->above = account_ref(above);
	account->references = 1;
	account->limit = limit;
	TAILQ_INIT(&account->waiters);
	return account;
}

bool rlmd_account_set_limits(struct rlmd_account *account, const struct rlmd_account_limits *limits,
			     struct rlmd_error *err)
{
	struct rlmd_amount limit;

	if (!read_limits(limits, &limit, err))
		return false;
	if (!account)
		return error_set(err, RLMD_ERROR_USAGE, "there is no account to limit");
	account->limit = limit;
	wake(account);
	return true;
}

bool rlmd_account_set_cover(struct rlmd_account *account, const struct rlmd_account_cover *given,
			    struct rlmd_error *err)
{
	struct rlmd_account_cover cover;

	if (!sized_take(&cover, sizeof cover, given, sizeof cover, "rlmd_account_cover", err))
		return false;
	if (!account ||
	    (given && (!cover.lacks || cover.amount.cost < 0 || cover.amount.tokens < 0)))
		return error_set(err, RLMD_ERROR_USAGE,
				 "a cover needs an account, `lacks`, and amounts that are not "
				 "negative");
	cover.size = given ? sizeof cover : 0;
	account->cover = cover;
	wake(account);
	return true;
}

void rlmd_account_free(struct rlmd_account *account)
{
	account_unref(account);
}

const char *rlmd_account_name(const struct rlmd_account *account)
{
	return account ? account->name : "";
}

struct rlmd_amount rlmd_account_remaining(const struct rlmd_account *account)
{
	return account ? account_remaining(account) : (struct rlmd_amount){0};
}

struct rlmd_charge *rlmd_account_reserve(struct rlmd_account *account, struct rlmd_amount most,
					 struct rlmd_error *err)
{
	const struct rlmd_account *who = NULL;
	struct rlmd_charge *charge;
	enum rlmd_stop reason;

	if (!account || most.cost < 0 || most.tokens < 0) {
		error_set(err, RLMD_ERROR_USAGE,
			  "what is reserved needs an account, and must not "
			  "be negative");
		return NULL;
	}
	reason = account_lacks(account, most, &who);
	if (account_tell(reason, who, err))
		return NULL;
	charge = xcalloc(1, sizeof *charge);
	*charge = (struct rlmd_charge){account_ref(account), most};
	account_hold(account, most);
	return charge;
}

static void end_charge(struct rlmd_charge *charge)
{
	account_unref(charge->account);
	free(charge);
}

void rlmd_charge_settle(struct rlmd_charge *charge, struct rlmd_amount actual)
{
	if (!charge)
		return;
	account_settle(charge->account, charge->held,
		       amount_beyond(actual, (struct rlmd_amount){0}));
	account_count_calls(charge->account, 1, false);
	end_charge(charge);
}

void rlmd_charge_drop(struct rlmd_charge *charge)
{
	if (!charge)
		return;
	account_release(charge->account, charge->held);
	end_charge(charge);
}

bool rlmd_account_save(const struct rlmd_account *account, struct rlmd_spending *ret,
		       struct rlmd_error *err)
{
	struct rlmd_spending spending;

	if (!account)
		return error_set(err, RLMD_ERROR_USAGE, "there is no account to save");
	spending = (struct rlmd_spending){
		.cost = account->spent.cost,
		.tokens = account->spent.tokens,
		.calls = account->calls,
		.reserved_cost = account->reserved.cost,
		.reserved_tokens = account->reserved.tokens,
		.overrun_cost = account->overrun.cost,
		.overrun_tokens = account->overrun.tokens,
		.estimated = account->estimated,
	};
	return sized_give(ret, &spending, sizeof spending, sizeof spending) ||
	       error_set(err, RLMD_ERROR_USAGE, "nothing to save an account in: set `size`");
}

static bool is_fresh(const struct rlmd_account *account)
{
	return !account->spent.cost && !account->spent.tokens && !account->reserved.cost &&
	       !account->reserved.tokens && !account->calls;
}

static bool is_possible(const struct rlmd_spending *saved)
{
	return saved->cost >= 0 && saved->tokens >= 0 && saved->calls >= 0 &&
	       saved->reserved_cost >= 0 && saved->reserved_tokens >= 0 &&
	       saved->overrun_cost >= 0 && saved->overrun_tokens >= 0;
}

bool rlmd_account_restore(struct rlmd_account *account, const struct rlmd_spending *given,
			  struct rlmd_error *err)
{
	struct rlmd_spending taken;
	const struct rlmd_spending *saved = &taken;

	if (!sized_take(&taken, sizeof taken, given, sizeof taken, "rlmd_spending", err))
		return false;
	if (!account || !given || !is_possible(saved))
		return error_set(err, RLMD_ERROR_USAGE,
				 "no account to restore, or nothing that can have been spent");
	if (!is_fresh(account))
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s cannot be restored: it has been used already", account->name);
	account->spent.cost = money_add(saved->cost, saved->reserved_cost);
	account->spent.tokens = money_add(saved->tokens, saved->reserved_tokens);
	account->overrun.cost = saved->overrun_cost;
	account->overrun.tokens = saved->overrun_tokens;
	account->calls = saved->calls;
	account->estimated = saved->estimated || saved->reserved_cost || saved->reserved_tokens;
	return true;
}

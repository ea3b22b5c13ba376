#include "budget/account.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/amount.h"
#include "base/error.h"
#include "base/text.h"

struct rlmd_charge {
	struct reservation reservation; /* its account is referenced */
};

static struct rlmd_account *next_payer(const struct rlmd_account *account)
{
	while (account->granted)
		account = account->above;
	return account->above;
}

struct rlmd_amount account_rest(const struct rlmd_account *account)
{
	return (struct rlmd_amount){
		amount_rest(account->limit.cost, account->spent.cost, account->reserved.cost),
		amount_rest(account->limit.tokens, account->spent.tokens, account->reserved.tokens),
	};
}

/* Reservations do not count as spent here. */
static struct rlmd_amount unspent_of(const struct rlmd_account *account)
{
	return (struct rlmd_amount){
		amount_rest(account->limit.cost, account->spent.cost, 0),
		amount_rest(account->limit.tokens, account->spent.tokens, 0),
	};
}

/* Accounts below an overdrawn one cannot spend the missing part of its grant. */
enum rlmd_stop account_overdraft(const struct rlmd_account *account)
{
	for (;; account = account->above) {
		if (amount_exceeds(account->limit.cost, account->spent.cost,
				   account->reserved.cost))
			return RLMD_STOP_MAX_COST;
		if (amount_exceeds(account->limit.tokens, account->spent.tokens,
				   account->reserved.tokens))
			return RLMD_STOP_MAX_TOKENS;
		if (!account->granted)
			return RLMD_STOP_NONE;
	}
}

static enum rlmd_stop blocks(const struct rlmd_account *account)
{
	struct rlmd_amount left = account_rest(account);
	enum rlmd_stop reason = account_overdraft(account);

	if (account->calls_in_flight) {
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
	for (; account; account = next_payer(account)) {
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
	struct rlmd_amount left = account_rest(account);
	enum rlmd_stop reason = account_overdraft(account);

	if (!reason && amount.cost > left.cost)
		reason = RLMD_STOP_MAX_COST;
	if (!reason && amount.tokens > left.tokens)
		reason = RLMD_STOP_MAX_TOKENS;
	return reason;
}

enum rlmd_stop account_lacks(const struct rlmd_account *account, struct rlmd_amount amount,
			     const struct rlmd_account **ret_who)
{
	for (; account; account = next_payer(account)) {
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
	if (reason && who && who->name)
		error_limit(err, reason, "%s (the limit of %s)", error_stop_words(reason),
			    who->name);
	else if (reason)
		error_limit(err, reason, "%s", error_stop_words(reason));
	return reason;
}

static void hold(struct rlmd_account *account, struct rlmd_amount amount)
{
	account->reserved = amount_add(account->reserved, amount);
	account->outstanding++;
}

/* Not below zero: a sum that had saturated was too small. */
static void release(struct rlmd_account *account, struct rlmd_amount held)
{
	account->reserved = amount_beyond(account->reserved, held);
	account->outstanding--;
}

void account_reserve(struct rlmd_account *account, struct reservation *reservation,
		     struct rlmd_amount most)
{
	assert(!reservation->account);
	*reservation = (struct reservation){.account = account, .most = most};
	for (; account; account = next_payer(account))
		hold(account, most);
}

/*
 * An account that was billed more than it had reserved may have outgrown its grant. Then the grant
 * grows with it, at once, so that its siblings cannot spend that again.
 */
void account_spend(struct rlmd_account *account, struct rlmd_amount amount)
{
	account->spent = amount_add(account->spent, amount);
	for (; account->granted; account = account->above) {
		struct rlmd_amount needed = amount_add(account->spent, account->reserved);
		struct rlmd_amount more = amount_beyond(needed, account->grant);

		account->grant = amount_add(account->grant, more);
		account->above->reserved = amount_add(account->above->reserved, more);
	}
}

void account_count_calls(struct rlmd_account *account, int64_t calls, bool estimated)
{
	for (; account; account = next_payer(account)) {
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
	needed = amount_add(amount_add(account->spent, account->in_flight), amount);
	beyond = amount_beyond(needed, cover->amount);
	if (!beyond.cost && !beyond.tokens)
		return true;
	cover->lacks(cover->owner, needed);
	return false;
}

struct rlmd_account *account_uncovered(struct rlmd_account *account, struct rlmd_amount amount)
{
	while (account && is_covered(account, amount))
		account = next_payer(account);
	return account;
}

void account_send(struct reservation *reservation)
{
	struct rlmd_account *account = reservation->account;

	reservation->sent = true;
	for (; account; account = next_payer(account)) {
		account->calls_in_flight++;
		account->in_flight = amount_add(account->in_flight, reservation->most);
		is_covered(account, reservation->most); /* so that the next one need not wait */
	}
}

/* The call has ended; those that wait for that try again. */
static void end_call(struct reservation reservation)
{
	struct rlmd_account *account = reservation.sent ? reservation.account : NULL;

	for (; account; account = next_payer(account)) {
		account->calls_in_flight--;
		account->in_flight = amount_beyond(account->in_flight, reservation.most);
		wake(account);
	}
}

static struct reservation take_reservation(struct reservation *reservation)
{
	const struct reservation taken = *reservation;

	*reservation = (struct reservation){0};
	for (struct rlmd_account *payer = taken.account; payer; payer = next_payer(payer))
		release(payer, taken.most);
	return taken;
}

void account_drop(struct reservation *reservation)
{
	end_call(take_reservation(reservation));
}

void account_settle(struct reservation *reservation, struct rlmd_amount actual)
{
	const struct reservation ended = take_reservation(reservation);
	struct rlmd_amount overrun;

	actual = amount_beyond(actual, (struct rlmd_amount){0});
	overrun = amount_beyond(actual, ended.most);
	for (struct rlmd_account *payer = ended.account; payer; payer = next_payer(payer))
		account_spend(payer, actual);
	for (struct rlmd_account *each = ended.account; each; each = each->above)
		each->overrun = amount_add(each->overrun, overrun);
	end_call(ended);
}

struct rlmd_account *account_awaited(struct rlmd_account *account, struct rlmd_amount amount)
{
	while (account && !lacks(account, amount))
		account = next_payer(account);
	return account && account->calls_in_flight ? account : NULL;
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

	for (; account; account = next_payer(account))
		least = amount_least(least, account_rest(account));
	return least;
}

struct rlmd_amount account_unspent(const struct rlmd_account *account)
{
	struct rlmd_amount least = {RLMD_UNLIMITED, RLMD_UNLIMITED};

	for (; account; account = next_payer(account))
		least = amount_least(least, unspent_of(account));
	return least;
}

void account_open(struct rlmd_account *account, struct rlmd_amount limit,
		  struct rlmd_account *above)
{
	*account = (struct rlmd_account){.limit = limit, .above = account_ref(above)};
	TAILQ_INIT(&account->waiters);
}

/* Nothing can be set aside out of what is unlimited: such a grant is empty. */
static int64_t grant_of(int64_t limit)
{
	return limit == RLMD_UNLIMITED ? 0 : limit;
}

void account_open_granted(struct rlmd_account *account, struct rlmd_amount limit,
			  struct rlmd_account *above)
{
	account_open(account, limit, NULL);
	account->above = above;
	account->granted = true;
	account->grant = (struct rlmd_amount){grant_of(limit.cost), grant_of(limit.tokens)};
	hold(above, account->grant);
}

void account_close(struct rlmd_account *account)
{
	assert(!account->outstanding);
	if (account->granted) {
		release(account->above, account->grant);
		account_spend(account->above, account->spent);
	} else {
		account_unref(account->above);
	}
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

	if (!abi_copy_in(&limits, sizeof limits, given, sizeof limits, "rlmd_account_limits", err))
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
	account_open(account, limit, above);
	account->name = xstrdup(name);
	account->references = 1;
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

	if (!abi_copy_in(&cover, sizeof cover, given, sizeof cover, "rlmd_account_cover", err))
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

void rlmd_account_unref(struct rlmd_account *account)
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
	account_reserve(account_ref(account), &charge->reservation, most);
	return charge;
}

void rlmd_charge_settle(struct rlmd_charge *charge, struct rlmd_amount actual)
{
	struct rlmd_account *account;

	if (!charge)
		return;
	account = charge->reservation.account;
	account_settle(&charge->reservation, actual);
	account_count_calls(account, 1, false);
	account_unref(account);
	free(charge);
}

void rlmd_charge_drop(struct rlmd_charge *charge)
{
	struct rlmd_account *account;

	if (!charge)
		return;
	account = charge->reservation.account;
	account_drop(&charge->reservation);
	account_unref(account);
	free(charge);
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
	return abi_copy_out(ret, &spending, sizeof spending, sizeof spending) ||
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

	if (!abi_copy_in(&taken, sizeof taken, given, sizeof taken, "rlmd_spending", err))
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

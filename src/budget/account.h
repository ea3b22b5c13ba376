/*
 * budget/account.h - accounts: limits on cost and tokens, with what was spent and reserved.
 *
 * An account stands below another one in one of two ways. Most share it: a reservation in the
 * account is one in the account above, too (rlmd/budget.h). A sub-run's is granted out of it: the
 * account above has reserved the whole grant, so that reservations below need not go up. The
 * payers of a call are the account that it is charged to and those above it, without those that
 * grants come from. Every function here whose name says nothing else is about all payers.
 *
 * NULL stands for no account everywhere: it limits nothing.
 */
#pragma once

#include <rlmd/budget.h>
#include <stddef.h>
#include <sys/queue.h>

struct rlmd_account {
	char *name; /* owned; NULL: it is a run's (budget/budget.h), which embeds it */
	struct rlmd_account *above; /* referenced, or lent where it is granted; NULL: none */
	bool granted;
	size_t references; /* its maker's, jobs', reservations', of accounts below */
	struct rlmd_amount limit, spent, reserved, overrun;
	struct rlmd_amount grant; /* of what `above` has reserved; for this one */
	size_t outstanding;       /* reservations and grants that have not ended */
	int64_t calls;
	bool estimated;
	size_t calls_in_flight;               /* they will give back of what is reserved */
	struct rlmd_amount in_flight;         /* of what is reserved, theirs */
	struct rlmd_account_cover cover;      /* size 0: none is needed */
	TAILQ_HEAD(, account_waiter) waiters; /* lent: for the end of these, in order */
};

/* One that its owner embeds: below `above`, or granted out of it, by as much as it has a limit. */
void account_open(struct rlmd_account *, struct rlmd_amount limit, struct rlmd_account *above);
void account_open_granted(struct rlmd_account *, struct rlmd_amount limit,
			  struct rlmd_account *above);
void account_close(
	struct rlmd_account *); /* nothing is outstanding: what it spent is spent above */

struct rlmd_account *account_ref(struct rlmd_account *);
void account_unref(struct rlmd_account *);

/* Of this account alone: what is left of its limit; whether it, or one that its grant comes from,
 * has spent and reserved more than its limit. */
struct rlmd_amount account_rest(const struct rlmd_account *);
enum rlmd_stop account_overdraft(const struct rlmd_account *);

/* The first payer that has nothing left; RLMD_STOP_NONE: none is so. A limit of nothing does not
 * count, for what is free may go on; nor does what is reserved while calls are in flight, for most
 * of it comes back. */
enum rlmd_stop account_block(const struct rlmd_account *, const struct rlmd_account **ret_who);

/* The first payer that has less than that left, or is overdrawn. */
enum rlmd_stop account_lacks(const struct rlmd_account *, struct rlmd_amount,
			     const struct rlmd_account **ret_who);

/* A reservation: embed it; zero is empty; every destructor drops it. */
struct reservation {
	struct rlmd_account *account; /* lent; NULL when empty */
	struct rlmd_amount most;
	bool sent; /* its call is in flight */
};

/* Reserves what none of the payers lacks. */
void account_reserve(struct rlmd_account *, struct reservation *, struct rlmd_amount most);

/* Replaces the reservation by what was billed. More than was reserved is still spent, and counted
 * as overrun; so what two reservations were for is settled with each for itself. While an account
 * has spent and reserved more than its limit, nothing is taken from it or below it. */
void account_settle(struct reservation *, struct rlmd_amount actual);
void account_drop(struct reservation *); /* idempotent */

void account_spend(struct rlmd_account *, struct rlmd_amount); /* in this one alone, and grants */
void account_count_calls(struct rlmd_account *, int64_t calls, bool estimated);

/* The first payer whose cover does not reach for a call that costs that at most, beside what is in
 * flight; it tells its host so. NULL: it may be sent. */
struct rlmd_account *account_uncovered(struct rlmd_account *, struct rlmd_amount);

/* The model call that this is for is in flight, until the reservation ends. */
void account_send(struct reservation *);

/* The first payer that has less than that left, if it may have more when calls in flight have
 * ended. NULL: each has as much, or there is nothing to wait for. */
struct rlmd_account *account_awaited(struct rlmd_account *, struct rlmd_amount);

/* A place in the line for money, or for a cover. Embed it; zero waits for nothing. Comes once, from
 * inside the end of a call or where limits or cover are set, and may only post. */
struct account_waiter {
	struct rlmd_account *account; /* lent; NULL: it does not wait */
	void (*fn)(void *owner);
	void *owner; /* lent */
	TAILQ_ENTRY(account_waiter) entry;
};

void account_wait(struct rlmd_account *, struct account_waiter *, void (*fn)(void *owner),
		  void *owner);
void account_wait_no_more(struct account_waiter *); /* idempotent */

struct rlmd_amount account_remaining(const struct rlmd_account *); /* NULL: RLMD_UNLIMITED */
struct rlmd_amount account_unspent(const struct rlmd_account *);   /* what is reserved is there */

/* A limit was reached: RLMD_ERROR_BUDGET, and whose it is; NULL: the job's own. Returns it. */
enum rlmd_stop account_tell(enum rlmd_stop, const struct rlmd_account *who, struct rlmd_error *);

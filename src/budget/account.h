/*
 * budget/account.h - the accounts of rlmd/budget.h, as those pay out of them who are inside.
 *
 * What they hold and settle they remember themselves (budget/budget.h). NULL stands for no account
 * everywhere: it limits nothing.
 */
#pragma once

#include <rlmd/budget.h>
#include <sys/queue.h>

struct rlmd_account *account_ref(struct rlmd_account *);
void account_unref(struct rlmd_account *);

/* The first account, upwards from this one, that has nothing left; RLMD_STOP_NONE: none is so. A
 * limit of nothing does not count, for what is free may go on; nor does what is reserved while
 * calls are in flight, for most of it comes back. */
enum rlmd_stop account_block(const struct rlmd_account *, const struct rlmd_account **ret_who);

/* The first one that has less than that left, or is overdrawn; likewise. */
enum rlmd_stop account_lacks(const struct rlmd_account *, struct rlmd_amount,
			     const struct rlmd_account **ret_who);

/* In this and all above. What was held is released by either of the other two. */
void account_hold(struct rlmd_account *, struct rlmd_amount);
void account_release(struct rlmd_account *, struct rlmd_amount held);
void account_settle(struct rlmd_account *, struct rlmd_amount held, struct rlmd_amount actual);
void account_count_calls(struct rlmd_account *, int64_t calls, bool estimated);

/* The first one, upwards, whose cover does not reach for a call that costs that at most, beside
 * what is in flight; it tells its host so. NULL: it may be sent. */
struct rlmd_account *account_uncovered(struct rlmd_account *, struct rlmd_amount);

/* A model call that pays out of it, and so out of all above, is in flight; each has to end, with
 * the same amount: the most that it may cost. */
void account_begin_call(struct rlmd_account *, struct rlmd_amount);
void account_end_call(struct rlmd_account *, struct rlmd_amount);

/* The first one that has less than that left, if it may have more when calls in flight have ended.
 * NULL: each has as much, or there is nothing to wait for. */
struct rlmd_account *account_awaited(struct rlmd_account *, struct rlmd_amount);

/* Who waits for that, or for a cover, in turn: embed it; zero waits for nothing. Comes once, from
 * inside account_end_call() or where limits or cover are set, and may only post. */
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

/*
 * batch/purse.h - who pays for the jobs of a batch, on all machines together.
 *
 * Of each tenant a purse has two funds (batch/fund.h), for the batch and for the day, and one more
 * for all jobs of the batch. Jobs pay out of all three.
 *
 *   job -> tenant in this batch -> tenant today -> this batch
 *
 * Limits live in the store. What is not limited here is so by what others have said, where `keeps`
 * says that they rule; otherwise it has no limit.
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct purse;
struct purse_tenant;
struct store;
struct store_result;
struct tenants;

struct purse_options {
	struct event_base *base; /* lent, as all of these */
	struct store *store;
	int64_t batch;
	const char *node;
	int64_t job_lease_ms;          /* money is held for twice that */
	struct rlmd_amount limit;      /* of all jobs of the batch; RLMD_UNLIMITED: none */
	const struct tenants *tenants; /* NULL: there are none */
	bool keeps; /* limits that are not said here stay as the store has them */
	/* A tenant's jobs may be begun, or not; NULL: anybody's. From the loop, or from inside of
	 * purse_leave(). */
	void (*changed)(void *owner, const char *tenant);
	/* The store does not do what it has to. */
	void (*failed)(void *owner, const struct store_result *);
	/* After purse_close(). From the loop. */
	void (*closed)(void *owner);
	void *owner;
};

struct purse *purse_new(const struct purse_options *);
void purse_free(struct purse *); /* after the jobs; NULL is fine */

/* Lent. */
struct purse_tenant *purse_get(struct purse *, const char *tenant);

enum purse_state {
	PURSE_READY, /* a job of it may be begun */
	PURSE_WAITS, /* `changed` comes */
	PURSE_EMPTY, /* none may */
};

/* Why none may be. */
struct purse_lack {
	int64_t again_ms; /* when to ask again, on clock_ms(); INT64_MAX: never, and then also: */
	char *why; /* whose limit it is and what can be done, for people; the caller frees it */
	bool told; /* it was so before, of this limit */
};

/* Whether a job may be begun; of PURSE_EMPTY also why not. */
enum purse_state purse_look(struct purse_tenant *, struct purse_lack *ret);

/* A job is begun, which pays out of this account, lent. It has ended: succeeded, or not. */
struct rlmd_account *purse_use(struct purse_tenant *);
void purse_leave(struct purse_tenant *, bool succeeded);

/* A job could not go on for this account's limit, which is none of its own. Where others used it,
 * fewer jobs will at once; where none did, and a second job finds the same, none is begun before
 * there is more. */
void purse_note_short(struct purse_tenant *, const char *account, enum rlmd_stop);

/* What an entry of a journal says that was billed, and at which leases that counts. */
enum { PURSE_FUNDS = 3 };
struct purse_bill {
	struct rlmd_amount amount;
	int64_t leases[PURSE_FUNDS]; /* 0: none */
};

/* It is on its way into the store, and is there, or is not. */
struct purse_bill purse_pay(struct purse_tenant *, struct rlmd_amount);
void purse_paid(struct purse_tenant *, const struct purse_bill *, bool kept);

/* All jobs have ended: what is left is given back, and `closed` comes. */
void purse_close(struct purse *);

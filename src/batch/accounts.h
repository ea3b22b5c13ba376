/*
 * batch/accounts.h - the accounts that jobs of a batch pay out of, on all machines together.
 *
 * A tenant has an account for the batch and one for the day, where these are limited; above them
 * stands the account of all jobs of the batch. This process has a lease of each (batch/lease.h).
 *
 *   job -> tenant in this batch -> tenant today -> this batch
 *
 * Limits live in the store. `keeps`: a limit that is not said here stays as others have set it;
 * otherwise there is none.
 */
#pragma once

#include <rlmd/budget.h>
#include <stdbool.h>
#include <stdint.h>

struct accounts;
struct event_base;
struct lease;
struct rlmd_limits;
struct store;
struct store_result;
struct tenants;

struct accounts_options {
	struct event_base *base; /* lent, as all of these */
	struct store *store;
	int64_t batch;
	const char *node;
	int64_t job_lease_ms;          /* a lease of money lasts for twice that */
	struct rlmd_amount limit;      /* of all jobs of the batch; RLMD_UNLIMITED: none */
	const struct rlmd_limits *job; /* of one job, if its line says nothing; NULL: nothing */
	const struct tenants *tenants; /* NULL: there are none */
	bool keeps;
	/* Whether a tenant's jobs may be begun has changed; NULL: those of any. From the loop. */
	void (*changed)(void *owner, const char *tenant);
	/* The store failed. */
	void (*failed)(void *owner, const struct store_result *);
	/* After accounts_close(). From the loop. */
	void (*closed)(void *owner);
	void *owner;
};

struct accounts *accounts_new(const struct accounts_options *);
void accounts_free(struct accounts *); /* after the jobs; NULL is fine */

/* The lowest account that a tenant's jobs pay out of; lent. */
struct lease *accounts_of(struct accounts *, const char *tenant);

/* The mean cost of a tenant's jobs that are over, by the store, or of all jobs (NULL): as much is
 * expected of the first ones here. */
void accounts_expect(struct accounts *, const char *tenant, struct rlmd_amount cost);

/* All jobs have ended: what is left is given back, and `closed` comes. */
void accounts_close(struct accounts *);

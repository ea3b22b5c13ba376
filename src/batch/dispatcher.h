/*
 * batch/dispatcher.h - so many jobs of a batch at once: claimed, carried out, and what became of
 * them written.
 *
 *   claim ----> journal ----> work ----> finish    succeeded, or failed for good
 *     ^                         |  `---> postpone  later, with another attempt
 *     |                         `------> breaker   its tenant waits for another key
 *     `---- renewed by a timer; one that is lost is stopped, and writes nothing
 *
 * Tenants take turns (batch/fair_queue.h), each with what it has of its own (batch/tenancies.h),
 * and pay (batch/accounts.h). The dispatcher ends when nothing is left that it could begin, now or
 * later, and gives back the money that is left.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/batch_job.h"

struct dispatcher;
struct scoreboard;
struct store;
struct tenancies;
struct tenants;

/* No job is begun any more once so many have failed for good, and of those that are over so many in
 * a hundred; those of earlier starts do not count. */
struct halt {
	int64_t failures; /* 0: never */
	int64_t percent;
};

struct dispatcher_options {
	struct batch_job_setting work;
	struct tenancies *tenancies; /* lent: what each tenant has */
	struct store *store;         /* lent */
	struct scoreboard *board;    /* lent: is told what happens */
	int64_t batch;
	const char *node;     /* lent: who works */
	int64_t max_jobs;     /* at once */
	int64_t max_attempts; /* of one job */
	int64_t lease_ms;     /* of a claim, renewed thrice as often */
	struct halt halt;
	int64_t reserve; /* bytes of memory: with less left no job is begun beside another one */
	/* Tells the user the reason for a delay; lent. */
	void (*tell)(void *owner, const char *text);
	void (*wrote)(void *owner);    /* a result is in the store */
	struct rlmd_amount limit;      /* of all jobs of the batch; RLMD_UNLIMITED: none */
	const struct tenants *tenants; /* lent: their limits; NULL: there are none */
	bool keeps_limits;             /* of the store, where these say nothing */
	/* Jobs stay pending for want of money: by whose limit, and what can be done. */
	void (*capped)(void *owner, const char *why);
	/* A key was refused, or what a tenant needs cannot be had: its jobs stay pending. */
	void (*refused)(void *owner, const char *tenant, const struct rlmd_error *why);
	/* It has come to that: so many failed, of so many. It ends as if it was drained. */
	void (*halted)(void *owner, int64_t failed, int64_t ended);
	/* Once, last. `err`, or NULL: the store failed. The dispatcher may be freed. */
	void (*end)(void *owner, const struct rlmd_error *err);
	void *owner;
};

/* Nothing but a `tell` is told before it returns. */
struct dispatcher *dispatcher_new(const struct dispatcher_options *);
void dispatcher_free(struct dispatcher *); /* nothing is told any more; NULL is fine */

/* Tells the board what it is not told as it happens: how jobs at work are getting on, whose turns
 * are stopped, and whether it drains. */
void dispatcher_show(const struct dispatcher *);

/* Others have written to the store: it looks there soon, if it has room for a job. */
void dispatcher_look(struct dispatcher *);

/* No job is begun any more; it ends with those that are. */
void dispatcher_drain(struct dispatcher *);

/* Those that are begun are stopped, too, and wait again as if they had not been. */
void dispatcher_stop(struct dispatcher *);

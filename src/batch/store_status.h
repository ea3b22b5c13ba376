/*
 * batch/store_status.h - how the batches of a store stand, as data.
 *
 *   {"batches": [{"batch": "jobs.jsonl", "jobs": 300, "pending": 120, "running": 8,
 *                 "succeeded": 170, "failed": 2, "cost": 0.21, "tokens": 12345,
 *                 "tenants": [{"tenant": "acme", "pending": ..., ...}],
 *                 "breakers": [{"tenant": "acme", "provider": "openai", "why": "...", "seconds":
 * 40}], "nodes": [{"host": "a", "pid": 4242, "jobs": 4, "leaseSeconds": 51}]}]}
 *
 * Nodes are those that have jobs of the batch, or hold money of it; when nothing is heard of one
 * for leaseSeconds, others take its jobs. Costs are US dollars.
 */
#pragma once

#include <jansson.h>
#include <rlmd/rlmd.h>

struct event_base;
struct store_status;

struct store_status_options {
	const char *store; /* lent, as is the next: an address as store_open() has it */
	const char *batch; /* its name; NULL: all */
	/* A warning for the user; lent. */
	void (*warn)(void *owner, const char *text);
	/* Once, last. The object is lent; NULL: `err` says why. It may be freed. */
	void (*done)(void *owner, json_t *status, const struct rlmd_error *err);
	void *owner;
};

/* RLMD_ERROR_USAGE where the store's address is none. Nothing is told before it returns. */
struct store_status *store_status_new(struct event_base *, const struct store_status_options *,
				      struct rlmd_error *);
void store_status_free(struct store_status *); /* nothing is told any more; NULL is fine */

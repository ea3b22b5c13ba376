/*
 * batch/store_status.h - how the batches of a store stand, as data.
 *
 *   {"batches": [{"batch": "jobs.jsonl", "jobs": 300, "pending": 120, "running": 8,
 *                 "succeeded": 170, "failed": 2, "cost": 0.21, "tokens": 12345,
 *                 "tenants": [{"tenant": "acme", "pending": ..., ...}],
 *                 "breakers": [{"tenant": "acme", "provider": "openai", "why": "...", "seconds":
 * 40}], "nodes": [{"host": "a", "pid": 4242, "jobs": 4, "leaseSeconds": 51}]}]}
 *
 * Nodes are those that have jobs or money of the batch; when nothing is heard of one for
 * leaseSeconds, others take its jobs. Costs are US dollars.
 */
#pragma once

#include <jansson.h>
#include <rlmd/rlmd.h>

struct event_base;
struct store_status;

/* Once. The object is lent; NULL: `err` says why. */
typedef void store_status_fn(void *owner, json_t *status, const struct rlmd_error *err);

/*
 * Of the batch of that name, or, where it is NULL, of all; both are lent until it is freed.
 * RLMD_ERROR_USAGE where the store's place is none. Nothing is told before it returns.
 */
struct store_status *store_status_new(struct event_base *, const char *store, const char *batch,
				      store_status_fn *, void *owner, struct rlmd_error *);
void store_status_free(struct store_status *); /* nothing is told any more; NULL is fine */

/*
 * batch/results_fetch.h - the results that a store has of a batch, into a file that may be gone on
 * with.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

struct event_base;
struct results_fetch;
struct summary;

struct results_fetch_options {
	const char *store; /* lent, as are the next two: an address as store_open() has it */
	const char *batch; /* its name; NULL: the only one that there is */
	const char *path;
	bool sort; /* by the order of the jobs */
	/* A warning for the user; lent. */
	void (*warn)(void *owner, const char *text);
	/* Once, last: all that there were are in the file; or `err`. It may be freed. */
	void (*end)(void *owner, const struct summary *, const struct rlmd_error *err);
	void *owner;
};

/* RLMD_ERROR_USAGE where the store's address is none. Nothing is told before it returns. */
struct results_fetch *results_fetch_new(struct event_base *, const struct results_fetch_options *,
					struct rlmd_error *);
void results_fetch_free(struct results_fetch *); /* nothing is told any more; NULL is fine */

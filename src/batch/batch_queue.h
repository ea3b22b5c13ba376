/*
 * batch/batch_queue.h - which batches of a store are worked on, one after the other, in the order
 * in which they were made.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

struct batch_queue;
struct event_base;
struct store;

struct batch_queue_options {
	struct store *store; /* lent */
	const char *name;    /* lent: of the only one; NULL: all that are not over */
	bool wait;           /* for those that are still to come: it never ends by itself */
	void (*next)(void *owner, int64_t batch);
	/* Once, last: nothing is left, or `err`: RLMD_ERROR_USAGE: there is none of that name. */
	void (*end)(void *owner, const struct rlmd_error *err);
	void *owner;
};

/* Nothing is told before it returns. */
struct batch_queue *batch_queue_new(struct event_base *, const struct batch_queue_options *);
void batch_queue_free(struct batch_queue *); /* nothing is told any more; NULL is fine */

/* The one that was told is done with. `left`: it has jobs that cannot be begun here now, and is
 * looked at again later, if the queue waits. */
void batch_queue_next(struct batch_queue *, bool left);

/* Others have written to the store. */
void batch_queue_hear(struct batch_queue *);

/* No other batch is told: it ends, as soon as the one that was told is done with. */
void batch_queue_drain(struct batch_queue *);

/*
 * engine/permits.h - what the runs and calls of a job wait for, and in which order.
 *
 * There are permits for model calls in flight and for runs whose worker may
 * compute: --max-parallel and --max-workers, which all jobs share in turns
 * (async/scheduler.h). A run computes while its worker starts, looks at the inputs,
 * runs a block or renders a variable; for that it has a permit. It has none while it
 * waits: for its model's next words, and from the first call of its block that is
 * open (a model call, a sub-run, a plan of both) until the last is answered. It
 * gets a permit again before it hears that last answer; an earlier one it hears at
 * once, for it waits all the same. So what computes in one thread of a block while
 * another waits goes without: it is limited as part of the block's own time.
 *
 * Whoever has a permit to compute waits for nobody: not for sub-runs, not for
 * models, not for a place in any line. It ends its block, or waits and gives the
 * permit back. So one permit serves a tree of any shape. Deeper runs come first,
 * and of one depth those that go on before those that begin.
 *
 * A run that only waits keeps its worker, so there is a third permit: to be alive
 * beside others of the job at the same depth. As many are as may compute and as may
 * have a call in flight; more would only stand in line. It is asked for before the
 * run begins and kept to its end. Whoever waits for it is a depth above, and the
 * deepest wait for none, so that they end, and with them those above. There are at
 * most 1 + (max_workers + max_parallel) * (max_depth - 1) workers of a task, and
 * (max_workers + max_parallel) * max_depth of a plan.
 */
#pragma once

#include <stdbool.h>

#include "async/scheduler.h"

enum { RUN_DEPTH_MAX = 64 }; /* no limit on depth may be set beyond it */

/* Embed it; zero is none. */
struct permits {
	struct flow *calls, *workers;         /* owned: ours, of what all jobs share */
	struct scheduler *alive;              /* owned */
	struct flow *alive_at[RUN_DEPTH_MAX]; /* owned; NULL: nobody asked yet */
	size_t alive_max;                     /* at each depth */
};

struct permits_options {
	struct flow *calls, *workers;  /* lent until permits_done(): what it is one part of */
	size_t all_calls, all_workers; /* how many there are at once, whose ever */
	unsigned weight;               /* beside the other parts */
	size_t max_calls;              /* its own, at once */
};

void permits_init(struct permits *, struct event_base *, const struct permits_options *);
void permits_done(struct permits *); /* all permits must be gone; idempotent */

/* For a model call, or for one `again` that had to wait for what others might give back. */
struct permit *permits_ask_call(struct permits *, bool again, permit_fn *, void *owner);

/* To compute, for a run at `depth` that begins, or that goes on. */
struct permit *permits_ask_worker(struct permits *, int depth, bool goes_on, permit_fn *,
				  void *owner);

/* To be alive, for a run that is not the root of a task. */
struct permit *permits_ask_alive(struct permits *, int depth, permit_fn *, void *owner);

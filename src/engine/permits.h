/*
 * engine/permits.h - what the runs and calls of a job wait for, and in which order.
 *
 * There are permits for model calls in flight, and for runs whose worker may
 * compute: --max-parallel and --max-workers, which all jobs share in turns
 * (async/scheduler.h). A run that waits for its sub-runs has no permit to compute,
 * and every other run has one or stands in line. So whoever has one waits for
 * nobody in line, and one permit serves a tree of any shape. Deeper runs come
 * first, and of one depth those that go on before those that begin: then of each
 * depth at most max_workers runs have begun and not ended, and there are at most
 * 1 + max_workers * (max_depth - 1) workers.
 */
#pragma once

#include <stdbool.h>

#include "async/scheduler.h"

/* Embed it; zero is none. */
struct permits {
	struct flow *calls, *workers; /* owned */
};

void permits_init(struct permits *, struct scheduler *calls, struct scheduler *workers);
void permits_done(struct permits *); /* all permits must be gone; idempotent */

/* For a model call, or for one `again` that had to wait for what others might give back. */
struct permit *permits_ask_call(struct permits *, bool again, permit_fn *, void *owner);

/* To compute, for a run at `depth` that begins, or that goes on. */
struct permit *permits_ask_worker(struct permits *, int depth, bool goes_on, permit_fn *,
				  void *owner);

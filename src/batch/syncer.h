/*
 * batch/syncer.h - what was written to a file brought to the disk, while the loop goes on.
 *
 * fdatasync() takes milliseconds, and seconds on a busy disk, so a thread of its own waits for it:
 * it does nothing else, and sees nothing but the descriptor. There is one at a time for each file:
 * all that is written while one is under way goes with the next.
 */
#pragma once

#include "base/error.h"

struct event_base;
struct syncer;

/* All that was written before syncer_start() is on the disk; or not, for `error` (of errno; 0). */
typedef void syncer_fn(void *owner, int error);

/* The descriptor is lent. NULL and RLMD_ERROR_INTERNAL: no thread can be had. */
struct syncer *syncer_new(struct event_base *, int fd, syncer_fn *, void *owner,
			  struct rlmd_error *);

/* Once before each callback. */
void syncer_start(struct syncer *);

/* Waits for one that is under way, which nothing can end. No callback follows. NULL is fine. */
void syncer_free(struct syncer *);

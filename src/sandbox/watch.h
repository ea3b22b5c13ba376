/*
 * sandbox/watch.h - looks at the workers' memory and threads from time to time.
 *
 * RLIMIT_DATA does not count what was made read-only after it was written, and
 * nothing but a cgroup counts them all together. So what passes its own limit is
 * killed, and the largest where all of them pass theirs. Threads are counted where
 * no rlimit does it: stacks may lie in the same few pages.
 */
#pragma once

#include "sandbox/process.h"

struct watch {
	struct process_list *list; /* lent */
	struct timer *timer;       /* owned */
};

void watch_init(struct watch *, struct process_list *);
void watch_done(struct watch *); /* also of one that is all zero */

/* Looks on until there is no process left. */
void watch_wake(struct watch *);

/*
 * sandbox/watch.h - looks at the workers' resident memory and threads from time to time.
 *
 * RLIMIT_DATA does not count what was made read-only after it was written, and
 * nothing but a cgroup counts them all together. So what passes its own limit is
 * killed, and the largest where all of them pass theirs. Threads are counted where
 * no rlimit does it: stacks may lie in the same few pages.
 */
#pragma once

#include "sandbox/process.h"
#include "sandbox/steps.h"

struct watch {
	struct process_list *list; /* lent */
	struct event *timer;       /* owned */
	int64_t shared;            /* bytes that a worker has from its template */
};

/* Whether it can look at all: the template's memory is what each worker begins with. */
bool watch_init(struct watch *, struct process_list *, pid_t template, struct steps *);
void watch_done(struct watch *); /* also of one that is all zero */

/* Looks on until there is no process left. */
void watch_wake(struct watch *);

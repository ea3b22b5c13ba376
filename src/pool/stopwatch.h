/*
 * pool/stopwatch.h - a block's own time.
 *
 * It runs only now and then. While it stands still the processor time of the
 * process counts in its place, for a block may compute in one thread and wait
 * in another, or be over and leave threads behind; that is added when it is
 * looked at.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/sandbox.h"

/* Embed it; zero stands still at zero. A process may be NULL: then nothing is known of it. */
struct stopwatch {
	int64_t spent_us; /* up to `since_us` */
	int64_t since_us; /* runs since then; 0: stands still */
	int64_t cpu_ms;   /* of the process when it was looked at last; 0: not known */
};

bool stopwatch_runs(const struct stopwatch *);
void stopwatch_go(struct stopwatch *, const struct process *);
void stopwatch_stop(struct stopwatch *, const struct process *);
void stopwatch_look(struct stopwatch *, const struct process *); /* only where it stands still */
/* Stands still at zero from now on; returns what stopwatch_ms() would. */
int64_t stopwatch_end(struct stopwatch *, const struct process *);
int64_t stopwatch_ms(const struct stopwatch *); /* up to its last stop or look */

/*
 * base/wait.h - waits for a descriptor, and no longer than anybody wants.
 *
 * A program whose user may end it by signals says here how it counts them. The library does
 * nothing of the kind: where nobody said so, nothing interrupts.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#define WAIT_FOREVER INT64_MAX

/* Signals that are counted by a handler of the program's. */
struct wait_interruptions {
	int (*count)(void); /* how many have come */
	sigset_t signals;   /* let in for the time of a wait only, so that none comes just before */
};

/* Lent, for good; before anything waits. */
void wait_heed(const struct wait_interruptions *);

/* How many have come; 0 where nobody counts. */
int wait_interrupted(void);

enum wait_end {
	WAIT_READY,
	WAIT_LATE,        /* the deadline came first */
	WAIT_INTERRUPTED, /* more interruptions have come than `known` */
	WAIT_FAILED,      /* errno says why */
};

/*
 * Until `fd` is ready for `events` of poll(2), or at its end. `deadline` is one of clock_ms(), or
 * WAIT_FOREVER; where it has passed already, what is ready is still told as ready.
 */
enum wait_end wait_for(int fd, short events, int64_t deadline, int known);

/*
 * engine/seat.h - a run's place among those whose workers may compute.
 *
 * There are max_workers seats. Whoever waits for its sub-runs has given its seat
 * up, and every other run holds one or stands in line. So whoever holds a seat
 * waits for nobody in line, and one seat serves a tree of any shape. Deeper
 * runs come first, and of one depth those that go on before those that begin:
 * then of each depth at most max_workers runs have begun and not ended, and
 * there are at most 1 + max_workers * (max_depth - 1) workers.
 */
#pragma once

#include <stdbool.h>

struct semaphore;
struct ticket;

typedef void seat_fn(void *owner);

/* Embed it; zero is none. It must stay where it is while it is in line. */
struct seat {
	struct ticket *ticket; /* owned; NULL: neither held nor in line */
	bool held;
	seat_fn *fn;
	void *owner; /* lent: fn's */
};

/* Gets in line for a run at `depth` that begins, or that goes on. `fn` is called from the loop,
 * once, when the seat is held. */
void seat_ask(struct seat *, struct semaphore *seats, int depth, bool goes_on, seat_fn *,
	      void *owner);

/* A held seat changes hands; `from` has none after it. */
struct seat seat_take(struct seat *from);

void seat_leave(struct seat *); /* gives it back, or leaves the line; idempotent */

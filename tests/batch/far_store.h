/*
 * far_store.h - stores that are far away, on a clock that stands still, for tests.
 *
 * What a store is asked for waits here until somebody carries it there, and its answer until
 * somebody delivers that: a machine can be cut off in either direction, for as long as a test
 * likes, and nothing depends on how fast this machine is. All clocks are the test's, the store's
 * too. The program is linked with the `--wrap`s of meson.build.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct far;

/* The clock of everybody, in milliseconds; only the test moves it. */
extern int64_t far_clock_ms;

/* PostgreSQL's clock is this one, too, as long as its schema stands. */
void far_take_clock(void);

/* That of the store which was opened last. Lent: it goes with the store. */
struct far *far_last(void);

/* Carries one question there, where it is answered. False: there was none. */
bool far_carry(struct far *);

/* Delivers one answer: its callback comes from inside. False: there was none. */
bool far_deliver(struct far *);

/* The connection broke: what is answered and not delivered is asked again, in its order. */
void far_lose(struct far *);

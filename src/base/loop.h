/*
 * base/loop.h - an event loop that nobody can keep from looking up.
 *
 * After a few callbacks, or a few milliseconds, the loop asks the kernel what else
 * is ready, also where each callback makes the next one due: what is posted takes
 * its turn behind what others wait for. What was made urgent comes before all
 * else that is due then. A callback still has to be short: nothing interrupts it.
 */
#pragma once

struct event;
struct event_base;

/* Owned by the caller: event_base_free(); NULL where the system gives none. */
struct event_base *loop_new(void);

/* For signals, limits of time, and whatever else ends what others do. Before it is added;
 * on a loop of another make it comes first among its priorities. */
void loop_make_urgent(struct event *);

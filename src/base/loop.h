/*
 * base/loop.h - an event loop that nobody can keep from looking up.
 *
 * After a few milliseconds, or some hundred callbacks, the loop asks the kernel what else
 * is ready, also where each callback makes the next one due: what is posted takes
 * its turn behind what others wait for. What was made urgent comes before all
 * else that is due then. A callback still has to be short: nothing interrupts it.
 */
#pragma once

struct event;
struct event_base;

/* Owned by the caller: event_base_free(); NULL where the system gives none. */
struct event_base *loop_new(void);

/*
 * Makes an event due at the loop's next turn, however often it is said before. Its callback gets
 * EV_TIMEOUT; what time it was to wait for is forgotten. What is posted stands in one line, in the
 * order in which it came, which libevent's heap does not keep among equal times.
 * Not event_active(): on a loop of another make, which may be the host's, events that make each
 * other active keep it from ever looking up.
 */
void loop_post(struct event *);

/* For signals, limits of time, and whatever else ends what others do. Before it is added;
 * on a loop of another make it comes first among its priorities. */
void loop_make_urgent(struct event *);

/*
 * base/loop.h - an event loop that nobody can keep from looking up.
 *
 * After a few milliseconds, or some hundred callbacks, the loop asks the kernel what else
 * is ready, also where each callback makes the next one due: what is posted takes
 * its turn behind what others wait for. Urgent events come before all others that are due then. A
 * callback still has to be short: nothing interrupts it.
 */
#pragma once

#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Owned by the caller: event_base_free(); NULL where the system gives none. */
struct event_base *loop_new(void);

/* event_new(), whose memory is there, or the program ends. Owned by the caller: event_free(). One
 * that waits for no descriptor is a timer (base/timer.h). */
struct event *loop_event(struct event_base *, evutil_socket_t fd, short what, event_callback_fn fn,
			 void *owner);

/* event_add(), or the program ends: what waits for an event that is not there stands still. */
void loop_add(struct event *, const struct timeval *time);

/*
 * Makes an event due at the loop's next turn, however often it is said before. Its callback gets
 * EV_TIMEOUT; what time it was to wait for is forgotten. Posted callbacks stand in one line, in the
 * order in which they came, which libevent's heap does not keep among equal times. Not
 * event_active(): on a loop of another make, which may be the host's, events that make each other
 * active keep it from ever looking up.
 */
void loop_post(struct event *);

/* For signals, limits of time, and whatever else ends what others do. Before it is added;
 * on a loop of another make it comes first among its priorities. */
void loop_make_urgent(struct event *);

/* The descriptor by which the kernel tells that the loop, which waits for `known` to be readable,
 * has something to do; epoll(7). Lent. -1: it has none, or /proc is not there to find it. */
int loop_fd(int known);

/* Milliseconds until the loop has something to do by the clock; 0: now; -1: never. */
int64_t loop_next_ms(struct event_base *);

/* Runs `work` beside the loop, in a thread with all signals blocked, which are the loop's; whoever
 * starts it joins or detaches it. RLMD_ERROR_INTERNAL where the system has no room for one more. */
bool loop_start_thread(pthread_t *ret, void *(*work)(void *), void *owner, struct rlmd_error *);

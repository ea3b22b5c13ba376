/*
 * base/timer.h - a callback of the loop's: in its next turn, or after some time.
 *
 * Floors that wait for time to pass do it here, so that tests can let it pass as they like.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct timer;

typedef void timer_fn(void *owner);

/* One that is not due. Its callback may free it. */
struct timer *timer_new(struct event_base *, timer_fn *, void *owner);
void timer_free(struct timer *); /* no callback follows; NULL is fine */

/* Makes it due once, in so many milliseconds or in the loop's next turn (loop_post()); what was
 * said before is forgotten. */
void timer_start(struct timer *, int64_t ms);
void timer_post(struct timer *);
void timer_stop(struct timer *); /* NULL is fine */
bool timer_waits(const struct timer *);
struct event_base *timer_base(const struct timer *); /* its loop; lent */

/* As loop_make_urgent(). */
void timer_make_urgent(struct timer *);

/* One that is urgent, and due in so many milliseconds. */
struct timer *timer_after(struct event_base *, int64_t ms, timer_fn *, void *owner);

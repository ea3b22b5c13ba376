/*
 * base/timer.h - a callback after some time, once.
 *
 * The one place where this floor waits for time to pass, so that tests can let
 * it pass as they like.
 */
#pragma once

#include <stdint.h>

struct event_base;
struct timer;

typedef void timer_fn(void *owner);

/* The callback comes from the loop; the timer is still to be freed then. */
struct timer *timer_new(struct event_base *, int64_t ms, timer_fn *, void *owner);
void timer_free(struct timer *); /* NULL is fine */

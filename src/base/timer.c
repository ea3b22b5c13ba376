#include "base/timer.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"

struct timer {
	struct event event; /* inside, for a call makes several timers */
	timer_fn *fn;
	void *owner; /* lent: fn's */
};

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct timer *timer = arg;

	(void)fd;
	(void)what;
	timer->fn(timer->owner);
}

struct timer *timer_new(struct event_base *base, timer_fn *fn, void *owner)
{
	struct timer *timer = xcalloc(1, sizeof *timer);

	timer->fn = fn;
	timer->owner = owner;
	if (event_assign(&timer->event, base, -1, 0, on_time, timer))
		alloc_failed();
	return timer;
}

void timer_free(struct timer *timer)
{
	if (!timer)
		return;
	event_del(&timer->event);
	event_debug_unassign(&timer->event);
	free(timer);
}

void timer_start(struct timer *timer, int64_t ms)
{
	struct timeval delay = clock_timeval(ms);

	loop_add(&timer->event, &delay);
}

void timer_post(struct timer *timer)
{
	loop_post(&timer->event);
}

void timer_stop(struct timer *timer)
{
	if (timer)
		event_del(&timer->event);
}

bool timer_waits(const struct timer *timer)
{
	return event_pending(&timer->event, EV_TIMEOUT, NULL);
}

struct event_base *timer_base(const struct timer *timer)
{
	return event_get_base(&timer->event);
}

void timer_make_urgent(struct timer *timer)
{
	loop_make_urgent(&timer->event);
}

struct timer *timer_after(struct event_base *base, int64_t ms, timer_fn *fn, void *owner)
{
	struct timer *timer = timer_new(base, fn, owner);

	timer_make_urgent(timer);
	timer_start(timer, ms);
	return timer;
}

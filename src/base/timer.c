#include "base/timer.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"

struct timer {
	struct event *event; /* owned */
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

struct timer *timer_new(struct event_base *base, int64_t ms, timer_fn *fn, void *owner)
{
	struct timer *timer = xcalloc(1, sizeof *timer);
	struct timeval delay = clock_timeval(ms);

	*timer = (struct timer){loop_timer(base, on_time, timer), fn, owner};
	loop_make_urgent(timer->event);
	loop_add(timer->event, &delay);
	return timer;
}

void timer_free(struct timer *timer)
{
	if (!timer)
		return;
	event_free(timer->event);
	free(timer);
}

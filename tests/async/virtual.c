#include "virtual.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/timer.h"

struct timer {
	int64_t at;
	timer_fn *fn;
	void *owner;
	bool fired;
	TAILQ_ENTRY(timer) entry;
};

int64_t virtual_now;

static TAILQ_HEAD(, timer) timers = TAILQ_HEAD_INITIALIZER(
	timers); /* those that will fire, by time */

int64_t clock_ms(void)
{
	return virtual_now;
}

struct timer *timer_after(struct event_base *base, int64_t ms, timer_fn *fn, void *owner)
{
	struct timer *timer = xcalloc(1, sizeof *timer), *later;

	(void)base;
	*timer = (struct timer){.at = virtual_now + ms, .fn = fn, .owner = owner};
	TAILQ_FOREACH (later, &timers, entry)
		if (later->at > timer->at)
			break;
	if (later)
		TAILQ_INSERT_BEFORE(later, timer, entry);
	else
		TAILQ_INSERT_TAIL(&timers, timer, entry);
	return timer;
}

void timer_free(struct timer *timer)
{
	if (timer && !timer->fired)
		TAILQ_REMOVE(&timers, timer, entry);
	free(timer);
}

bool virtual_step(struct event_base *base)
{
	struct timer *timer;

	while (event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE | EVENT_BASE_COUNT_ADDED))
		event_base_loop(base, EVLOOP_NONBLOCK);
	timer = TAILQ_FIRST(&timers);
	if (!timer)
		return false;
	TAILQ_REMOVE(&timers, timer, entry);
	timer->fired = true;
	virtual_now = timer->at;
	timer->fn(timer->owner);
	return true;
}

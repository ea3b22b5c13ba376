#include "bench/loop_held.h"

#include <event2/event.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/loop.h"

struct loop_held {
	struct event *turn; /* owned: due in each turn */
	double last, most;  /* milliseconds */
};

static double thread_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void look(struct loop_held *held)
{
	double now = thread_ms();

	if (now - held->last > held->most)
		held->most = now - held->last;
	held->last = now;
}

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct loop_held *held = owner;

	(void)fd, (void)what;
	look(held);
	loop_post(held->turn);
}

struct loop_held *loop_held_begin(struct event_base *base)
{
	struct loop_held *held = xcalloc(1, sizeof *held);

	held->turn = evtimer_new(base, on_turn, held);
	held->last = thread_ms();
	loop_post(held->turn);
	return held;
}

double loop_held_end(struct loop_held *held)
{
	double most;

	look(held);
	most = held->most;
	event_free(held->turn);
	free(held);
	return most;
}

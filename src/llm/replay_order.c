#include "llm/replay_order.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"

enum { PATIENCE_MS = 500 }; /* for one that is missing */

struct replay_order {
	TAILQ_HEAD(, replay_turn) turns; /* lent, by their numbers */
	int64_t next;                    /* the number that comes next */
	struct event *due;               /* owned: the first one's turn is now */
	struct event *missing;           /* owned: the next one does not come */
};

/* The first waits for its turn, or for one that is missing. */
static void look(struct replay_order *order)
{
	const struct replay_turn *first = TAILQ_FIRST(&order->turns);
	struct timeval patience = clock_timeval(PATIENCE_MS);

	event_del(order->missing);
	if (!first)
		return;
	if (first->number <= order->next)
		loop_post(order->due);
	else
		event_add(order->missing, &patience);
}

/* C3: it has left when it hears of it, and the next one's turn is another one of the loop. */
static void on_due(evutil_socket_t fd, short what, void *owner)
{
	struct replay_order *order = owner;
	struct replay_turn *first = TAILQ_FIRST(&order->turns);

	(void)fd;
	(void)what;
	if (!first || first->number > order->next)
		return;
	order->next = first->number == order->next ? order->next + 1 : order->next;
	replay_order_leave(first);
	first->come(first->owner);
}

static void on_missing(evutil_socket_t fd, short what, void *owner)
{
	struct replay_order *order = owner;

	(void)fd;
	(void)what;
	order->next = TAILQ_FIRST(&order->turns)->number;
	look(order);
}

struct replay_order *replay_order_new(struct event_base *base)
{
	struct replay_order *order = xcalloc(1, sizeof *order);

	TAILQ_INIT(&order->turns);
	order->due = event_new(base, -1, 0, on_due, order);
	order->missing = evtimer_new(base, on_missing, order);
	return order;
}

void replay_order_free(struct replay_order *order)
{
	if (!order)
		return;
	event_free(order->due);
	event_free(order->missing);
	free(order);
}

void replay_order_wait(struct replay_order *order, struct replay_turn *turn)
{
	struct replay_turn *other;

	turn->order = order;
	TAILQ_FOREACH (other, &order->turns, entry)
		if (other->number > turn->number)
			break;
	if (other)
		TAILQ_INSERT_BEFORE(other, turn, entry);
	else
		TAILQ_INSERT_TAIL(&order->turns, turn, entry);
	look(order);
}

void replay_order_leave(struct replay_turn *turn)
{
	struct replay_order *order = turn->order;

	if (!order)
		return;
	turn->order = NULL;
	TAILQ_REMOVE(&order->turns, turn, entry);
	look(order);
}

#include "engine/seat.h"

#include <assert.h>

#include "async/semaphore.h"

static void on_ticket(void *owner)
{
	struct seat *seat = owner;

	seat->held = true;
	seat->fn(seat->owner);
}

void seat_ask(struct seat *seat, struct semaphore *seats, int depth, bool goes_on, seat_fn *fn,
	      void *owner)
{
	assert(!seat->ticket);
	seat->fn = fn;
	seat->owner = owner;
	seat->ticket = ticket_new(seats, 2 * depth + goes_on, on_ticket, seat);
}

struct seat seat_take(struct seat *from)
{
	struct seat taken = *from;

	assert(from->held);
	*from = (struct seat){0};
	return taken;
}

void seat_leave(struct seat *seat)
{
	ticket_free(seat->ticket);
	*seat = (struct seat){0};
}

/*
 * One event stands for "somebody may start": it is made active whenever a slot
 * and a waiter may have come together, and each time it runs it starts one
 * waiter, as the last thing that it does. So a callback may free any ticket,
 * resize the semaphore or free it, and nothing here ever recurses.
 */
#include "async/semaphore.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

struct ticket {
	struct semaphore *semaphore; /* lent */
	int priority;
	bool held;       /* has a slot; else it is in line */
	uint64_t number; /* the order in which they came */
	size_t place;    /* in semaphore->line while it waits */
	ticket_fn *fn;
	void *owner; /* lent: fn's */
};

struct semaphore {
	struct event *start; /* owned: active when somebody may start */
	size_t slots, held, waiting, room;
	uint64_t numbers;     /* given out so far */
	struct ticket **line; /* owned, its tickets lent: a binary heap, the next to start first */
};

static void start_more(struct semaphore *semaphore)
{
	if (semaphore->held < semaphore->slots && semaphore->waiting)
		event_active(semaphore->start, 0, 0);
}

static bool before(const struct ticket *a, const struct ticket *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->number < b->number;
}

static void put(struct ticket **line, size_t place, struct ticket *ticket)
{
	line[place] = ticket;
	ticket->place = place;
}

static void rise(struct ticket **line, size_t place, struct ticket *ticket)
{
	while (place && before(ticket, line[(place - 1) / 2])) {
		put(line, place, line[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(line, place, ticket);
}

static void sink(struct ticket **line, size_t count, size_t place, struct ticket *ticket)
{
	size_t child;

	while ((child = 2 * place + 1) < count) {
		if (child + 1 < count && before(line[child + 1], line[child]))
			child++;
		if (!before(line[child], ticket))
			break;
		put(line, place, line[child]);
		place = child;
	}
	put(line, place, ticket);
}

static void join_line(struct ticket *ticket)
{
	struct semaphore *semaphore = ticket->semaphore;

	if (semaphore->waiting == semaphore->room) {
		semaphore->room = semaphore->room ? 2 * semaphore->room : 16;
		semaphore->line = xreallocarray(semaphore->line, semaphore->room,
						sizeof *semaphore->line);
	}
	rise(semaphore->line, semaphore->waiting++, ticket);
}

static void leave_line(struct ticket *ticket)
{
	struct semaphore *semaphore = ticket->semaphore;
	struct ticket *last = semaphore->line[--semaphore->waiting];
	size_t place = ticket->place;

	if (last == ticket)
		return;
	if (place && before(last, semaphore->line[(place - 1) / 2]))
		rise(semaphore->line, place, last);
	else
		sink(semaphore->line, semaphore->waiting, place, last);
}

static void on_start(evutil_socket_t fd, short what, void *arg)
{
	struct semaphore *semaphore = arg;
	struct ticket *ticket;

	(void)fd;
	(void)what;
	if (!semaphore->waiting || semaphore->held >= semaphore->slots)
		return;
	ticket = semaphore->line[0];
	leave_line(ticket);
	ticket->held = true;
	semaphore->held++;
	start_more(semaphore);
	ticket->fn(ticket->owner);
}

struct semaphore *semaphore_new(struct event_base *base, size_t slots)
{
	struct semaphore *semaphore = xcalloc(1, sizeof *semaphore);

	semaphore->slots = slots;
	semaphore->start = event_new(base, -1, 0, on_start, semaphore);
	return semaphore;
}

void semaphore_free(struct semaphore *semaphore)
{
	if (!semaphore)
		return;
	assert(!semaphore->held && !semaphore->waiting);
	event_free(semaphore->start);
	free(semaphore->line);
	free(semaphore);
}

void semaphore_resize(struct semaphore *semaphore, size_t slots)
{
	semaphore->slots = slots;
	start_more(semaphore);
}

struct ticket *ticket_new(struct semaphore *semaphore, int priority, ticket_fn *fn, void *owner)
{
	struct ticket *ticket = xcalloc(1, sizeof *ticket);

	*ticket = (struct ticket){
		.semaphore = semaphore,
		.priority = priority,
		.number = semaphore->numbers++,
		.fn = fn,
		.owner = owner,
	};
	join_line(ticket);
	start_more(semaphore);
	return ticket;
}

void ticket_return(struct ticket *ticket)
{
	struct semaphore *semaphore = ticket->semaphore;

	assert(ticket->held);
	ticket->held = false;
	semaphore->held--;
	join_line(ticket);
	start_more(semaphore);
}

void ticket_free(struct ticket *ticket)
{
	struct semaphore *semaphore;

	if (!ticket)
		return;
	semaphore = ticket->semaphore;
	if (ticket->held)
		semaphore->held--;
	else
		leave_line(ticket);
	free(ticket);
	start_more(semaphore);
}

size_t semaphore_held(const struct semaphore *semaphore)
{
	return semaphore->held;
}

size_t semaphore_waiting(const struct semaphore *semaphore)
{
	return semaphore->waiting;
}

/*
 * One event stands for "somebody may start": it is made active whenever a slot
 * and a waiter may have come together, and each time it runs it starts one
 * waiter, as the last thing that it does. So a callback may free any ticket,
 * resize the semaphore or free it, and nothing here ever recurses.
 */
#include "async/semaphore.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"

struct ticket {
	struct semaphore *semaphore; /* lent */
	int priority;
	bool held; /* has a slot; else it is in line */
	ticket_fn *fn;
	void *owner;               /* lent: fn's */
	TAILQ_ENTRY(ticket) entry; /* in semaphore->line while it waits */
};

struct semaphore {
	struct event *start; /* owned: active when somebody may start */
	size_t slots, held, waiting;
	TAILQ_HEAD(line, ticket) line; /* lent tickets, the next to start first */
};

static void start_more(struct semaphore *semaphore)
{
	if (semaphore->held < semaphore->slots && semaphore->waiting)
		event_active(semaphore->start, 0, 0);
}

static void leave_line(struct ticket *ticket)
{
	TAILQ_REMOVE(&ticket->semaphore->line, ticket, entry);
	ticket->semaphore->waiting--;
}

static void on_start(evutil_socket_t fd, short what, void *arg)
{
	struct semaphore *semaphore = arg;
	struct ticket *ticket = TAILQ_FIRST(&semaphore->line);

	(void)fd;
	(void)what;
	if (!ticket || semaphore->held >= semaphore->slots)
		return;
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
	TAILQ_INIT(&semaphore->line);
	return semaphore;
}

void semaphore_free(struct semaphore *semaphore)
{
	if (!semaphore)
		return;
	assert(!semaphore->held && !semaphore->waiting);
	event_free(semaphore->start);
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
	struct ticket *before = TAILQ_LAST(&semaphore->line, line);

	*ticket = (struct ticket){semaphore, priority, false, fn, owner, {0}};
	while (before && before->priority < priority)
		before = TAILQ_PREV(before, line, entry);
	if (before)
		TAILQ_INSERT_AFTER(&semaphore->line, before, ticket, entry);
	else
		TAILQ_INSERT_HEAD(&semaphore->line, ticket, entry);
	semaphore->waiting++;
	start_more(semaphore);
	return ticket;
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

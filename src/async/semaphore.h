/*
 * async/semaphore.h - so many at once, the rest in line.
 *
 * A counter of slots in the event loop (ASY-5): those who wait start by
 * priority, then in the order in which they came.
 */
#pragma once

#include <event2/event.h>
#include <stddef.h>

struct semaphore;
struct ticket;

typedef void ticket_fn(void *owner); /* a slot is yours until ticket_free() */

struct semaphore *semaphore_new(struct event_base *, size_t slots);
void semaphore_free(struct semaphore *); /* all tickets must be gone (asserted); NULL is fine */
void semaphore_resize(struct semaphore *, size_t slots); /* running ones are let finish */

/* Waits for a slot; the callback comes from the loop, once, never before this returns. */
struct ticket *ticket_new(struct semaphore *, int priority, ticket_fn *, void *owner);

/* Gives its slot back and waits for another one, where it stood in line; the callback comes again.
 */
void ticket_return(struct ticket *);

/* Leaves the line, or gives the slot back; NULL is fine. */
void ticket_free(struct ticket *);

size_t semaphore_held(const struct semaphore *);
size_t semaphore_waiting(const struct semaphore *);

/*
 * llm/replay_order.h - answers of a recording come in the order in which they had come.
 *
 * Which of two calls ends first may decide what happens next: who wins a race, what is
 * cancelled. A recording numbers its answers as they come, and a replay tells them by these
 * numbers, at once as a rule. Where one is missing that should be next, for the replay is
 * asked something else than the recording was, the others wait for it a moment and no longer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct event_base;
struct replay_order;

/* An answer that waits for its turn; embed it. Zero waits for nothing. */
struct replay_turn {
	struct replay_order *order; /* lent; NULL: it does not wait */
	int64_t number;
	void (*come)(void *owner); /* its turn is now; from the loop */
	void *owner;               /* lent */
	TAILQ_ENTRY(replay_turn) entry;
};

struct replay_order *replay_order_new(struct event_base *);
void replay_order_free(struct replay_order *); /* nobody may wait; NULL is fine */

/* `number`, `come` and `owner` are set. Never comes before this returns. */
void replay_order_wait(struct replay_order *, struct replay_turn *);
void replay_order_leave(
	struct replay_turn *); /* it does not come; one that does not wait is fine */

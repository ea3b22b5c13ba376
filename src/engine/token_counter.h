/*
 * engine/token_counter.h - what messages are made of that nobody has counted yet, in steps.
 *
 * Most texts are counted while they are written, or while they come from a worker. A text that a
 * host, or code, hands in as a whole would have to be counted when its tokens are asked for: a
 * prompt of 100 MB for a quarter of a second, in which nobody else has a turn.
 */
#pragma once

#include <stddef.h>

#include "llm/request.h"

struct event_base;
struct token_counter;

typedef void token_counter_done_fn(void *owner);

/*
 * Gives a scan to each of the messages that has none; they and their texts are lent until
 * token_counter_free(), and so are the scans. The callback comes once, not before this returns.
 * NULL, and no callback, where there is so little to count that whoever asks for it may do it at
 * once.
 */
struct token_counter *token_counter_start(struct event_base *, struct llm_message *messages,
					  size_t count, token_counter_done_fn *, void *owner);
void token_counter_free(struct token_counter *); /* cancels; NULL is fine */

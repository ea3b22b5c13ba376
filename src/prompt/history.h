/*
 * prompt/history.h - what a run may forget of its conversation, and what is said instead.
 *
 * A conversation that has outgrown half of the model's window is cut down to a
 * quarter of it, so that this is rare and prompt caches hit again afterwards.
 * The system prompt, the first turn and the last ones stay as they are; all
 * between is replaced by a summary of what it was. No model is asked for it: each turn leaves a few
 * lines while it happens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "pool/worker.h"
#include "prompt/conversation.h"

struct evbuffer;
struct prompt_set;

struct history {
	size_t head;                      /* messages before the first response */
	const struct prompt_set *prompts; /* lent: has the summary's words */
	int64_t window;                   /* of the model, in tokens: a prompt and its answer */
	int64_t estimate;                 /* of the last request, in tokens */
	struct token_counts counts;       /* what that was made of */
	int64_t frames;                   /* tokens that its messages took beside their texts */
	struct token_estimator estimator;
	struct evbuffer **turns; /* owned, each too: what happened in the turns answered so far */
	size_t count;
	size_t taken; /* turns, from the first on, that only the summary still knows */
};

void history_init(struct history *, const struct prompt_set *, const char *model, int64_t window);
void history_done(struct history *);

/* The conversation as it is stands before the first turn, and stays. */
void history_begin(struct history *, const struct conversation *);

/* The model has answered a turn; then what came of it. */
void history_add_turn(struct history *);
void history_add_block(struct history *, int64_t number, struct rlmd_text code,
		       const struct worker_block *);
void history_add_note(struct history *, struct rlmd_text);

/* The estimated tokens of the conversation; then the estimate that was measured last. */
int64_t history_measure(struct history *, const struct conversation *);
void history_learn(struct history *, int64_t billed);

/* At most so many tokens of what happened since the last turn are told: the texts' head and tail.
 */
void history_clip(const struct history *, struct rlmd_text observations, struct evbuffer *out);

/*
 * Cuts the conversation down if it has outgrown its share of the window. Its last message is that
 * of the turn that is asked for next. True: something was taken out of it.
 */
bool history_compact(struct history *, struct conversation *);

/* Takes out more of the oldest turns, whatever the window, for a budget that does not afford all of
 * the conversation. False: there is only the last one, and what always stays. */
bool history_forget(struct history *, struct conversation *);

/* The provider refused what was measured last as too long: so the window is smaller. */
void history_shrink(struct history *);

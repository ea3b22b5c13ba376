/*
 * engine/conversation.h - what a run and its model have said, append-only.
 *
 * Nothing said is ever changed, so that each request begins with the bytes of
 * the one before and the provider's prompt cache hits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "llm/llm.h"

struct conversation {
	struct llm_message *messages; /* owned, their texts too */
	size_t count, room;
};

/* Copies both; `timeless` is llm_message's, or empty. */
void conversation_add(struct conversation *, enum llm_role, struct text, struct text timeless);
void conversation_done(struct conversation *);

/*
 * prompt/conversation.h - what a run and its model have said.
 *
 * It is only added to, so that each request begins with the bytes of the one
 * before and the provider's prompt cache hits; but for the rare case that it
 * outgrows the model's window (prompt/history.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "llm/request.h"

struct conversation {
	struct llm_message *messages; /* owned, their texts too */
	size_t count;
};

/* Copies both; `timeless` is llm_message's, or empty. The characters of the message are counted
 * here, once: it is asked for with every later request. */
void conversation_add(struct conversation *, enum llm_role, struct rlmd_text,
		      struct rlmd_text timeless);

/* Of what tells no time in a message, so that a recording replays as it was made; as kept in it, or
 * made now. */
struct text_scan conversation_scan(const struct llm_message *);

/* The text that is counted: the one without words that depend on the time. */
struct rlmd_text conversation_counted(const struct llm_message *);

/* Puts one message, copied, in the place of `count` > 0 of them. */
void conversation_replace(struct conversation *, size_t first, size_t count, enum llm_role,
			  struct rlmd_text);
void conversation_drop_last(struct conversation *);
void conversation_done(struct conversation *);

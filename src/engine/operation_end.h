/*
 * engine/operation_end.h - how an operation ends: with an answer, and what is said of it, or an
 * error; and whoever waits is told.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/operation.h"

/* One more way in which the answer is less than what was asked for; takes `why`. */
void operation_degrade(struct operation *, char *why);
void operation_note_cut(struct operation *, bool cut); /* at its length limit */
void operation_note_fallback(struct operation *);      /* it was to be a run, and is none */

/* The text is the answer's, and nothing else: code reads it. What is said of it comes before. */
void operation_answer(struct operation *, struct rlmd_text);

/* A model's, as it came; where it may, it takes the bytes. */
void operation_take_answer(struct operation *, const struct llm_response *);
void operation_fail(struct operation *, const struct rlmd_error *);

/* It ended of itself, as one of these has said. The operation may be gone after this. */
void operation_end(struct operation *);

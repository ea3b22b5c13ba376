/*
 * prompt/prompt.h - values, and their places in the texts that models are told.
 *
 * The texts are a prompt profile's (prompt/prompt_set.h), with {{name}} where a
 * value goes; prompt/prompts.def has all names of both.
 */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "prompt/prompt_set.h"

/* The values of one rendering: names and texts, both lent until prompt_render() returned. */
struct prompt_values {
	struct prompt_value {
		const char *name;
		struct rlmd_text text;
		char number[32];
		bool apart; /* no part of what identifies the request */
	} values[32];
	size_t count;
};

void prompt_text(struct prompt_values *, const char *name, struct rlmd_text);
void prompt_number(struct prompt_values *, const char *name, int64_t);
void prompt_money(struct prompt_values *, const char *name, int64_t pico); /* "unlimited" too */
void prompt_duration(struct prompt_values *, const char *name, int64_t ms);
void prompt_estimate(struct prompt_values *, const char *name, int64_t); /* of a model's window */

/* The rest of the time, in words or none: requests are compared without it. */
void prompt_text_left(struct prompt_values *, const char *name, struct rlmd_text);

/* The rest of a budget, and words that depend on it: requests are compared without them. */
void prompt_number_left(struct prompt_values *, const char *name, int64_t);
void prompt_money_left(struct prompt_values *, const char *name, int64_t pico);

/*
 * Appends the set's text of that name (asserted to exist); a name without a value renders as "".
 * `timeless`, where it is not NULL, gets the same without what stands apart: llm_message's.
 */
void prompt_render(const struct prompt_set *, const char *name, const struct prompt_values *,
		   struct evbuffer *out, struct evbuffer *timeless);

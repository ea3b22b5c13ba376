/*
 * llm/room.h - the numbers in a provider's complaint that a request is too large: how many tokens
 * the model takes and gives, and how many it counted.
 *
 * Servers word that in some twenty ways; a row of the table reads each. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* In tokens; what is not told is 0. */
struct room {
	int64_t window; /* a prompt and its answer together */
	int64_t output; /* an answer alone */
	int64_t prompt; /* the prompt that was refused */
};

/* Reads the words of an error, in any case. */
void room_read(const char *words, struct room *ret);

/*
 * The max_tokens that fits, below the one that was refused for its size; 0: none would. `estimate`
 * is ours of the prompt, for servers that do not tell what they counted.
 */
int64_t room_fit(const struct room *, int64_t refused, int64_t estimate);

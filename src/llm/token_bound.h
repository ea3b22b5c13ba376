/*
 * llm/token_bound.h - the fewest tokens that a text can be for any model, counted while it comes.
 *
 * Tokenizers part a text into words, numbers, punctuation and space before anything else, and no
 * token reaches from a word or a number into the next one. So each of them is a token at least, and
 * a long one as many as the longest tokens need. This is no estimate: of English it is three
 * quarters of what is billed, of a text without words much less; but never more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Zero is empty. */
struct token_bound {
	int64_t tokens;
	/* private */
	int kind;
	int64_t run; /* what came of that kind since its last token, in bytes or characters */
};

void token_bound_feed(struct token_bound *, struct rlmd_text); /* pieces of any size */

/* Whether so many are clearly more than `asked`: a vocabulary that nobody knows may have longer
 * tokens. */
bool token_bound_is_beyond(int64_t tokens, int64_t asked);

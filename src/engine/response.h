/*
 * engine/response.h - a model's response, read: code, answer, thinking.
 *
 * ENG-1 to ENG-4. Pure. Fences are found by lines (engine/fence.h), answers by a
 * scan that balances parentheses and quotes; never by a regular expression.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum response_answer {
	ANSWER_NONE,
	ANSWER_DIRECT,   /* FINAL(value) */
	ANSWER_VARIABLE, /* FINAL_VAR(name) */
};

struct response {
	struct text *blocks; /* owned array; each lent from `memory` */
	size_t block_count;
	enum response_answer answer;
	struct text value;    /* the answer's text, or the variable's name; ends in NUL */
	struct text thinking; /* all text outside of fences and of the marker that counts */
	bool only_code;       /* no answer and no words: nothing but blocks of code */
	bool cut_fence;       /* cut inside a code block, which is not in `blocks` */
	char *memory;         /* owned */
};

/* `cut`: the provider ended it for its length. Blocks of other languages are left out. */
void response_read(struct text, bool cut, struct response *ret);
void response_done(struct response *);

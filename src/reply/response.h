/*
 * reply/response.h - a model's response, read: code, answer, thinking.
 *
 * ENG-1 to ENG-4. Pure. In this order: what was thought is taken out (reply/thought.h), what was
 * invented cut off (reply/echo.h); blocks are found by lines (reply/fence.h, reply/toolcall.h),
 * answers by a scan that balances parentheses and quotes (reply/marker.h); never by a regular
 * expression. docs/replies.md has the rules.
 */
#pragma once

#include <rlmd/parser.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct response {
	struct rlmd_text *blocks; /* owned array; each lent from `memory` */
	size_t block_count;
	enum rlmd_answer_kind answer;
	struct rlmd_text value; /* the answer's text, or the variable's name; ends in NUL */
	bool may_compute;       /* the answer, without quotes, reads as a name or an expression */
	bool stands_in;         /* likewise, and as one that only means a variable: result */
	struct rlmd_text
		thinking; /* thoughts; all text outside of fences and of the marker that counts */
	struct rlmd_text
		said; /* the reply itself, without thoughts and what was invented, trimmed */
	struct rlmd_text form; /* no answer: FINAL(the answer), FINAL(), or FINAL_VAR( of no name */
	bool only_code;        /* nothing but code, as the answer too */
	bool cut_fence;        /* cut inside a code block, which is not in `blocks` */
	bool invented;         /* it went on with outputs or turns of its own, which were cut off */
	bool thought_open;     /* it ended within a thought */
	char *memory;          /* owned */
};

/* `cut`: the provider ended it for its length. Blocks of other languages are left out. */
void response_read(struct rlmd_text, bool cut, struct response *ret);
void response_done(struct response *);

/* Whether it could be the answer as it is: not only code, a thought, or the form of an answer. */
bool response_has_words(const struct response *);

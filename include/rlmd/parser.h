/*
 * rlmd/parser.h - a model's reply, read: the code in it, the answer, the rest.
 *
 * Models write code and answers in many ways; docs/replies.md in the source has
 * the rules. Reading is pure: the same reply gives the same, nothing is run, and
 * the time it takes grows with the reply's size.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rlmd_reply;

enum rlmd_answer_kind {
	RLMD_ANSWER_NONE,
	RLMD_ANSWER_DIRECT,   /* FINAL(value) */
	RLMD_ANSWER_VARIABLE, /* FINAL_VAR(name) */
};

/* Any bytes; copied. `cut`: the provider ended it for its length. To be freed. */
RLMD_API struct rlmd_reply *rlmd_reply_parse(struct rlmd_text, bool cut);
RLMD_API void rlmd_reply_free(struct rlmd_reply *); /* NULL is fine */

/* All that follows is lent until then. */

/* Blocks of Python, in order; those of other languages are left out. Empty where there is none. */
RLMD_API size_t rlmd_reply_block_count(const struct rlmd_reply *);
RLMD_API struct rlmd_text rlmd_reply_block(const struct rlmd_reply *, size_t index);

/* It ended inside of a block of code, which is none of the above. */
RLMD_API bool rlmd_reply_cut_code(const struct rlmd_reply *);

RLMD_API enum rlmd_answer_kind rlmd_reply_answer(const struct rlmd_reply *);

/* The answer's text, or the variable's name; empty where there is no answer. */
RLMD_API struct rlmd_text rlmd_reply_answer_text(const struct rlmd_reply *);

/* What it thought, and all its words outside of code and answer. */
RLMD_API struct rlmd_text rlmd_reply_thinking(const struct rlmd_reply *);

/* It went on with outputs or turns of its own invention, which were cut off. */
RLMD_API bool rlmd_reply_invented(const struct rlmd_reply *);

#ifdef __cplusplus
}
#endif

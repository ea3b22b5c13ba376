/*
 * rlmd/parser.h - finds the code, the answer and the rest in a model's reply.
 *
 * Models write code and answers in many ways; docs/replies.md in the source has
 * the rules. Parsing runs no code, depends on the reply alone, and takes time in
 * proportion to its size.
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

/* Any bytes; copied. `cut`: the provider ended the reply at its maximal length. Free the result
 * with rlmd_reply_free(); all texts below are lent by it. */
RLMD_API struct rlmd_reply *rlmd_reply_parse(struct rlmd_text, bool cut);
RLMD_API void rlmd_reply_free(struct rlmd_reply *); /* NULL is fine */

/* Blocks of Python, in order. Blocks of other languages do not count. An index that is too large
 * gives an empty text. */
RLMD_API size_t rlmd_reply_block_count(const struct rlmd_reply *);
RLMD_API struct rlmd_text rlmd_reply_block(const struct rlmd_reply *, size_t index);

/* Whether the reply ended inside of a block of code. That block is not counted above. */
RLMD_API bool rlmd_reply_cut_code(const struct rlmd_reply *);

RLMD_API enum rlmd_answer_kind rlmd_reply_answer(const struct rlmd_reply *);

/* The answer's text, or the variable's name; empty where there is no answer. */
RLMD_API struct rlmd_text rlmd_reply_answer_text(const struct rlmd_reply *);

/* The model's thoughts, and its other words outside of code and answer. */
RLMD_API struct rlmd_text rlmd_reply_thinking(const struct rlmd_reply *);

/* Whether the model went on with invented outputs or turns, which were removed. */
RLMD_API bool rlmd_reply_invented(const struct rlmd_reply *);

#ifdef __cplusplus
}
#endif

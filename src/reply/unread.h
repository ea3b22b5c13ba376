/*
 * reply/unread.h - what stands in a reply that has neither code nor an answer.
 *
 * So that the model is told what it wrote, and not only what it should have written.
 */
#pragma once

#include "base/text.h"

enum unread {
	UNREAD_WORDS,
	UNREAD_LANGUAGE, /* a block of another programming language */
	UNREAD_TOOL,     /* a call of a tool that is not there */
	UNREAD_LINES,    /* lines of Python outside of blocks */
};

/* `ret_name`: of the language, lent from the reply; else empty. */
enum unread unread_find(struct rlmd_text said, struct rlmd_text *ret_name);

/* The last sentence of a reply, lent from it; empty where it has none. */
struct rlmd_text unread_sentence(struct rlmd_text said);

/*
 * reply/thought.h - what a model thinks in the text of its reply: <think>...</think>.
 *
 * Servers that know a model take this out and send it apart; many do not. It is read before
 * anything else, for in it stand fences that are left open, drafts of code, and answers that are
 * none. thought.c has the tags and the rules.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

struct thought {
	size_t said;    /* bytes of the reply without it */
	size_t thought; /* bytes of what was thought, each part ended by a line feed */
	bool open;      /* the reply ends in it */
};

/* Writes both, each to room for all of the text. */
void thought_split(struct rlmd_text, char *said, char *thoughts, struct thought *ret);

/*
 * reply/markdown.h - what is code in a text of Markdown, in blocks and in lines.
 *
 * Fenced blocks (reply/fence.h) and inline spans after CommonMark 0.30, section 6.1. In linear
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "reply/fence.h"

struct markdown {
	struct fence *fences; /* owned; in order; calls of tools and code between tags too */
	size_t fence_count;
	struct range *spans; /* owned; in order, never inside a fence; backticks included */
	size_t span_count;
	bool open; /* the text ends inside of the last fence */
};

void markdown_read(struct rlmd_text, struct markdown *ret);
void markdown_done(struct markdown *);

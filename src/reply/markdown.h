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

/*
 * The lines of a response that are neither code nor part of an answer: what models write at the
 * start of a line, tags and headings, counts only there. All zero but for the first two, before the
 * first line.
 */
struct prose {
	struct rlmd_text text;
	const struct markdown *markdown; /* lent */
	size_t at, fence, span;          /* the first that ends behind `at` */
	size_t tries;
};

/*
 * The next line outside of fences, code spans and a FINAL( that leads its line and is closed on
 * another one; false: there is none. It ends in front of a fence that begins on it.
 */
bool markdown_prose_line(struct prose *, struct range *ret);

/* Where the line's words begin: behind blanks and what cannot be seen. */
size_t markdown_line_start(struct rlmd_text, struct range line);

/*
 * engine/markdown.h - where the code is in a text of Markdown.
 *
 * Fenced blocks and inline spans after CommonMark 0.30 (sections 4.5 and 6.1),
 * more lenient where models are careless: a fence may be indented by any amount
 * and may follow a list marker on its line. Found by lines, in linear time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct range {
	size_t start, end; /* offsets of bytes; `end` is not in it */
};

struct fence {
	struct range whole; /* with both fence lines */
	struct range body;  /* the lines between them */
	size_t columns;     /* the opening fence's indentation */
	bool python;        /* its language is one that a worker runs */
};

struct markdown {
	struct fence *fences; /* owned; in order */
	size_t fence_count;
	struct range *spans; /* owned; in order, never inside a fence; backticks included */
	size_t span_count;
	bool open; /* the text ends inside of the last fence */
};

void markdown_read(struct text, struct markdown *ret);
void markdown_done(struct markdown *);

/*
 * Writes a fence's lines to `out`, which has room for its body: ended by line feeds, without a
 * line feed at the end, and without the indentation that the fence, or all of them, have.
 * Returns how many bytes that were.
 */
size_t markdown_code(struct text, const struct fence *, char *out);

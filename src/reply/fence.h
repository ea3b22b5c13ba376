/*
 * reply/fence.h - the fenced blocks of code in a text of Markdown.
 *
 * After CommonMark 0.30 (section 4.5), more lenient where models are careless: a fence may be
 * indented by any amount, may follow a list marker or words on its line, and may close behind the
 * last line of its code. fence.c says what cannot be misread there. Found by lines, in linear time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct range {
	size_t start, end; /* offsets of bytes; `end` is not in it */
};

enum fence_language {
	FENCE_OTHER,
	FENCE_BARE, /* it has none, or "code", which says as much */
	FENCE_PYTHON,
};

struct fence {
	struct range whole; /* with both fences; begins at the first, ends with a line */
	struct range body;  /* the lines between them; the last may have no end */
	size_t columns;     /* the opening fence's indentation */
	enum fence_language language;
	bool is_call; /* the body is a call of a tool in JSON (reply/toolcall.h) */
};

/* All of them in order, owned. `ret_open`: the text ends inside of the last one. */
struct fence *fences_read(struct rlmd_text, size_t *ret_count, bool *ret_open);

/* The language's name as it was written, lent from the text; empty: it has none. */
struct rlmd_text fence_info(struct rlmd_text, const struct fence *);

/*
 * Writes a fence's lines to `out`, which has room for its body: ended by line feeds, without a
 * line feed at the end, and without the indentation that the fence, or all of them, have.
 * Returns how many bytes that were.
 */
size_t fence_code(struct rlmd_text, const struct fence *, char *out);

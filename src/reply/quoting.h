/*
 * reply/quoting.h - what of Python source stands in strings and comments, line by line.
 *
 * Outside of them Python has no backticks, so one that stands there is Markdown's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Zero at the beginning of the source. */
struct quoting {
	char quote;  /* that closes the string which the next line begins in; NUL: none */
	bool triple; /* three of them do */
};

/* The offset in the next line, without its end, of the first backtick outside of strings and
 * comments; the line's size where it has none. */
size_t quoting_backtick(struct quoting *, struct rlmd_text line);

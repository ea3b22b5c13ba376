/*
 * reply/shape.h - does a text without a language have the shape of Python?
 *
 * No parser: it says yes only to what reads as nothing else, line by line, and no to shell, JSON,
 * prose, output, diffs and other languages. Linear in the size of the text.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

enum shape {
	SHAPE_OTHER,
	SHAPE_CALLS,     /* calls alone, which may be shown as a value too: Counter({'a': 1}) */
	SHAPE_STATEMENTS /* at least one import, definition, loop, print, or assignment of work */
};

/* A first line that only names the language is passed over. */
enum shape shape_of(struct rlmd_text);

/* Whether it reads as one expression of Python in one line: a name or a number, too. */
bool shape_is_expression(struct rlmd_text);

/* The text behind such a line; all of it where it has none. */
struct rlmd_text shape_code(struct rlmd_text);

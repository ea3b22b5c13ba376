/*
 * reply/prose.h - the lines of a response that are neither code nor part of an answer.
 *
 * What models write at the start of a line, tags and headings, counts only there.
 */
#pragma once

#include "base/text.h"
#include "reply/markdown.h"

/* All zero but for the first two, before the first line. */
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
bool prose_line(struct prose *, struct range *ret);

/* Where the line's words begin: behind blanks and what cannot be seen. */
size_t prose_start(struct rlmd_text, struct range line);

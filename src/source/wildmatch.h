/*
 * source/wildmatch.h - patterns of paths, as gitignore(5) and gitglossary(7) have them.
 *
 * "*", "?" and "[...]" as in a shell; where a pattern is of a path these don't match a slash, and
 * "**" between slashes stands for any number of directories. A pattern is a stranger's: matching
 * takes time in proportion to the pattern times the text, whatever they are, and none where the
 * pattern wants more characters than the text has: names are short.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

struct wildmatch;

enum wildmatch_flag {
	WILDMATCH_PATH = 1, /* a slash is matched by "**" and by itself alone */
	WILDMATCH_FOLD = 2, /* letters of ASCII match in either case */
};

struct wildmatch *wildmatch_new(struct rlmd_text pattern, int flags); /* copied */
void wildmatch_free(struct wildmatch *);                              /* NULL is fine */
bool wildmatch_matches(const struct wildmatch *, struct rlmd_text);   /* as a whole */

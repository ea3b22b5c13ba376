/*
 * review/glob.h - which paths a pattern is for.
 *
 * `*` and `?` match within a name, `**` over any number of names, `[a-z]` and `[!a-z]` one
 * character. A pattern without a `/` is for names anywhere, one that ends with `/` for all below.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

enum { GLOB_MAX = 1024 }; /* bytes of a pattern; longer ones match nothing */

/* Takes time by the product of both lengths at most. */
bool glob_matches(const char *pattern, struct rlmd_text path);

/*
 * lister/hunks.h - two texts, line by line: what is other in the second.
 */
#pragma once

#include <jansson.h>

#include "base/text.h"

/* An array, new, as rlmd_context_changes() has it; empty where they are alike, or are no text. Of
 * texts of very many lines it is one hunk without a text, for comparing these would take long. */
json_t *hunks_between(struct rlmd_text before, struct rlmd_text after);

/*
 * reply/placeholder.h - the words that stand for an answer where our prompts show its form.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/*
 * Whether FINAL's argument, trimmed, is such words and no answer: any letter case, in <>, [] or {}
 * or not. In quotes they are an answer.
 */
bool is_placeholder(struct rlmd_text argument);

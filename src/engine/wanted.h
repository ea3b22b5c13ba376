/*
 * engine/wanted.h - modules that the model's code wanted and that its session has not.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"

enum { WANTED_MAX = 64 }; /* characters of a module's name */

/*
 * The module whose import ended a block, by the traceback's last line as worker/missing.py words
 * it; false where it ended otherwise. A worker may say what it likes, so this is only good for a
 * hint: the name has letters, digits and underscores, and nothing else.
 */
bool wanted_module(struct rlmd_text traceback, char ret[WANTED_MAX + 1]);

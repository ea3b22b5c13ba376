/*
 * reply/toolcall.h - code that a model wrote as a call of a tool, or between tags.
 *
 * Models are trained to call an interpreter in the form that their makers chose. toolcall.c has the
 * names and tags in its tables, with where they come from.
 */
#pragma once

#include "base/text.h"
#include "reply/markdown.h"

/*
 * Adds what it finds to the fences, in order, as blocks of Python, and makes such of those fences
 * that hold a call in JSON.
 */
void toolcalls_read(struct rlmd_text, struct markdown *);

/* Whether a line begins like a call of whatever tool, which may go on behind it. */
bool toolcall_begins(struct rlmd_text, struct range line);

/* Writes the code of a fence that `is_call` to `out`, which has room for its body. Returns its
 * size. */
size_t toolcall_code(struct rlmd_text, const struct fence *, char *out);

/*
 * llm/scripted.h - answers that were written by hand, for requests that match.
 *
 *   {"match": {"kind": "turn", "depth": 0, "turn": 2, "pattern": "POSIX extended regex"},
 *    "response": {"text": "..." | ["line", ...], "thinking", "finish", "model",
 *                 "usage": {"input", "output"}, "cost": dollars, "delay": ms},
 *    "error": {"kind", "message", "http_status"}, "repeat": false}
 *
 * Every part of a match is optional; the pattern is looked for in the last user message. The first
 * entry that matches is used, once, unless it says "repeat".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "llm/exchange.h"

struct scripted;

struct scripted *scripted_new(void);
void scripted_free(struct scripted *); /* NULL is fine */

/* Adds an entry, or an array of them; RLMD_ERROR_INPUT names the entry and the field. */
bool scripted_add(struct scripted *, json_t *, struct rlmd_error *);

/* False: none matches. `ret` becomes the caller's. */
bool scripted_find(struct scripted *, const struct llm_request *, struct exchange *ret);

/* The last user message: patterns are looked for in it. */
struct rlmd_text scripted_prompt(const struct llm_request *);

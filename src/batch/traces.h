/*
 * batch/traces.h - the traces of jobs that failed, beside the results: RESULTS.traces/ID.jsonl.
 *
 * An id is data: what is no letter, digit, dot, underscore or hyphen of ASCII stands as %XX, and so
 * does a dot in front; a long one is cut, and has a digest behind it.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>

struct traces;

struct traces *traces_new(const char *results); /* touches nothing */
void traces_free(struct traces *);              /* NULL is fine */

/* Writes one, in the place of an older one. False: RLMD_ERROR_INTERNAL, as for a full disk. */
bool traces_put(struct traces *, const char *custom_id, struct rlmd_text, struct rlmd_error *);

/* There is none any more, if there was one. */
void traces_remove(struct traces *, const char *custom_id);

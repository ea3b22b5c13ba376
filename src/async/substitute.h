/*
 * async/substitute.h - `{{id}}` in an input, replaced by a response.
 *
 * The id stands between two pairs of braces, blanks around it do not count. Braces around anything
 * that could not be an id are left alone. A backslash before it makes it plain text: `\{{id}}`
 * gives `{{id}}`; two stand for one, and so on. No other backslash or brace means anything.
 */
#pragma once

#include <rlmd/plan.h>

/* Bytes of the id at the start of the text: letters, digits, - _ . : / @ + and above 127. */
size_t substitute_id(struct rlmd_text);

enum substitute_piece {
	SUBSTITUTE_END,
	SUBSTITUTE_TEXT,      /* as it is */
	SUBSTITUTE_REFERENCE, /* an id, without its braces */
};

/* Takes the next piece off the front of `rest`; zero `raw` before the first. */
struct substitute_scan {
	struct rlmd_text rest; /* lent */
	size_t raw;            /* bytes at its front that were made plain text */
};

enum substitute_piece substitute_next(struct substitute_scan *, struct rlmd_text *ret_piece);

/* The text for an id; lent. */
typedef struct rlmd_text substitute_fn(void *owner, struct rlmd_text id);

/*
 * The input with everything put in, owned by the caller; NULL where it would have more than `max`
 * bytes. `ret_size` says how many it has, or would have.
 */
char *substitute(struct rlmd_text input, size_t max, substitute_fn *, void *owner,
		 size_t *ret_size);

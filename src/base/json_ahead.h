/*
 * base/json_ahead.h - long strings of JSON, checked while their bytes come.
 *
 * Who reads an answer of megabytes has to wait for its end, and then goes over all of it at once.
 * Nearly all of such a text are the insides of a few strings, which can be gone over before: a
 * scan (base/json_scan.h) that is told of this goes on where that has ended. It reads what it
 * would have read, and finds the same errors at the same places.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Embed it; zero knows of nothing. */
struct json_ahead {
	/* private */
	const char *start; /* lent: of the text, as it stands now */
	size_t at;         /* bytes that were gone over */
	bool inside;       /* the last string has not ended yet */
	size_t count, room;
	struct json_ahead_string {
		size_t start, checked; /* of its inside: where it begins, and is not checked yet */
		bool escaped;
	} * strings; /* owned: in their order; no short ones but the last */
};

void json_ahead_done(struct json_ahead *); /* which then knows of nothing */

/* All that has come of the text: what it was before, and more. Wherever it stands now it is lent
 * until the next time, or until nobody scans it any more. */
void json_ahead_feed(struct json_ahead *, struct rlmd_text so_far);

/* Of a string whose inside begins at `inside`: up to where it is checked; sets `ret_escaped` if
 * there is an escape in that. */
const char *json_ahead_skip(const struct json_ahead *, const char *inside, bool *ret_escaped);

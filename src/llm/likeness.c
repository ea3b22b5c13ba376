#include "llm/likeness.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_scan.h"

enum { SIZE_MAX_KEPT = 4096 }; /* bytes: what is longer than that is no piece of a text */

void likeness_done(struct likeness *likeness)
{
	free(likeness->event);
	*likeness = (struct likeness){0};
}

void likeness_forget(struct likeness *likeness)
{
	likeness->count = 0;
}

static struct likeness_hole hole_of(struct rlmd_text event, const struct json_view *string)
{
	size_t start = (size_t)(string->text.bytes - event.bytes);

	return (struct likeness_hole){start, start + string->text.size};
}

void likeness_keep(struct likeness *likeness, struct rlmd_text event, const struct json_view *text,
		   const struct json_view *idle)
{
	bool two = idle->kind == JSON_VIEW_STRING;

	likeness_forget(likeness);
	if (text->kind != JSON_VIEW_STRING || event.size > SIZE_MAX_KEPT)
		return;
	if (likeness->room < event.size) {
		likeness->event = xreallocarray(likeness->event, event.size, 1);
		likeness->room = event.size;
	}
	memcpy(likeness->event, event.bytes, event.size);
	likeness->size = event.size;
	likeness->text = two && idle->text.bytes < text->text.bytes;
	likeness->holes[likeness->text] = hole_of(event, text);
	if (two)
		likeness->holes[!likeness->text] = hole_of(event, idle);
	likeness->count = two ? 2 : 1;
}

/* Takes the same bytes off the start of both, from `from` up to the quote before `to`. */
static bool take_same(const struct likeness *likeness, size_t from, size_t to,
		      struct rlmd_text *rest)
{
	size_t size = to - from;

	if (rest->size < size || memcmp(likeness->event + from, rest->bytes, size) != 0)
		return false;
	*rest = text_slice(*rest, size, rest->size);
	return true;
}

bool likeness_find(const struct likeness *likeness, struct rlmd_text event,
		   struct json_view *ret_text)
{
	struct rlmd_text rest = event;
	struct json_view string;
	size_t from = 0;

	for (size_t i = 0; i < likeness->count; i++) {
		/* The quotes are the string's own. */
		if (!take_same(likeness, from, likeness->holes[i].start - 1, &rest) ||
		    !json_scan_string(rest, &string))
			return false;
		if (i == likeness->text)
			*ret_text = string;
		rest = text_slice(rest, string.text.size + 2, rest.size);
		from = likeness->holes[i].end + 1;
	}
	return likeness->count && rest.size == likeness->size - from &&
	       take_same(likeness, from, likeness->size, &rest);
}

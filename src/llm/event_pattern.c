#include "llm/event_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_scan.h"

enum { SIZE_MAX_KEPT = 4096 }; /* bytes: what is longer than that is no piece of a text */

void event_pattern_done(struct event_pattern *pattern)
{
	free(pattern->event);
	*pattern = (struct event_pattern){0};
}

void event_pattern_forget(struct event_pattern *pattern)
{
	pattern->count = 0;
}

static struct event_pattern_hole hole_of(struct rlmd_text event, const struct json_view *string)
{
	size_t start = (size_t)(string->text.bytes - event.bytes);

	return (struct event_pattern_hole){start, start + string->text.size};
}

void event_pattern_keep(struct event_pattern *pattern, struct rlmd_text event,
			const struct json_view *text, const struct json_view *idle)
{
	bool two = idle->kind == JSON_VIEW_STRING;

	event_pattern_forget(pattern);
	if (text->kind != JSON_VIEW_STRING || event.size > SIZE_MAX_KEPT)
		return;
	if (pattern->room < event.size) {
		pattern->event = xreallocarray(pattern->event, event.size, 1);
		pattern->room = event.size;
	}
	memcpy(pattern->event, event.bytes, event.size);
	pattern->size = event.size;
	pattern->text = two && idle->text.bytes < text->text.bytes;
	pattern->holes[pattern->text] = hole_of(event, text);
	if (two)
		pattern->holes[!pattern->text] = hole_of(event, idle);
	pattern->count = two ? 2 : 1;
}

/* Takes the same bytes off the start of both, from `from` up to the quote before `to`. */
static bool take_same(const struct event_pattern *pattern, size_t from, size_t to,
		      struct rlmd_text *rest)
{
	size_t size = to - from;

	if (rest->size < size || memcmp(pattern->event + from, rest->bytes, size) != 0)
		return false;
	*rest = text_slice(*rest, size, rest->size);
	return true;
}

size_t event_pattern_find(const struct event_pattern *pattern, struct rlmd_text bytes,
			  struct json_view *ret_text)
{
	struct rlmd_text rest = bytes;
	struct json_view string;
	size_t from = 0;

	for (size_t i = 0; i < pattern->count; i++) {
		/* The quotes are the string's own. */
		if (!take_same(pattern, from, pattern->holes[i].start - 1, &rest) ||
		    !json_scan_string(rest, &string))
			return 0;
		if (i == pattern->text)
			*ret_text = string;
		rest = text_slice(rest, string.text.size + 2, rest.size);
		from = pattern->holes[i].end + 1;
	}
	if (!pattern->count || !take_same(pattern, from, pattern->size, &rest))
		return 0;
	return bytes.size - rest.size;
}

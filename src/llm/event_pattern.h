/*
 * llm/event_pattern.h - events of a stream that are as the one before, but for their text.
 *
 * Nearly all are the same bytes around another piece of text. Such a one needs no reading, neither
 * its lines nor its JSON: what stands around the text was read before, and means the same. That is
 * a comparison and a look at the string, a thirtieth of what a scan of the event takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json_view.h"
#include "base/text.h"

enum { EVENT_PATTERN_HOLES = 2 };

/* The event that others are compared with. Embed it; zero is none. */
struct event_pattern {
	char *event; /* owned: its bytes, with its lines' names and ends */
	size_t size, room;
	struct event_pattern_hole {
		size_t start, end; /* of a string, without its quotes */
	} holes[EVENT_PATTERN_HOLES];
	size_t count; /* of them; 0: there is no event */
	size_t text;  /* which of them */
};

void event_pattern_done(struct event_pattern *);

/*
 * Keeps an event, as which others are to be taken: one that does nothing but give its `text`, and
 * would do no more were it given again. `idle` is another string of it that nobody reads, and that
 * may differ too; or no string. Both are views of the event, whose last byte ends it.
 */
void event_pattern_keep(struct event_pattern *, struct rlmd_text event,
			const struct json_view *text, const struct json_view *idle);
void event_pattern_forget(struct event_pattern *);

/* How much of some bytes is an event as the one that was kept, but for these strings, and its text;
 * 0: they do not begin with such a one, or not with all of it. */
size_t event_pattern_find(const struct event_pattern *, struct rlmd_text bytes,
			  struct json_view *ret_text);

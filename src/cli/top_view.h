/*
 * cli/top_view.h - a run that is under way, as lines of a screen: its runs and sub-runs, what they
 * spend, and the code and words of the newest event.
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct top_view;

struct top_view *top_view_new(const char *name); /* of the trace; lent */
void top_view_free(struct top_view *);

/* The next event; lent. Unknown ones are passed over. `now` is clock_ms(), here and below: time
 * goes on after the newest event until the run has ended. */
void top_view_take(struct top_view *, const json_t *event, int64_t now);

/* "ended after 12s | 3 runs, ... | FILE" on one line, without its end. */
void top_view_summary(const struct top_view *, int64_t now, struct evbuffer *out);

/* The screen: at most `rows` lines, none wider than `columns`; line feeds only between them. The
 * LC_CTYPE of the process is UTF-8. */
void top_view_draw(const struct top_view *, int64_t now, int rows, int columns,
		   struct evbuffer *out);

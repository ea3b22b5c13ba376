/*
 * cli/status.h - how a run is getting on, on standard error.
 *
 * On a terminal one line that is rewritten in place, and cleared before
 * anything else is written; with -v a line an event; at the end a summary.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct status;

struct status_options {
	bool live; /* the line that is rewritten */
	bool color;
	int verbose;      /* 1: a line for what a turn, a call and a run came to; 2: blocks too */
	int64_t max_cost; /* BUDGET_UNLIMITED: none */
};

/* The engine is lent until status_free(). At most one exists. */
struct status *status_new(struct event_base *, const struct engine *,
			  const struct status_options *);
void status_free(struct status *); /* clears the line; NULL is fine */

/* NULL is fine in both: there is no status before an engine. */
void status_event(struct status *, const json_t *event);
void status_clear(struct status *);

/* What it came to, from a result object: two lines, and the warnings that are not in `told`. */
void status_summary(const json_t *result, const json_t *told, const char *verb, int64_t max_cost);

/* Whether standard error is a terminal that can rewrite a line, and whether to colour it:
 * `when` is the value of --color. */
bool status_can_live(void);
bool status_can_color(const char *when);

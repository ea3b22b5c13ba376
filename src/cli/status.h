/*
 * cli/status.h - how a run is getting on, on standard error.
 *
 * On a terminal one line that is rewritten in place, and cleared before
 * anything else is written; with -v a line an event; at the end a summary.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>

struct status;

enum { STATUS_PLACE_MAX = 48 };

/* How things stand; `place` gets where the work is: "turn 3 | depth 1". */
typedef struct rlmd_job_status status_source_fn(const void *owner,
						char place[static STATUS_PLACE_MAX]);

struct status_options {
	bool live; /* the line that is rewritten */
	/* 1: a line for what a turn, a call, a run or an operation came to, and the layers of
	 * isolation at the end; 2: blocks, what the model wrote and what its code printed */
	int verbose;
};

/* The source is asked until status_free(). At most one status exists. */
struct status *status_new(struct event_base *, const struct status_options *, status_source_fn *,
			  const void *owner);
void status_free(struct status *); /* clears the line; NULL is fine */

/* The names of the events that are shown with these options, up to a NULL; static. NULL: where
 * nothing is shown. A NULL is returned where all are. */
const char *const *status_events(const struct status_options *);

/* NULL is fine: there is no status before an engine. */
void status_event(struct status *, struct rlmd_text event); /* a line of JSON */

/* What it came to, from a result object: two lines, and the warnings that are not in `told`. It
 * begins "VERB 2.7s: WORK, 8 calls". The layers of isolation are named where `verbose` is set. */
void status_summary(const json_t *result, const json_t *told, const char *verb, const char *work,
		    int64_t max_cost, const struct status_options *);

/* Whether standard error is a terminal that can rewrite a line, and whether to colour it:
 * `when` is the value of --color. */
bool status_can_live(void);
bool status_can_color(const char *when);

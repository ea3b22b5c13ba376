/*
 * cli/job_view.h - how a job is shown on standard error: its progress, its events, its end.
 *
 * With -v each event of interest is a line; without it only a call that waits for its model is.
 */
#pragma once

#include <jansson.h>
#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct progress_line;

enum { JOB_VIEW_PROGRESS_MAX = 48 };

struct job_view {
	/* 1: a line for what a turn, a call, a run or an operation came to, and the layers of
	 * isolation at the end; 2: blocks, what the model wrote and what its code printed */
	int verbose;
	bool live;          /* there is a line that is rewritten */
	char busy[24];      /* why a call waits for its model, until another one ends; or "" */
	int64_t busy_since; /* on clock_ms() */
	int64_t told_busy;  /* when there was a line about it; 0: never */
};

/* The names of the events that are shown, up to a NULL; static. A NULL is returned where all are.
 */
const char *const *job_view_events(const struct job_view *);

void job_view_event(struct job_view *, struct rlmd_text event); /* a line of JSON */

/* The parts of the line of progress; `progress` is where the work is: "turn 3 | depth 1". */
void job_view_describe(const struct job_view *, const struct rlmd_job_status *,
		       const char *progress, struct progress_line *);

/* The summary of a result object: two lines, and the warnings that are not in `shown`. It begins
 * "VERB 2.7s: WORK, 8 calls". The layers of isolation are named where `verbose` is set. */
void job_view_summary(const struct job_view *, const json_t *result, const json_t *shown,
		      const char *verb, const char *work, int64_t max_cost);

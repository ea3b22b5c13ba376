/*
 * engine/job_hooks.h - what the hooks of a job are told.
 *
 * Most of it is what the trace tells, put into the structs of rlmd/job.h. The hooks
 * are called here and nowhere else, and the job knows that it is inside of one.
 */
#pragma once

#include <jansson.h>
#include <rlmd/job.h>

#include "trace/trace.h"

/* Embed it; zero tells nobody. */
struct job_hooks {
	struct rlmd_hooks of; /* its owner's */
	trace_kinds lines;    /* that the hook `event` is told */
	trace_kinds structs;  /* that the other hooks are told as structs */
	void *runs;           /* owned tree (tsearch) of those that have begun and not ended */
};

/* By `of`, which is set: RLMD_ERROR_USAGE where it asks for events that there are none of. */
bool job_hooks_begin(struct job_hooks *, struct rlmd_error *);
void job_hooks_done(struct job_hooks *);

/* An event of the trace, to the hooks whose it is. */
void job_tell_event(struct rlmd_job *, enum trace_kind, const json_t *event);

/* A block begins to run; `iteration` is 0 before the first. */
void job_tell_code(struct rlmd_job *, const char *run, int depth, int iteration,
		   struct rlmd_text code);
void job_tell_budget_warning(struct rlmd_job *, const char *text);
void job_tell_delta(struct rlmd_job *, struct rlmd_text words);

/* There is that hook. */
void job_tell_check(struct rlmd_job *, struct rlmd_text answer, struct rlmd_check *);

/* As its last act it may free the job. */
void job_tell_end(struct rlmd_job *);

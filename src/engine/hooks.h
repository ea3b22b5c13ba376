/*
 * engine/hooks.h - the host's hooks of one job: the only place that calls them.
 *
 * Most hooks are told events of the trace, put into the structs of rlmd/job.h.
 */
#pragma once

#include <jansson.h>
#include <rlmd/job.h>
#include <stdbool.h>

#include "trace/trace.h"

/* Embed it; zero calls no hook. */
struct hooks {
	struct rlmd_hooks of;
	struct rlmd_job *job; /* lent: named to each hook */
	trace_kinds lines;    /* of events that the hook `event` is told as JSON */
	trace_kinds structs;  /* of events that the other hooks are told as structs */
	void *runs;           /* owned tree (tsearch): runs that have begun and not ended */
	bool telling;         /* a hook or another callback of the host is being called */
};

/* `of` and `job` are set. RLMD_ERROR_USAGE where `of` asks for an event that does not exist. */
bool hooks_begin(struct hooks *, struct rlmd_error *);
void hooks_done(struct hooks *);

void hooks_tell_event(struct hooks *, enum trace_kind, const json_t *event);

/* A block begins to run; `iteration` is 0 before the first. */
void hooks_tell_code(struct hooks *, const char *run, int depth, int iteration,
		     struct rlmd_text code);
void hooks_tell_budget_warning(struct hooks *, const char *text);
void hooks_tell_delta(struct hooks *, struct rlmd_text words);
void hooks_tell_check(struct hooks *, struct rlmd_text answer, struct rlmd_check *); /* `check`
											is set */

/* False: the host refuses it, for a reason. */
bool hooks_allow(struct hooks *, const struct rlmd_activity *, struct rlmd_error *);

/* The hook may free the job, and this with it. */
void hooks_tell_end(struct hooks *, const struct rlmd_result *);

/*
 * batch/work.h - one job of a batch, from its line to its result.
 *
 *   line -> context (batch/contexts.h) -> a job of the engine -> its result object
 *
 * A line whose context cannot be had ends as a job that failed does: with a result object.
 */
#pragma once

#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>

struct contexts;
struct event_base;
struct tenancy;
struct work;

/* What all jobs have; lent until the last work is gone. */
struct work_setting {
	struct event_base *base;
	struct rlmd_engine *engine;
	struct contexts *contexts;
	const char *directory;       /* of the jobs file */
	struct rlmd_job_options job; /* what a line does not say */
	struct rlmd_limits limits;   /* likewise */
};

struct work_end {
	struct rlmd_error error; /* kind NONE: there is an answer */
	struct rlmd_text result; /* the result object; lent until the callback returns */
	struct rlmd_text trace;  /* likewise: its events where it has no answer, a line each */
	int64_t cost, tokens;    /* pico-dollars */
	int64_t paid_cost, paid_tokens; /* of these, what this attempt has paid */
	const char *limited_by; /* lent: the account above the job whose limit ended it; or NULL */
};

/* Once, never before work_new() has returned. The work may be freed. */
typedef void work_fn(void *owner, const struct work_end *);

/* The line is copied, the tenancy and the journal lent until it is freed; the account pays. */
struct work *work_new(const struct work_setting *, const struct tenancy *, struct rlmd_text line,
		      const struct rlmd_journal *, struct rlmd_account *, work_fn *, void *owner);

/* The result object of a job that was never begun, new. */
char *work_no_result(const struct rlmd_error *);

/* It ends soon, with RLMD_ERROR_CANCELLED where it has not ended yet. */
void work_cancel(struct work *);

/* False, and nothing is filled, as long as its context is read. */
bool work_status(const struct work *, struct rlmd_job_status *ret);
void work_free(struct work *); /* nothing is told any more; NULL is fine */

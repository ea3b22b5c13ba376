/*
 * batch/batch_job.h - one job of a batch, from its line to its result.
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
struct batch_job;
struct rlmd_span_exporter;

/* The settings of all jobs; lent until the last work is gone. */
struct batch_job_setting {
	struct event_base *base;
	struct rlmd_engine *engine;
	struct contexts *contexts;
	const char *directory;            /* of the jobs file */
	struct rlmd_job_options job;      /* what a line does not say */
	struct rlmd_limits limits;        /* likewise */
	struct rlmd_span_exporter *spans; /* lent: gets those of each job; or NULL */
};

struct batch_job_end {
	struct rlmd_error error; /* kind NONE: there is an answer */
	bool degraded;           /* it was forced, or one that it was made of was degraded */
	struct rlmd_text result; /* the result object; lent until the callback returns */
	struct rlmd_text trace;  /* likewise: its events where it has no answer, a line each */
	int64_t cost, tokens;    /* pico-dollars */
	int64_t paid_cost, paid_tokens; /* of these, what this attempt has paid */
	/* Lent: the account above the job whose limit ended it, with an error or a forced answer;
	 * or NULL. And which limit that was. */
	const char *limited_by;
	enum rlmd_stop stop;
};

/* Once, never before batch_job_new() has returned. The work may be freed. */
typedef void batch_job_fn(void *owner, const struct batch_job_end *);

/* The line is copied, the tenancy and the journal lent until it is freed; the account pays. */
struct batch_job *batch_job_new(const struct batch_job_setting *, const struct tenancy *,
				struct rlmd_text line, const struct rlmd_journal *,
				struct rlmd_account *, batch_job_fn *, void *owner);

/* The result object of a job that was never begun, new. */
char *batch_job_no_result(const struct rlmd_error *);

/* It ends soon, with RLMD_ERROR_CANCELLED where it has not ended yet. */
void batch_job_cancel(struct batch_job *);

/* False, and nothing is filled, as long as its context is read. */
bool batch_job_status(const struct batch_job *, struct rlmd_job_status *ret);
void batch_job_free(struct batch_job *); /* nothing is told any more; NULL is fine */

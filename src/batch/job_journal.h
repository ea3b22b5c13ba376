/*
 * batch/job_journal.h - what a job has had from models, kept in the store, so that another attempt
 * pays only for what it has not had.
 */
#pragma once

#include <rlmd/job.h>

struct job_journal;
struct purse_tenant;
struct store;
struct store_claim;

/* What the store has of the job is there; or `err` (else NULL): RLMD_ERROR_INTERNAL. */
typedef void job_journal_fn(void *owner, const struct rlmd_error *err);

/* Reads all of it, and tells so once, never before it returns. Store and purse are lent; what
 * is billed counts with the purse. */
struct job_journal *job_journal_new(struct store *, const struct store_claim *,
				    struct purse_tenant *, job_journal_fn *, void *owner);
void job_journal_free(struct job_journal *); /* after the job; NULL is fine */

/* For the job's options; lent as long as the journal is there. */
const struct rlmd_journal *job_journal_hooks(const struct job_journal *);

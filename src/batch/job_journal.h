/*
 * batch/job_journal.h - what a job has had from models, kept in the store, so that another attempt
 * pays only for what it has not had.
 */
#pragma once

#include <rlmd/job.h>

struct job_journal;
struct lease;
struct store;
struct store_claim;

/* All that the store has of the job was read; or `err` (else NULL): RLMD_ERROR_INTERNAL. */
typedef void job_journal_fn(void *owner, const struct rlmd_error *err);

/* Reads all of it, and tells so once, never before it returns. Store and lease are lent; bills
 * count at the lease and at those above it. */
struct job_journal *job_journal_new(struct store *, const struct store_claim *, struct lease *,
				    job_journal_fn *, void *owner);
void job_journal_free(struct job_journal *); /* after the job; NULL is fine */

/* For the job's options; lent as long as the journal is there. */
const struct rlmd_journal *job_journal_hooks(const struct job_journal *);

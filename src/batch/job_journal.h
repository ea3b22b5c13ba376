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

/* Store and lease are lent; bills count at the lease and at those above it. */
struct job_journal *job_journal_new(struct store *, const struct store_claim *, struct lease *);
void job_journal_free(struct job_journal *); /* after the job; NULL is fine */

/* Reads all that the store has of the job, before it begins, and tells so once. At a first attempt
 * the store is not asked, and it is told before this returns; otherwise later. */
void job_journal_read(struct job_journal *, job_journal_fn *, void *owner);

/* For the job's options; lent as long as the journal is there. */
const struct rlmd_journal *job_journal_hooks(const struct job_journal *);

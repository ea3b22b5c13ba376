/*
 * batch/runner.h - a process at work on a batch, from its jobs file to its results file; or on
 * those that others loaded into a store.
 *
 *   store opened -> jobs loaded -> results file opened, and what the store has written to it
 *     |                              -> jobs carried out (batch/dispatcher.h), each result added
 *     |                                   -> the end
 *     `-> batches found ---------------> jobs carried out, of one batch after the other ---^
 *
 * Whatever ends the process in between, the same call goes on from there.
 */
#pragma once

#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>

#include "batch/dispatcher.h"
#include "batch/jobs_file.h"
#include "batch/results_file.h"
#include "batch/summary.h"
#include "batch/tenancies.h"

struct runner;
struct event_base;
struct tenants;
struct scoreboard;
struct rlmd_span_exporter;

struct runner_options {
	const char *jobs;    /* lent: the path of the file; NULL: others load the jobs */
	const char *results; /* lent: the path; NULL: without `jobs` there is none */
	const char *batch;   /* lent: its name; NULL: that of the jobs file, or all batches */
	const char *store;   /* lent: an address as store_open() has it */
	struct jobs_file_shard shard; /* of the jobs file */
	bool add, skip_bad_lines;     /* as struct job_loader_options has them */
	const char *default_tenant;   /* lent: likewise */
	struct results_rerun rerun;   /* jobs that are over, and are tried again */
	bool sort;                    /* in the end the results are in the order of the jobs */
	bool submit;                  /* the jobs are loaded, and that is all: others work */
	bool wait;                    /* without `jobs`: for batches that are still to come */
	int64_t max_jobs, max_attempts;
	int64_t lease_ms; /* of a claim: when it is over, others take the job */
	int64_t reserve;  /* bytes of memory, as struct dispatcher_options has them */
	struct halt halt;
	struct rlmd_engine *engine;    /* lent */
	struct rlmd_job_options job;   /* what lines do not say; lent, as are its texts */
	struct rlmd_limits limits;     /* likewise */
	const struct tenants *tenants; /* lent: as rlmd.conf has them; NULL: there are none */
	struct rlmd_amount limit;      /* of all jobs of a batch together; RLMD_UNLIMITED: none */
	struct tenancies_options tenancies; /* sandboxes are asked for when jobs are to be begun */
	struct rlmd_span_exporter *spans;   /* lent: gets those of each job; or NULL */
	/* Warns the user; lent. */
	void (*warn)(void *owner, const char *text);
	/* Once, last. `err`, or NULL: why it could not go on. The batch may be freed. */
	void (*end)(void *owner, const struct summary *, const struct rlmd_error *err);
	void *owner;
};

/* RLMD_ERROR_USAGE where the store's address is none. Nothing is told before it returns. */
struct runner *runner_new(struct event_base *, const struct runner_options *, struct rlmd_error *);
void runner_free(struct runner *); /* nothing is told any more; NULL is fine */

/* How the batch that is worked on stands; lent, and as it is until the loop turns. */
const struct scoreboard *runner_scoreboard(const struct runner *);
const char *runner_name(const struct runner *); /* of the batch; lent; NULL: one after the other */

/* No job is begun any more; it ends with those that are. */
void runner_drain(struct runner *);

/* Jobs that were begun are stopped, too, and wait for the next start. */
void runner_stop(struct runner *);

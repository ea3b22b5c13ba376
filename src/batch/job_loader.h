/*
 * batch/job_loader.h - a jobs file, read into a store as a stream: all of it or nothing.
 *
 * A batch is known by its name. The first time its jobs are added, and run once the file was read
 * to its end. The next time the same file is only compared with what the store has, and another
 * one is refused, with what is different; with `add` what is new in it is added.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

#include "batch/jobs_file.h"

struct event_base;
struct job_loader;
struct store;
struct tenants;

struct loaded {
	int64_t batch; /* in the store */
	int64_t jobs;  /* of the file, each once */
	int64_t added; /* that the store did not have */
	uint64_t bad;  /* lines that are no jobs */
	bool again;    /* the batch was there */
};

struct job_loader_options {
	const char *path;              /* lent; "-" is standard input */
	const char *name;              /* lent: of the batch */
	const char *directory;         /* lent: of the file, absolute */
	bool for_others;               /* other processes may carry it out */
	const struct tenants *tenants; /* lent: where there are any, all that jobs may name */
	const char *default_tenant;    /* lent: whose lines are that name none; NULL: nobody's */
	const char *results;           /* lent: the path of the results; NULL: there are none */
	bool add;                      /* jobs to a batch that is there */
	bool skip_bad;                 /* bad lines are told, and the others run */
	struct jobs_file_shard shard;  /* which of the jobs */
	/* Each bad line, of the first 100, with its number; and what has no effect; lent. */
	void (*warn)(void *owner, const char *text);
	/* Once, last: the loader may be freed. `err`, or NULL: nothing runs. RLMD_ERROR_INPUT: the
	 * file; RLMD_ERROR_USAGE: it is another one; RLMD_ERROR_INTERNAL: the store. */
	void (*end)(void *owner, const struct loaded *, const struct rlmd_error *err);
	void *owner;
};

/* Where paths in a jobs file start from, absolute, and by what name its batch is known; new. */
void job_loader_split(const char *path, char **ret_directory, char **ret_name);

/* By what name a shard of a batch is known, new: shards may be in one store, as batches of their
 * own.
 */
char *job_loader_batch(const char *name, const struct jobs_file_shard *);

/* The store is lent. Nothing is told before it returns. */
struct job_loader *job_loader_new(struct event_base *, struct store *,
				  const struct job_loader_options *);
/* It ends soon, with RLMD_ERROR_CANCELLED, unless all jobs were loaded before; none of them runs.
 * NULL is fine. */
void job_loader_stop(struct job_loader *);
void job_loader_free(struct job_loader *); /* nothing is told any more; NULL is fine */

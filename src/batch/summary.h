/*
 * batch/summary.h - what became of a batch: in numbers, in words, and as an exit status.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct store_count;
struct store_job;

enum { SUMMARY_KINDS = RLMD_ERROR_MACHINE + 1 };

/* Of all jobs of the batch, whenever they ran. */
struct summary {
	int64_t succeeded, failed;
	int64_t degraded;             /* of those that succeeded: with less than was asked for */
	int64_t kinds[SUMMARY_KINDS]; /* of those that failed, by the kind of their errors */
	int64_t pending;              /* neither */
	int64_t cost, tokens;         /* of those that are over */
	int64_t added;                /* that the store did not have before */
	uint64_t bad;                 /* lines that were passed over */
	bool refused;                 /* a key was: jobs wait for another one */
	bool capped;                  /* a limit on money was reached: jobs wait for a higher one */
	bool unable;                  /* a tenant's isolation cannot be had: its jobs wait */
	const char *level;            /* static: of several tenants, where it is less than what
					 keeps them apart; or NULL */
	bool halted;                  /* enough had failed, and the others were not begun */
};

/* Adds what the store counts; `written`: the jobs that are over were added from their results. */
void summary_count(struct summary *, const struct store_count *, size_t count, bool written);

/* Adds a job that is over; what others summed up. */
void summary_add_job(struct summary *, const struct store_job *);
void summary_add(struct summary *, const struct summary *other);

/* 0: all succeeded. 3: some did not, or the batch was halted. 4, 5 and 7: none could, as a key was
 * refused, the provider was not available, or the isolation is less than required. 6: some are
 * still pending. */
int summary_exit_status(const struct summary *);

/* "300 jobs: 298 succeeded, 2 failed (1 schema, 1 refused); $0.21, 12345 tokens". */
void summary_write(const struct summary *, struct evbuffer *out);

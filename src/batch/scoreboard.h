/*
 * batch/scoreboard.h - how a batch stands while a process works on it, for whoever watches.
 *
 * Of the batch: each tenant's jobs by state, as the store counted them last, and as they went on
 * here since. Of this process: the jobs at work, and what became of its attempts.
 */
#pragma once

#include <rlmd/job.h>
#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "batch/fair_queue.h"
#include "batch/summary.h"
#include "store/store.h"

struct batch_job_end;

/* How an attempt at a job ended. */
enum scoreboard_outcome {
	SCOREBOARD_SUCCEEDED,
	SCOREBOARD_FAILED,   /* for good */
	SCOREBOARD_RETRIED,  /* it failed, and is tried again later */
	SCOREBOARD_RETURNED, /* nothing is wrong with it: it waits as if it had not been begun */
	SCOREBOARD_OUTCOMES,
};

struct scoreboard_tenant {
	char *name;                            /* owned; "": nobody's */
	int64_t jobs[STORE_JOB_STATES];        /* of the batch, at work anywhere */
	int64_t degraded;                      /* of those that succeeded */
	int64_t cost, tokens;                  /* of its jobs that are over */
	int64_t at_work;                       /* here */
	int64_t attempts[SCOREBOARD_OUTCOMES]; /* that ended here */
	int64_t errors[SUMMARY_KINDS];         /* of these, by kind */
	int64_t paid_cost, paid_tokens;        /* by these */
	enum tenant_stop stop;                 /* why none of its jobs is begun */
	char *why; /* owned: the same in words; NULL: nothing was said */
};

/* A job at work. */
struct scoreboard_job {
	TAILQ_ENTRY(scoreboard_job) next;
	struct scoreboard *board;         /* lent */
	struct scoreboard_tenant *tenant; /* lent */
	char *custom_id;                  /* owned */
	int64_t attempt;                  /* from 1 */
	int64_t began_ms;                 /* on clock_ms() */
	struct rlmd_job_status status;    /* when somebody looked last; zero: it is not begun yet */
	/* private */
	enum scoreboard_outcome outcome;
	bool degraded;
	int64_t cost, tokens;
};

#define SCOREBOARD_BUCKETS 11
enum { SCOREBOARD_RECENT = 64 };

struct scoreboard {
	struct scoreboard_tenant **tenants; /* owned, in the order in which they came */
	size_t count;
	TAILQ_HEAD(, scoreboard_job) jobs; /* owned: the oldest first */
	/* Attempts that ended by themselves, by how long they took: up to each bound, and beyond
	 * the last. */
	int64_t took[SCOREBOARD_BUCKETS + 1];
	int64_t took_ms; /* all of them */
	bool draining;   /* no job is begun any more */
	/* private: when jobs ended last, and how many had then */
	struct {
		int64_t at_ms, ended;
	} recent[SCOREBOARD_RECENT];
	int64_t samples; /* that were taken; the first is where it began */
};

/* In milliseconds, ascending. */
extern const int64_t scoreboard_bounds[SCOREBOARD_BUCKETS];

const char *scoreboard_outcome_name(enum scoreboard_outcome); /* static */
const char *scoreboard_stop_name(enum tenant_stop);           /* static: "key"; "" goes on */

struct scoreboard *scoreboard_new(void);
void scoreboard_free(struct scoreboard *); /* NULL is fine */

/* Another batch is worked on: nothing is known of its jobs yet. Counts of this process stay. */
void scoreboard_next(struct scoreboard *);

/* Takes the store's numbers for the tenants that it names. */
void scoreboard_count(struct scoreboard *, const struct store_count *, size_t count);

/* Why none of their jobs is begun, of each tenant of the queue. */
void scoreboard_look(struct scoreboard *, const struct fair_queue *);

/* Why the jobs of a tenant wait, in words. */
void scoreboard_explain(struct scoreboard *, const char *tenant, const char *why);

/* A job was claimed; lent until it leaves. */
struct scoreboard_job *scoreboard_begin(struct scoreboard *, const struct store_job *);

/* It ended, and what becomes of it is about to be written. */
void scoreboard_end(struct scoreboard_job *, const struct batch_job_end *, enum scoreboard_outcome);

/* It is off the board. `written`: the store has what became of it; else it waits. NULL is fine. */
void scoreboard_leave(struct scoreboard_job *, bool written);

/* All of it at this moment. */
struct scoreboard_sum {
	int64_t jobs[STORE_JOB_STATES];
	int64_t at_work, calls_in_flight;
	int64_t cost, tokens; /* also of jobs at work, so far */
	/* Until nothing is left to do that may be done, at the rate at which jobs ended lately; -1
	 * as long as too few have to tell. */
	int64_t left_ms;
};

struct scoreboard_sum scoreboard_sum(const struct scoreboard *, int64_t now_ms);

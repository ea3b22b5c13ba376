/*
 * store/values.h - the values that go into a store and come out of it: batches, jobs, exchanges,
 * accounts, results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum store_fault {
	STORE_FINE,
#define FAULT(fault, meaning) STORE_##fault,
#include "store/faults.def"
#undef FAULT
};

enum store_state {
	STORE_JOB_PENDING,
	STORE_JOB_RUNNING,
	STORE_JOB_SUCCEEDED,
	STORE_JOB_FAILED,
	STORE_JOB_STATES,
};

/* A batch, as it is known by its name. */
struct store_batch {
	int64_t id;            /* 0: there is none of that name */
	bool ready;            /* it was loaded to its end: its jobs run */
	int64_t jobs;          /* that run, or have run */
	struct rlmd_text name; /* lent, as all texts of results */
	/* of the jobs file that it was loaded from; empty while not ready */
	struct rlmd_text digest;
	struct rlmd_text loader; /* of store_find() only: the node that loads it, or did */
};

/* The right to load a batch. */
struct store_load {
	int64_t batch;
	int64_t token; /* 0: the batch is ready, and nothing may be added to it */
	int64_t after; /* highest number of a job that is ready; the loader's come after it */
};

/* A job as it is loaded: a line of a jobs file. */
struct store_line {
	int64_t number;             /* its line's number, from 1; added to store_load's `after` */
	struct rlmd_text custom_id; /* not empty; once in a batch */
	struct rlmd_text tenant;    /* may be empty: nobody's */
	struct rlmd_text digest;    /* of what makes it the same job */
	struct rlmd_text line;
};

/* Result of adding a line. */
enum store_line_state {
	STORE_LINE_NEW,
	STORE_LINE_SAME,    /* the batch has this custom_id with the same digest */
	STORE_LINE_DIFFERS, /* it has it with another one */
};

/* A job that was claimed (without what is of results), the result of one that is over, or either.
 */
struct store_job {
	int64_t id;       /* in the store; never 0 */
	int64_t token;    /* for whoever claimed it */
	int64_t number;   /* order of the jobs file */
	int64_t attempts; /* claims so far that count, this one with them */
	bool suspect;     /* who claimed it last has not said how that ended */
	struct rlmd_text custom_id, tenant, line;
	/* of results, without `line` */
	struct rlmd_text digest;
	enum store_state state;
	int64_t rank; /* in the order in which jobs were finished, from 1 */
	struct rlmd_text result, error, trace;
	int64_t cost, tokens;
};

/* A claim on a job, for those that work on it. */
struct store_claim {
	int64_t job, token;
};

/* Stands for the error of a job that succeeded, with less than was asked for. */
#define STORE_DEGRADED "degraded"

/* How an attempt at a job ended. */
struct store_outcome {
	bool succeeded;
	struct rlmd_text result; /* a result line, or whatever the caller reads later */
	struct rlmd_text error;  /* name of its kind; where it succeeded STORE_DEGRADED, or empty */
	int64_t cost, tokens;
	struct rlmd_text trace; /* of one that failed: its events, for people; or empty */
	int64_t attempts;       /* to be added: -1, it was claimed and not begun */
};

/* One exchange of a job's journal. */
struct store_exchange {
	int64_t id; /* grows along the journal */
	struct rlmd_text key;
	int64_t number; /* of those with this key, from 0 */
	struct rlmd_text bytes;
	int64_t cost, tokens;
};

/* An account: what one tenant may spend in one batch or in one day. */
struct store_account {
	int64_t id;
	int64_t spent_cost, spent_tokens;
	int64_t held_cost, held_tokens; /* by leases */
	int64_t ends_ms;                /* of a day's: until the store's next day (UTC) begins */
	int64_t limit_cost, limit_tokens;
};

/* Money and tokens that one node may spend until the lease is over. */
struct store_lease {
	int64_t id; /* 0: nothing was left to grant, or it is over and was ended */
	int64_t cost, tokens;
	/* Of store_lease_hold() only: */
	int64_t open_cost, open_tokens; /* of these, what may be spent though no journal shows it */
	int64_t free_cost, free_tokens; /* what the account has besides, that nobody holds */
	int64_t others_ms; /* until the first of the other leases that hold something, beside what
			      journals show, is over; may be negative; INT64_MAX: there is none */
};

struct store_count {
	struct rlmd_text tenant;
	int64_t jobs[STORE_JOB_STATES]; /* by state */
	int64_t degraded;               /* of those that succeeded */
	int64_t cost, tokens;           /* of jobs that are over */
	int64_t due_ms; /* until the first job that waits, or whose lease runs, can be claimed; may
			   be negative; INT64_MAX: there is none */
};

/* A node that has jobs or money of a store. */
struct store_node {
	struct rlmd_text node;
	int64_t jobs;    /* that it has claimed and not told the end of */
	int64_t left_ms; /* until the last of its leases is over; may be negative */
};

/* A breaker that is open: a key that does not work. */
struct store_breaker {
	struct rlmd_text tenant, provider, why;
	int64_t since_ms; /* how long ago it opened */
};

/* The result of an operation; lent until the callback returns. Only members that the operation says
 * it fills have a meaning. */
struct store_result {
	enum store_fault fault;
	struct rlmd_error error; /* where it is not STORE_FINE: for people, with what to do */
	size_t count;            /* how many elements the array has that the operation fills */
	struct store_load load;
	struct store_account account;
	struct store_lease lease;
	const struct store_batch *batches;
	const enum store_line_state *lines;
	const struct store_job *jobs;
	const struct store_exchange *exchanges;
	const struct store_count *counts;
	const struct store_breaker *breakers;
	const struct store_node *nodes;
	const bool *lost;
};

typedef void store_fn(void *owner, const struct store_result *);

enum store_news {
	STORE_CHANGED,   /* others may have written: jobs to claim, results to read, breakers */
	STORE_WENT_AWAY, /* the server cannot be reached; operations wait, in order */
	STORE_CAME_BACK,
	STORE_HELD, /* another process holds it locked; operations wait, in order */
	STORE_FREED,
	STORE_NEWS, /* how many there are */
};

typedef void store_news_fn(void *owner, enum store_news);

struct store_options {
	int64_t patience_ms; /* how long to wait for others' locks; 0: as long as it takes, and
				`news` tells it after two seconds (PostgreSQL: ten) */
	bool existing;       /* none is made: the store has to be there */
	const char *node;    /* as others are told of who loads a batch; NULL: they are not */
	int64_t look_ms; /* SQLite: how often to look for others' writes; 0: a second; -1: never */
	store_news_fn *news; /* or NULL; from the loop, any number of times */
	void *owner;         /* lent: of `news` and of `opened` */
};

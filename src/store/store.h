/*
 * store/store.h - what a batch remembers: its jobs, who works on them, their journals, their money.
 *
 * A store outlives whoever uses it, and may be used by many at once, on many machines. It is a file
 * of SQLite or a database of PostgreSQL; what is said here holds for both.
 *
 * Each operation is one transaction, asynchronous, on the event loop: it copies what it is given,
 * returns at once, and calls back exactly once, never before it has returned. Nothing in the loop
 * waits for a disk or a server. Operations take effect in the order in which they were asked for.
 * When a callback tells STORE_FINE, all that the operation wrote is durable: it survives the end of
 * the process and of the machine. When it tells anything else, nothing of it was written, with one
 * exception, which is said at store_journal_add(). Each operation may be asked for again when it is
 * not known whether it was done: the second time it finds its own work and tells STORE_FINE.
 *
 * Time is the store's: PostgreSQL's clock, or that of the machine that has the file. What goes in
 * and comes out are durations in milliseconds; nobody compares clocks. Money is in pico-dollars
 * (base/money.h). Names are UTF-8 without NUL; lines, results and journals are any bytes.
 *
 * Who may write about a job is decided by its token, which grows with each claim: who had the job
 * before is refused, however late, and from wherever, it comes back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rlmd/rlmd.h>

struct event_base;
struct query;
struct store;

enum store_fault {
	STORE_FINE,
#define FAULT(fault, name, meaning) STORE_##fault,
#include "store/faults.def"
#undef FAULT
};

const char *store_fault_name(enum store_fault);    /* static: "locked" */
const char *store_fault_meaning(enum store_fault); /* static, for people */

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
	struct rlmd_text
		digest; /* of the jobs file that it was loaded from; empty while not ready */
};

/* Who loads a batch now. */
struct store_load {
	int64_t batch;
	int64_t token; /* 0: the batch is ready, and nothing may be added to it */
	int64_t after; /* the highest number of a job that is ready; the loader's jobs come after it
			*/
};

/* A job as it is loaded: a line of a jobs file. */
struct store_line {
	int64_t number; /* its place in the order of the file, from 1; added to store_load's `after`
			 */
	struct rlmd_text custom_id; /* not empty; once in a batch */
	struct rlmd_text tenant;    /* may be empty: nobody's */
	struct rlmd_text digest;    /* of what makes it the same job */
	struct rlmd_text line;
};

/* What became of a line. */
enum store_line_state {
	STORE_LINE_NEW,
	STORE_LINE_SAME,    /* the batch has this custom_id with the same digest */
	STORE_LINE_DIFFERS, /* it has it with another one */
};

/* A job that was claimed (without what is of results), or the result of one that is over. */
struct store_job {
	int64_t id;       /* in the store; never 0 */
	int64_t token;    /* for whoever claimed it; 0 in a result */
	int64_t number;   /* order of the jobs file */
	int64_t attempts; /* claims so far that count, this one with them */
	struct rlmd_text custom_id, tenant, line;
	/* of results, without `line` */
	struct rlmd_text digest;
	enum store_state state;
	int64_t place; /* in the order in which jobs were finished, from 1 */
	struct rlmd_text result, error, trace;
	int64_t cost, tokens;
};

/* A claim on a job, for those that work on it. */
struct store_claim {
	int64_t job, token;
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
	/* Of store_money_hold() only: */
	int64_t open_cost, open_tokens; /* of these, what may be spent though no journal shows it */
	int64_t free_cost, free_tokens; /* what the account has besides, that nobody holds */
	int64_t others_ms; /* until the first of the other leases that hold something, beside what
			      journals show, is over; may be negative; INT64_MAX: there is none */
};

struct store_count {
	struct rlmd_text tenant;
	int64_t jobs[STORE_JOB_STATES]; /* by state */
	int64_t cost, tokens;           /* of jobs that are over */
	int64_t due_ms; /* until the first job that waits, or whose lease runs, can be claimed; may
			   be negative; INT64_MAX: there is none */
};

/* Who has jobs or money of a store. */
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

/* What an operation tells; lent until the callback returns. Only what the operation says it fills
 * has a meaning. */
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
};

typedef void store_news_fn(void *owner, enum store_news);

struct store_options {
	int64_t patience_ms; /* how long to wait for others' locks; 0: 10 seconds */
	int64_t look_ms; /* SQLite: how often to look for others' writes; 0: a second; -1: never */
	store_news_fn *news; /* or NULL; from the loop, any number of times */
	void *owner;         /* lent: of `news` and of `opened` */
};

/*
 * Opens what `place` names: "postgresql://..." or "postgres://..." as libpq has it; "sqlite:PATH"
 * or a path, whose file is made where there is none, for its owner only. The schema is made or
 * brought up to date under a lock. `opened` tells STORE_FINE or why not: AWAY (the server cannot be
 * reached), LOCKED, CORRUPT, NEWER (a later rlmd has been at it), FULL, USAGE (no store of ours, no
 * permission, no such database). After a failure every operation tells the same. Operations may be
 * asked for at once. Only a store that was open once waits for a server that went away.
 *
 * NULL: RLMD_ERROR_USAGE where the place is none, or RLMD_ERROR_INTERNAL where the system has no
 * thread to give. Owned by the caller. A server's name is looked up while this waits; an address in
 * the URL (hostaddr=) avoids that.
 */
struct store *store_open(struct event_base *, const char *place, const struct store_options *,
			 store_fn *opened, struct rlmd_error *);

/* Whether other machines may use it, too. */
bool store_is_shared(const char *place);

/* No callback comes any more. What was asked for and has not begun is not done; what has begun may
 * or may not be: of SQLite, a transaction that goes on is waited for. NULL is fine. */
void store_free(struct store *);

/*
 * Every operation below returns itself, lent until its callback; store_forget() keeps the callback
 * from coming (NULL is fine), and the operation goes on. An argument that is wrong (a name that is
 * no UTF-8 or has a NUL, an empty array) is told as USAGE by the callback.
 */
void store_forget(struct query *);

/*
 * Loading. A batch runs when it was loaded to its end, and not before: all of it or nothing.
 *
 * store_load_begin() makes the batch where there is none. Where it is ready, and `add` is false,
 * load.token is 0: nothing to do, or another file, as `batches[0].digest` tells. Otherwise the
 * caller is its loader now: whoever loaded it before is refused from now on, and what that one left
 * is gone. Fills load and batches (one).
 */
struct query *store_load_begin(struct store *, struct rlmd_text name, bool add, store_fn *,
			       void *owner);

/* Adds lines, those only that are new. Fills lines, for each what it was. REFUSED: somebody else
 * loads. */
struct query *store_load_add(struct store *, const struct store_load *, const struct store_line *,
			     size_t count, store_fn *, void *owner);

/* All that was added is part of the batch, and runs. The digest must not be empty. REFUSED: as
 * above. */
struct query *store_load_end(struct store *, const struct store_load *, struct rlmd_text digest,
			     store_fn *, void *owner);

/* What a batch that is ready has of these lines; writes nothing. Fills lines. */
struct query *store_compare(struct store *, int64_t batch, const struct store_line *, size_t count,
			    store_fn *, void *owner);

/* The batch of this name: fills batches, one or none. */
struct query *store_find(struct store *, struct rlmd_text name, store_fn *, void *owner);

/* All batches that are ready, in the order in which they were made. Fills batches. */
struct query *store_batches(struct store *, store_fn *, void *owner);

/* Those of them that have jobs which are not over. Fills batches. */
struct query *store_unfinished(struct store *, store_fn *, void *owner);

/*
 * Up to `most` jobs of a tenant (a NULL text: of any), by the order of the file: those that wait
 * and are due, and those of which the lease is over. They are the caller's for `lease_ms`. Fills
 * jobs.
 */
struct query *store_claim(struct store *, int64_t batch, const struct rlmd_text *tenant,
			  struct rlmd_text node, int64_t most, int64_t lease_ms, store_fn *,
			  void *owner);

/* Holds claims for so long from now. Fills lost, for each whether somebody else has it or it is
 * over. One that is late but that nobody took is held again. */
struct query *store_renew(struct store *, const struct store_claim *, size_t count,
			  int64_t lease_ms, store_fn *, void *owner);

/*
 * Keeps an exchange with a model, before its answer is used. What it cost is counted at the leases
 * (those that are 0 do not count), or, where one is over, at its account, as far as it is more than
 * what was open then; that may then be over its limit: it was paid. An exchange with this key and
 * number that is there already stays, and nothing is counted. REFUSED: the claim is stale; nothing
 * is kept or counted.
 */
struct query *store_journal_add(struct store *, const struct store_claim *,
				const struct store_exchange *, const int64_t *leases, size_t count,
				store_fn *, void *owner);

/* Up to `most` exchanges of a job, by id, those after `after` (0: from the first). Fills
 * exchanges. */
struct query *store_journal_read(struct store *, int64_t job, int64_t after, int64_t most,
				 store_fn *, void *owner);

/* What became of a job. The journal of one that succeeded goes. REFUSED: the claim is stale. */
struct store_outcome {
	bool succeeded;
	struct rlmd_text result; /* a result line, or whatever the caller reads later */
	struct rlmd_text error;  /* name of its kind; empty where it succeeded */
	int64_t cost, tokens;
	struct rlmd_text trace; /* of one that failed: its events, for people; or empty */
	bool untried;           /* it was claimed, and not begun: that is no attempt */
};

struct query *store_finish(struct store *, const struct store_claim *, const struct store_outcome *,
			   store_fn *, void *owner);

/* Gives a job back: it is due in `delay_ms`. `counts`: it was an attempt. REFUSED: stale. */
struct query *store_postpone(struct store *, const struct store_claim *, int64_t delay_ms,
			     struct rlmd_text error, bool counts, store_fn *, void *owner);

/*
 * Jobs that failed with this error (NULL: with any) wait again, with no attempt so far. Their
 * journals go where `afresh` is true: with the same answers some would fail in the same way. Fills
 * count: how many they are.
 */
struct query *store_rerun(struct store *, int64_t batch, const struct rlmd_text *error, bool afresh,
			  store_fn *, void *owner);

/*
 * The account of a tenant for one batch, or, where `batch` is 0, for the store's day of today;
 * made where there is none. Limits (INT64_MAX: none) hold from now on; one that is negative stays
 * as it is. Fills account.
 */
struct query *store_account(struct store *, int64_t batch, struct rlmd_text tenant,
			    int64_t limit_cost, int64_t limit_tokens, store_fn *, void *owner);

/*
 * Takes up to so much of an account for a node to spend within `lease_ms`; what is granted is what
 * the limits leave, besides what was spent and what leases hold. Nothing is granted where nothing
 * is left of what was asked for; who asks for nothing has an empty one. Leases that are over are
 * ended first: what journals show of them was spent, and what was open; the rest is free. Fills
 * lease.
 */
struct query *store_money_take(struct store *, int64_t account, struct rlmd_text node, int64_t cost,
			       int64_t tokens, int64_t lease_ms, store_fn *, void *owner);

/*
 * Makes a lease larger or smaller, and holds it for so long from now: `cost` and `tokens` are what
 * it is to have in all, what journals show included. It grows by as much as the limits leave; what
 * it gives up is free for others. `open_cost` and `open_tokens` are what may be spent while no
 * journal shows it, by calls in flight: should the lease run out that counts as spent, for nobody
 * hears any more what they cost. Fills lease. Leases of others that are over are ended first.
 */
struct query *store_money_hold(struct store *, int64_t lease, int64_t cost, int64_t tokens,
			       int64_t open_cost, int64_t open_tokens, int64_t lease_ms, store_fn *,
			       void *owner);

/* Holds leases for so long from now. Fills lost: for each whether it was ended. */
struct query *store_money_renew(struct store *, const int64_t *leases, size_t count,
				int64_t lease_ms, store_fn *, void *owner);

/* Ends a lease: so much was spent in all, journals included; the rest is free. Of one that was
 * ended as over, what was spent beyond what was counted then is counted now: it was paid; or what
 * was less is free again. One that is settled already stays as it is. */
struct query *store_money_settle(struct store *, int64_t lease, int64_t cost, int64_t tokens,
				 store_fn *, void *owner);

/* A breaker of a tenant's key; opened again, it keeps its time. */
struct query *store_breaker_open(struct store *, int64_t batch, struct rlmd_text tenant,
				 struct rlmd_text provider, struct rlmd_text why, store_fn *,
				 void *owner);
struct query *store_breaker_close(struct store *, int64_t batch, struct rlmd_text tenant,
				  struct rlmd_text provider, store_fn *, void *owner);
struct query *store_breakers(struct store *, int64_t batch, store_fn *, void *owner);

/* Up to `most` jobs that run, by the order of the file, those after the number `after` (0: from the
 * first). Fills jobs, but of these only number, custom_id and digest. */
struct query *store_ids(struct store *, int64_t batch, int64_t after, int64_t most, store_fn *,
			void *owner);

/* Of each tenant that has jobs. Reads all jobs of the batch. Fills counts. */
struct query *store_counts(struct store *, int64_t batch, store_fn *, void *owner);

/* Who has claims or money of a batch, or, where that is 0, of any. Fills nodes. */
struct query *store_nodes(struct store *, int64_t batch, store_fn *, void *owner);

/*
 * This node is known to be dead: its jobs, of whatever batch, wait for others now, and its money is
 * ended when others take some. Should it write all the same, it is refused.
 */
struct query *store_release(struct store *, struct rlmd_text node, store_fn *, void *owner);

/*
 * Up to `most` jobs that are over, in the order in which they ended, those after the place `after`
 * (0: from the first): who goes on from the last place that it has seen misses none. `sorted`: by
 * the order of the file, and `after` is a number. Fills jobs.
 */
struct query *store_results(struct store *, int64_t batch, int64_t after, int64_t most, bool sorted,
			    store_fn *, void *owner);

/*
 * store/store.h - the memory of a batch: its jobs, claims on them, journals and accounts.
 *
 * A store outlives its users, and many may use it at once, on many machines. It is a file of SQLite
 * or a database of PostgreSQL; all that follows holds for both.
 *
 * Each operation is one transaction, asynchronous, on the event loop: it copies its arguments,
 * returns at once, and calls back exactly once, never before it has returned. Nothing in the loop
 * waits for a disk or a server. Operations take effect in the order in which they were asked for.
 * When a callback tells STORE_FINE, all that the operation wrote is durable: it survives the end of
 * the process and of the machine. After any other result nothing was written, with one exception,
 * see store_journal_add(). An operation whose end is unknown may be asked for again: the second
 * time it finds its own work and tells STORE_FINE.
 *
 * Time is the store's: PostgreSQL's clock, or that of the machine that has the file. Durations go
 * in and come out, in milliseconds; clocks of two machines are never compared. Money is in
 * pico-dollars (base/money.h). Names are UTF-8 without NUL; lines, results and journals are any
 * bytes.
 *
 * Each claim of a job raises its token, and only the holder of the newest token may write about the
 * job: an earlier holder is refused, however late it comes back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/values.h"

struct event_base;
struct query;
struct store;

/*
 * Opens what `address` names: "postgresql://..." or "postgres://..." as libpq has it; "sqlite:PATH"
 * or a path, whose file is made where there is none, for its owner only. The schema is made or
 * brought up to date under a lock. `opened` tells STORE_FINE or why not: AWAY (the server cannot be
 * reached), LOCKED, CORRUPT, MISSING (there is none, and it is to be `existing`), FOREIGN (others
 * than us and root, or than us and roles that we were made a member of, can change it; or it has
 * what no store has: views, triggers), NEWER (a later rlmd has been at it), FULL, USAGE (no store
 * of ours, no permission, no such database). After a failure every operation tells the same.
 * Operations may be asked for at once. Only a store that was open once waits for a server that went
 * away.
 *
 * NULL: RLMD_ERROR_USAGE where the address is none, or RLMD_ERROR_INTERNAL where the system has no
 * thread to give. Owned by the caller. A server's name is looked up while this waits; an address in
 * the URL (hostaddr=) avoids that.
 */
struct store *store_open(struct event_base *, const char *address, const struct store_options *,
			 store_fn *opened, struct rlmd_error *);

/* Whether other machines may use it, too. */
bool store_is_shared(const char *address);

/* No callback comes any more. An operation that has not begun is not done; one that has begun may
 * or may not be: of SQLite, a transaction that goes on is waited for, for a second. NULL is fine.
 */
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
 * caller is its loader now, under the `node` of store_options: a former loader is refused from now
 * on, and its lines are gone. Fills load and batches (one).
 */
struct query *store_load_begin(struct store *, struct rlmd_text name, bool add, store_fn *,
			       void *owner);

/* Adds the lines that are new. Fills lines: new, the same, or another one, for each. REFUSED: the
 * batch has another loader. */
struct query *store_load_add(struct store *, const struct store_load *, const struct store_line *,
			     size_t count, store_fn *, void *owner);

/* The lines are part of the batch now, and may be claimed. The digest must not be empty. REFUSED:
 * as above. */
struct query *store_load_end(struct store *, const struct store_load *, struct rlmd_text digest,
			     store_fn *, void *owner);

/* Compares lines with those of a batch that is ready; writes nothing. Fills lines. */
struct query *store_compare(struct store *, int64_t batch, const struct store_line *, size_t count,
			    store_fn *, void *owner);

/* The batch of this name: fills batches, one or none. */
struct query *store_find(struct store *, struct rlmd_text name, store_fn *, void *owner);

/* All batches that are ready, in the order in which they were made. Fills batches. */
struct query *store_batches(struct store *, store_fn *, void *owner);

/* Those of them that have jobs which are not over. Fills batches. */
struct query *store_unfinished(struct store *, store_fn *, void *owner);

/*
 * Claims up to `most` jobs of a tenant (a NULL text: of any) for `lease_ms`, in the order of the
 * file: jobs that wait and are due, and jobs whose lease is over. Fills jobs.
 */
struct query *store_claim(struct store *, int64_t batch, const struct rlmd_text *tenant,
			  struct rlmd_text node, int64_t most, int64_t lease_ms, store_fn *,
			  void *owner);

/* The job runs alone from now on: if its end is never told, that counts as an attempt. A job that
 * did not run alone has its attempt taken back when it is claimed again. REFUSED: the claim is
 * stale. */
struct query *store_alone(struct store *, const struct store_claim *, store_fn *, void *owner);

/* Holds claims for `lease_ms` from now. Fills lost, for each: another node has the job, or it is
 * over. A claim that is late is held again where no other node took the job. */
struct query *store_renew(struct store *, const struct store_claim *, size_t count,
			  int64_t lease_ms, store_fn *, void *owner);

/*
 * Keeps an exchange with a model, before its answer is used, and counts its cost at the leases (0:
 * none). Where a lease is over, its account counts the part of the cost beyond the amount that was
 * open at the end of the lease; the account may pass its limit by that, for the call was billed. An
 * exchange with this key and number that is there already stays, and nothing is counted. Fills
 * lost, for each lease: it is over, or there is none. REFUSED: the claim is stale; nothing is kept
 * or counted.
 */
struct query *store_journal_add(struct store *, const struct store_claim *,
				const struct store_exchange *, const int64_t *leases, size_t count,
				store_fn *, void *owner);

/* Up to `most` exchanges of a job, by id, those after `after` (0: from the first). Fills
 * exchanges. */
struct query *store_journal_read(struct store *, int64_t job, int64_t after, int64_t most,
				 store_fn *, void *owner);

/* Ends a job; its journal goes if it succeeded. REFUSED: the claim is stale. A job that waits can
 * be ended, too, by the token of store_jobs(), as long as it is not claimed. */
struct query *store_finish(struct store *, const struct store_claim *, const struct store_outcome *,
			   store_fn *, void *owner);

/* Gives a job back, due in `delay_ms`. `counts`: this was an attempt. REFUSED: the claim is stale.
 * */
struct query *store_postpone(struct store *, const struct store_claim *, int64_t delay_ms,
			     struct rlmd_text error, bool counts, store_fn *, void *owner);

/*
 * Has jobs that failed with this error (NULL: with any) wait again, with no attempt so far. With
 * `afresh` their journals go: with the same answers some would fail in the same way. Fills count,
 * the number of these jobs.
 */
struct query *store_rerun(struct store *, int64_t batch, const struct rlmd_text *error, bool afresh,
			  store_fn *, void *owner);

/* Has jobs with degraded answers wait again, without their journals. Fills count. */
struct query *store_rerun_degraded(struct store *, int64_t batch, store_fn *, void *owner);

/*
 * The account of a tenant for one batch, or, where `batch` is 0, for the store's day of today;
 * made where there is none. Limits (INT64_MAX: none) hold from now on; one that is negative stays
 * as it is. Fills account.
 */
struct query *store_account(struct store *, int64_t batch, struct rlmd_text tenant,
			    int64_t limit_cost, int64_t limit_tokens, store_fn *, void *owner);

/*
 * Takes a lease of an account for a node, of at most `cost` and `tokens`, for `lease_ms`. It gets
 * the part of these that the limits leave beside the account's spending and other leases; there is
 * no lease where they leave nothing (a lease of 0 and 0 is always there). Leases that are over are
 * ended first: bills in journals and open amounts count as spent, the rest is free. Fills lease.
 */
struct query *store_lease_take(struct store *, int64_t account, struct rlmd_text node, int64_t cost,
			       int64_t tokens, int64_t lease_ms, store_fn *, void *owner);

/*
 * Makes a lease larger or smaller, and holds it for `lease_ms` from now. `cost` and `tokens` are
 * its size, bills in journals included; it grows by as much as the limits leave, and an amount
 * that it gives up is free for others. `open_cost` and `open_tokens` are the amounts that calls in
 * flight may be billed and no journal shows yet: they count as spent if the lease runs out. Leases
 * of others that are over are ended first. Fills lease.
 */
struct query *store_lease_hold(struct store *, int64_t lease, int64_t cost, int64_t tokens,
			       int64_t open_cost, int64_t open_tokens, int64_t lease_ms, store_fn *,
			       void *owner);

/* Ends a lease of which `cost` and `tokens` were spent, bills in journals included; the rest is
 * free. Of a lease that was ended as over, the difference to the amount that was counted then is
 * counted now, up or down. A lease that is settled already stays as it is. */
struct query *store_lease_settle(struct store *, int64_t lease, int64_t cost, int64_t tokens,
				 store_fn *, void *owner);

/* The breaker of a tenant's key. One that is open keeps the time of its first opening. */
struct query *store_breaker_open(struct store *, int64_t batch, struct rlmd_text tenant,
				 struct rlmd_text provider, struct rlmd_text why, store_fn *,
				 void *owner);
struct query *store_breaker_close(struct store *, int64_t batch, struct rlmd_text tenant,
				  struct rlmd_text provider, store_fn *, void *owner);
struct query *store_breakers(struct store *, int64_t batch, store_fn *, void *owner);

/* The jobs of a batch with these custom_ids, in whatever state. Fills jobs, one for each custom_id;
 * its id is 0 where there is none. */
struct query *store_jobs(struct store *, int64_t batch, const struct rlmd_text *custom_ids,
			 size_t count, store_fn *, void *owner);

/* The numbers of each tenant that has jobs. Reads all jobs of the batch. Fills counts. */
struct query *store_counts(struct store *, int64_t batch, store_fn *, void *owner);

/* The nodes that have claims or money of a batch, or, where that is 0, of any. Fills nodes. */
struct query *store_nodes(struct store *, int64_t batch, store_fn *, void *owner);

/*
 * Releases a node that is known to be dead: its jobs, of all batches, wait again, and its leases
 * are ended when others take some. It is refused if it writes all the same.
 */
struct query *store_release(struct store *, struct rlmd_text node, store_fn *, void *owner);

/*
 * Up to `most` jobs that are over, in the order of their ends, after the rank `after` (0: from the
 * first). A reader that goes on from the last rank that it saw misses none. `sorted`: in the order
 * of the file, and `after` is a number. Fills jobs.
 */
struct query *store_results(struct store *, int64_t batch, int64_t after, int64_t most, bool sorted,
			    store_fn *, void *owner);

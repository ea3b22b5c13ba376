/*
 * llm/journal.h - what a job has had, with its host (rlmd/job.h): found again, and kept before it
 * is used.
 *
 * An entry is what a recording has of an exchange, without the request, or words that code was told
 * (kept_value_keep()). It is known by a key and a number, and its bytes say both and a digest of it
 * all: what is torn, or of another key, ends the job, for going on would pay again for what was
 * paid.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <rlmd/job.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"

struct journal;
struct journal_keep;

/* Of the host's, copied; `broken` is told what went wrong, and must end the job from the loop:
 * nothing is kept any more then, and nothing sent. NULL: the size or a function is none,
 * RLMD_ERROR_USAGE. */
typedef void journal_broken_fn(void *owner, const struct rlmd_error *);
struct journal *journal_new(struct event_base *, const struct rlmd_journal *, journal_broken_fn *,
			    void *owner, struct rlmd_error *);
void journal_free(struct journal *); /* nobody hears of what is kept later; NULL is fine */

/* The host is told of nothing any more: its job is being freed. NULL is fine. */
void journal_close(struct journal *);

/* How often a key was asked for before, by this. */
int64_t journal_number(struct journal *, const char *key);

/* The entry, new; NULL: there is none, or a broken one, which is told. */
json_t *journal_find(struct journal *, const char *key, int64_t number);

/* It is damaged, in this way: the job is told. */
void journal_refuse(struct journal *, const char *key, int64_t number, struct rlmd_error *why);

/* Takes the entry, and what it says that it was billed. `kept` comes from the loop, once it is
 * kept, and may be NULL; where that fails the job is told, and it never comes. */
typedef void journal_kept_fn(void *owner);
struct journal_keep *journal_keep(struct journal *, const char *key, int64_t number, json_t *entry,
				  struct rlmd_amount bill, journal_kept_fn *kept, void *owner);
void journal_forget(struct journal_keep *); /* `kept` does not come; NULL is fine */

/* An entry of which nothing hears, but that what is sent to models waits for. */
void journal_keep_first(struct journal *, const char *key, int64_t number, json_t *entry);

/* A caller that wants to send a request and waits for those. Embed it; zero waits for nothing. */
struct journal_waiter {
	struct journal *journal; /* lent; NULL: it does not wait */
	void (*go)(void *owner); /* from the loop */
	void *owner;             /* lent */
	TAILQ_ENTRY(journal_waiter) entry;
};
/* False: there is nothing to wait for. */
bool journal_wait(struct journal *, struct journal_waiter *);
void journal_wait_no_more(struct journal_waiter *);

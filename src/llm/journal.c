#include "llm/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/timer.h"

enum { VERSION = 1, DEPTH_MAX = 10 };

/* The answer that the host has yet to give. */
struct rlmd_journal_entry {
	struct journal_keep *keep; /* lent; NULL: the job is over */
	struct rlmd_amount bill;
};

struct journal_keep {
	struct journal *journal;           /* lent */
	struct rlmd_journal_entry *handle; /* the host's, until it has said; or NULL */
	struct timer *due;                 /* owned: it is kept */
	journal_kept_fn *kept;             /* or NULL: nobody hears */
	void *owner;                       /* lent */
	bool first;                        /* what is sent to models waits for it */
	TAILQ_ENTRY(journal_keep) entry;
};

struct journal {
	struct event_base *base; /* lent */
	struct rlmd_journal of;
	journal_broken_fn *broken;
	void *owner;                          /* lent */
	json_t *seen;                         /* owned: key -> how often it was asked for */
	TAILQ_HEAD(, journal_keep) keeps;     /* owned: under way */
	TAILQ_HEAD(, journal_waiter) waiters; /* lent */
	size_t firsts;                        /* of the keeps */
	bool closed;                          /* nothing is kept or sent any more */
};

struct journal *journal_new(struct event_base *base, const struct rlmd_journal *given,
			    journal_broken_fn *broken, void *owner, struct rlmd_error *err)
{
	struct journal *journal = xcalloc(1, sizeof *journal);

	journal->base = base;
	journal->broken = broken;
	journal->owner = owner;
	TAILQ_INIT(&journal->keeps);
	TAILQ_INIT(&journal->waiters);
	if (abi_copy_in(&journal->of, sizeof journal->of, given, sizeof journal->of, "rlmd_journal",
			err)) {
		journal->seen = json_make_object();
		if (journal->of.look && journal->of.keep)
			return journal;
		error_set(err, RLMD_ERROR_USAGE, "a journal needs `look` and `keep`");
	}
	journal_free(journal);
	return NULL;
}

static void keep_free(struct journal_keep *keep)
{
	if (keep->handle)
		keep->handle->keep = NULL;
	TAILQ_REMOVE(&keep->journal->keeps, keep, entry);
	timer_free(keep->due);
	free(keep);
}

void journal_free(struct journal *journal)
{
	struct journal_keep *keep;

	if (!journal)
		return;
	while ((keep = TAILQ_FIRST(&journal->keeps)))
		keep_free(keep);
	json_decref(journal->seen);
	free(journal);
}

void journal_close(struct journal *journal)
{
	if (journal)
		journal->closed = true;
}

int64_t journal_number(struct journal *journal, const char *key)
{
	return json_count(journal->seen, key);
}

/* --- entries ------------------------------------------------------------------------ */

/* Of the entry as it is written, and of where it stands. */
static void digest_of(const char *key, int64_t number, const json_t *entry,
		      char ret[static DIGEST_SIZE])
{
	auto_evbuffer struct evbuffer *bytes = buffer_new();
	struct rlmd_text parts[3];
	char digits[24];

	json_write(entry, true, bytes);
	snprintf(digits, sizeof digits, "%" PRId64, number);
	parts[0] = text_of(key);
	parts[1] = text_of(digits);
	parts[2] = text_in(bytes);
	digest_texts(parts, 3, ret);
}

static void write_entry(const char *key, int64_t number, json_t *entry, struct evbuffer *out)
{
	char digest[DIGEST_SIZE];
	json_t *whole;

	digest_of(key, number, entry, digest);
	whole = json_make("{s:i, s:s, s:o}", "version", VERSION, "digest", digest, "entry", entry);
	json_write(whole, false, out);
	json_decref(whole);
}

static json_t *read_entry(const char *key, int64_t number, struct rlmd_text bytes,
			  struct rlmd_error *err)
{
	json_auto_t *whole = json_read(bytes, DEPTH_MAX, err);
	int64_t version = json_get_integer(whole, "version", 0);
	json_t *entry = json_object_get(whole, "entry");
	char digest[DIGEST_SIZE];

	if (!whole)
		return NULL;
	if (version > VERSION) {
		error_set(err, RLMD_ERROR_INPUT, "a later version of rlmd has written it");
		return NULL;
	}
	if (json_is_object(entry))
		digest_of(key, number, entry, digest);
	if (version != VERSION || !json_is_object(entry) ||
	    strcmp(digest, json_get_string(whole, "digest"))) {
		error_set(err, RLMD_ERROR_INPUT, "it is not what was kept there");
		return NULL;
	}
	return json_incref(entry);
}

/* Nothing is kept or sent any more. */
static void break_off(struct journal *journal, const struct rlmd_error *why)
{
	journal->closed = true;
	journal->broken(journal->owner, why);
}

void journal_refuse(struct journal *journal, const char *key, int64_t number,
		    struct rlmd_error *why)
{
	why->kind = RLMD_ERROR_INPUT;
	error_context(why,
		      "the journal's entry %.90s, number %" PRId64
		      ", is damaged, and without it the job may pay again for what it has had; "
		      "take the entry out to have it do so",
		      key, number);
	break_off(journal, why);
}

json_t *journal_find(struct journal *journal, const char *key, int64_t number)
{
	struct rlmd_text bytes = {0};
	struct rlmd_error err = {0};
	json_t *entry;

	if (!journal->of.look(journal->of.owner, key, number, &bytes))
		return NULL;
	entry = read_entry(key, number, bytes, &err);
	if (!entry)
		journal_refuse(journal, key, number, &err);
	return entry;
}

/* --- what is being kept ------------------------------------------------------------- */

static void let_go(struct journal *journal)
{
	struct journal_waiter *waiter;

	while (!journal->closed && !journal->firsts && (waiter = TAILQ_FIRST(&journal->waiters))) {
		journal_wait_no_more(waiter);
		waiter->go(waiter->owner);
	}
}

/* C3: it is gone when it is heard of. */
static void on_kept(void *owner)
{
	struct journal_keep *keep = owner;
	struct journal *journal = keep->journal;
	journal_kept_fn *kept = keep->kept;
	bool first = keep->first;
	void *above = keep->owner;

	keep_free(keep);
	journal->firsts -= first;
	if (kept)
		kept(above);
	else if (first)
		let_go(journal);
}

static struct journal_keep *take_back(struct rlmd_journal_entry *handle)
{
	struct journal_keep *keep = handle ? handle->keep : NULL;

	free(handle);
	if (keep)
		keep->handle = NULL;
	return keep;
}

struct rlmd_amount rlmd_journal_entry_bill(const struct rlmd_journal_entry *handle)
{
	return handle ? handle->bill : (struct rlmd_amount){0};
}

void rlmd_journal_kept(struct rlmd_journal_entry *handle)
{
	struct journal_keep *keep = take_back(handle);

	if (keep)
		timer_post(keep->due);
}

/* It is never kept: whoever waits for that is cancelled with the job. */
void rlmd_journal_failed(struct rlmd_journal_entry *handle, const struct rlmd_error *err)
{
	struct journal_keep *keep = take_back(handle);
	struct rlmd_error why = {0};

	if (!keep)
		return;
	error_set(&why, err && err->kind ? err->kind : RLMD_ERROR_INTERNAL, "%s",
		  err && *err->text ? err->text : "the host said no more");
	error_context(&why, "what the job has had could not be kept in its journal");
	break_off(keep->journal, &why);
}

static struct journal_keep *keep_new(struct journal *journal, journal_kept_fn *kept, void *owner)
{
	struct journal_keep *keep = xcalloc(1, sizeof *keep);

	*keep = (struct journal_keep){.journal = journal, .kept = kept, .owner = owner};
	keep->due = timer_new(journal->base, on_kept, keep);
	keep->handle = xcalloc(1, sizeof *keep->handle);
	keep->handle->keep = keep;
	TAILQ_INSERT_TAIL(&journal->keeps, keep, entry);
	return keep;
}

static void hand_over(struct journal *journal, const char *key, int64_t number, json_t *entry,
		      struct journal_keep *keep)
{
	auto_evbuffer struct evbuffer *bytes = buffer_new();

	write_entry(key, number, entry, bytes);
	if (journal->closed)
		free(take_pointer(&keep->handle));
	else
		journal->of.keep(journal->of.owner, key, number, text_in(bytes), keep->handle);
}

struct journal_keep *journal_keep(struct journal *journal, const char *key, int64_t number,
				  json_t *entry, struct rlmd_amount bill, journal_kept_fn *kept,
				  void *owner)
{
	struct journal_keep *keep = keep_new(journal, kept, owner);

	keep->handle->bill = bill;
	hand_over(journal, key, number, entry, keep);
	return keep;
}

void journal_keep_first(struct journal *journal, const char *key, int64_t number, json_t *entry)
{
	struct journal_keep *keep = keep_new(journal, NULL, NULL);

	keep->first = true;
	journal->firsts++;
	hand_over(journal, key, number, entry, keep);
}

void journal_forget(struct journal_keep *keep)
{
	if (keep)
		keep_free(keep);
}

bool journal_wait(struct journal *journal, struct journal_waiter *waiter)
{
	if (!journal->closed && !journal->firsts)
		return false;
	waiter->journal = journal;
	TAILQ_INSERT_TAIL(&journal->waiters, waiter, entry);
	return true;
}

void journal_wait_no_more(struct journal_waiter *waiter)
{
	if (waiter->journal)
		TAILQ_REMOVE(&waiter->journal->waiters, waiter, entry);
	waiter->journal = NULL;
}

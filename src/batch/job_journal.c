#include "batch/job_journal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/batch_store.h"
#include "batch/lease.h"
#include "store/store.h"

enum {
	READ_AT_ONCE = 256,
	FIRST = 1, /* the token of a job that was not claimed before */
};

struct had {
	char *key; /* owned */
	int64_t number;
	struct rlmd_text bytes; /* owned */
};

/* One that is on its way into the store. */
struct keeping {
	LIST_ENTRY(keeping) next;
	struct job_journal *journal;      /* lent */
	struct rlmd_journal_entry *entry; /* to be told once */
	struct lease_bill bill;
	struct query *query; /* lent */
};

struct job_journal {
	struct rlmd_journal hooks;
	struct store *store;
	struct lease *pays;
	struct store_claim claim;
	struct query *query; /* lent: reads */
	job_journal_fn *done;
	void *owner;
	struct had *entries; /* owned */
	size_t count;
	LIST_HEAD(, keeping) keepings;
};

/* --- what was had before -------------------------------------------------------- */

static bool look(void *owner, const char *key, int64_t number, struct rlmd_text *ret)
{
	const struct job_journal *journal = owner;

	for (size_t i = 0; i < journal->count; i++) {
		const struct had *entry = &journal->entries[i];

		if (entry->number != number || strcmp(entry->key, key) != 0)
			continue;
		*ret = entry->bytes;
		return true;
	}
	return false;
}

static void add(struct job_journal *journal, const struct store_exchange *exchanges, size_t count)
{
	journal->entries = xreallocarray(journal->entries, journal->count + count,
					 sizeof *journal->entries);
	for (size_t i = 0; i < count; i++)
		journal->entries[journal->count++] = (struct had){
			.key = xstrndup(exchanges[i].key.bytes, exchanges[i].key.size),
			.number = exchanges[i].number,
			.bytes = text_from(
				xstrndup(exchanges[i].bytes.bytes, exchanges[i].bytes.size),
				exchanges[i].bytes.size),
		};
}

static void on_read(void *owner, const struct store_result *result)
{
	struct job_journal *journal = owner;
	struct rlmd_error err;

	journal->query = NULL;
	if (result->fault) {
		batch_store_explain(result, &err);
		journal->done(journal->owner, &err);
		return;
	}
	if (!result->count) {
		journal->done(journal->owner, NULL);
		return;
	}
	add(journal, result->exchanges, result->count);
	journal->query = store_journal_read(journal->store, journal->claim.job,
					    result->exchanges[result->count - 1].id, READ_AT_ONCE,
					    on_read, journal);
}

/* --- what comes ------------------------------------------------------------------ */

static void on_kept(void *owner, const struct store_result *result)
{
	struct keeping *keeping = owner;
	struct rlmd_journal_entry *entry = keeping->entry;
	struct rlmd_error err;

	LIST_REMOVE(keeping, next);
	lease_paid(keeping->journal->pays, &keeping->bill, result->fault ? NULL : result->lost);
	free(keeping);
	if (!result->fault) {
		rlmd_journal_kept(entry);
		return;
	}
	batch_store_explain(result, &err);
	/* Nothing is wrong with the job: somebody else has it by now, or the store is full. */
	err.kind = RLMD_ERROR_CANCELLED;
	rlmd_journal_failed(entry, &err);
}

static void keep(void *owner, const char *key, int64_t number, struct rlmd_text bytes,
		 struct rlmd_journal_entry *entry)
{
	struct job_journal *journal = owner;
	struct keeping *keeping = xcalloc(1, sizeof *keeping);
	struct rlmd_amount bill = rlmd_journal_entry_bill(entry);
	const struct store_exchange exchange = {
		.key = text_of(key),
		.number = number,
		.bytes = bytes,
		.cost = bill.cost,
		.tokens = bill.tokens,
	};

	keeping->journal = journal;
	keeping->entry = entry;
	keeping->bill = lease_pay(journal->pays, bill);
	LIST_INSERT_HEAD(&journal->keepings, keeping, next);
	keeping->query = store_journal_add(journal->store, &journal->claim, &exchange,
					   keeping->bill.leases, keeping->bill.count, on_kept,
					   keeping);
}

/* --- its life ------------------------------------------------------------------------ */

struct job_journal *job_journal_new(struct store *store, const struct store_claim *claim,
				    struct lease *pays)
{
	struct job_journal *journal = xcalloc(1, sizeof *journal);

	journal->hooks = (struct rlmd_journal){sizeof journal->hooks, look, keep, journal};
	journal->store = store;
	journal->pays = pays;
	journal->claim = *claim;
	LIST_INIT(&journal->keepings);
	return journal;
}

void job_journal_read(struct job_journal *journal, job_journal_fn *done, void *owner)
{
	journal->done = done;
	journal->owner = owner;
	if (journal->claim.token == FIRST)
		done(owner, NULL);
	else
		journal->query = store_journal_read(journal->store, journal->claim.job, 0,
						    READ_AT_ONCE, on_read, journal);
}

static void forget_keepings(struct job_journal *journal)
{
	struct keeping *keeping;
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_CANCELLED, "nobody waits for it any more");
	while ((keeping = LIST_FIRST(&journal->keepings))) {
		LIST_REMOVE(keeping, next);
		store_forget(keeping->query);
		rlmd_journal_failed(keeping->entry, &err);
		free(keeping);
	}
}

void job_journal_free(struct job_journal *journal)
{
	if (!journal)
		return;
	store_forget(journal->query);
	forget_keepings(journal);
	for (size_t i = 0; i < journal->count; i++) {
		free(journal->entries[i].key);
		free((char *)journal->entries[i].bytes.bytes);
	}
	free(journal->entries);
	free(journal);
}

const struct rlmd_journal *job_journal_hooks(const struct job_journal *journal)
{
	return &journal->hooks;
}

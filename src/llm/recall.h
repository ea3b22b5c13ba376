/*
 * llm/recall.h - what was had before: in the job's journal (llm/journal.h), or in a cache
 * (llm/cache.h), of which a job knows whose exchanges it has there, and how often it asked.
 *
 * A journal has all of the job, failures too, so that the work goes on as it did: what it has was
 * paid, and counts. A cache has whole answers of any job, at no cost: what failed, was refused, cut
 * or empty is asked for again.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "llm/cache.h"
#include "llm/journal.h"
#include "llm/llm.h"

/* Of a job; embed it. Zero: there is neither. */
struct recalls {
	struct journal *journal; /* owned; NULL: off */
	struct cache *cache;     /* lent by the registry; NULL: off */
	int64_t age_ms;
	char *tenant; /* owned, or NULL */
	json_t *seen; /* owned: who asked a cache, and what -> how often */
};

/* As the job's settings have them; errors as of cache_new() and journal_new(). */
bool recalls_open(struct recalls *, struct registry *, const struct llm_config *,
		  struct rlmd_error *);
void recalls_done(struct recalls *); /* of a zeroed one too */

/* llm_recall(); the request's model is the provider's own name. */
struct llm_recall *recall_new(struct recalls *, const struct rlmd_provider *,
			      const struct llm_request *, const char *asker);

/* llm_forget() */
void recalls_forget(struct recalls *, const char *asker);

/* What was had before, where llm_recalled(); lent. */
const struct exchange *recall_exchange(const struct llm_recall *);

/* Whether to wait, before it is sent, if it is wanted: last time it was not, in the end. */
bool recall_was_cancelled(const struct llm_recall *);

/* Keeps an answer in the cache, if it is one that may be asked for again; RLMD_ERROR_INPUT. */
bool recall_keep(const struct llm_recall *, const struct llm_response *, struct rlmd_error *);

/* Keeps in the journal what came of it; NULL: that is not to be done. */
struct journal_keep *recall_journal(const struct llm_recall *, const struct llm_response *,
				    const struct rlmd_error *, journal_kept_fn *, void *owner);

/* Likewise what it had used before it was cancelled; nothing waits for that. */
void recall_journal_cancelled(const struct llm_recall *, const struct llm_request *,
			      const struct llm_usage *, int64_t cost);

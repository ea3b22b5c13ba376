/*
 * llm/kept.h - the exchanges that a job keeps and finds again: one store with three back ends.
 *
 *              known by                            found                       looked for
 *   recording  request, position, how often asked  all of a job, and words     instead of a call
 *   journal    the same                            all of this job: it is paid before a reservation
 *   cache      request, provider, tenant and key   whole answers of any job    before a reservation
 *
 * A recording (llm/recording.h) is replayed: a call that it has not fails. A journal
 * (llm/journal.h) has failures too, so that the work goes on as it did. A cache (llm/cache.h) costs
 * nothing: a request that failed, was refused, cut or left empty is asked again. Back ends are
 * searched in this order; an exchange that was asked for is kept in all of them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "llm/cache.h"
#include "llm/journal.h"
#include "llm/key.h"
#include "llm/recording.h"
#include "llm/request.h"

struct event_base;
struct llm_config;
struct registry;

/* Of a job; embed it. Zero: nothing is kept. */
struct kept {
	struct event_base *base;     /* lent */
	struct recording *recording; /* owned; NULL: off */
	struct journal *journal;     /* owned; NULL: off */
	struct cache *cache;         /* lent by the registry; NULL: off */
	int64_t age_ms;              /* of the cache's entries at most */
	char *tenant;                /* owned, or NULL */
	struct key_list keys;        /* owned: no recording may hold them */
	json_t *seen;                /* owned: what was asked for -> how often */
};

/* As the job's settings have them. Errors as of recording_new(), cache_new() and journal_new(). */
bool kept_open(struct kept *, struct registry *, const struct llm_config *, struct rlmd_error *);
void kept_done(struct kept *); /* of a zeroed one too */

bool kept_replays(const struct kept *); /* no provider is asked */

/* --- before a request is sent --------------------------------------------------------- */

typedef void kept_done_fn(void *owner);

/*
 * Looks for a request's answer in the journal and the cache; to be asked once for each call. The
 * request's model is the provider's own name. The second time that `asker`, a name, asks a cache
 * for the same, the second answer is looked for. NULL: there is neither a journal nor a cache.
 */
struct kept_lookup *kept_look(struct kept *, const struct rlmd_provider *,
			      const struct llm_request *, const char *asker);
void kept_lookup_free(struct kept_lookup *); /* NULL is fine */

/* An answer of megabytes is still being read: `fn` comes from the loop once it is, and before that
 * nothing may be asked of the lookup. False: it is not. NULL is fine. */
bool kept_wait(struct kept_lookup *, kept_done_fn *fn, void *owner);

/* The call is sent once more: looks for its next answer, in the journal alone. NULL is fine. */
void kept_look_again(struct kept_lookup *);

bool kept_is_found(const struct kept_lookup *); /* NULL is fine */
bool kept_is_paid(const struct kept_lookup *);  /* ... by an earlier attempt; NULL is fine */

/* Whether the last attempt cancelled this request in the end. NULL is fine. */
bool kept_was_cancelled(const struct kept_lookup *);

/* The exchange, where kept_is_found(); lent. */
const struct exchange *kept_exchange(const struct kept_lookup *);

/* The requests that earlier attempts have paid and got nothing for; told once. `cost_unknown` as of
 * a response. NULL is fine: 0. */
struct kept_bill {
	struct llm_usage usage;
	int64_t cost;
	bool cost_unknown;
	int64_t calls;
};
struct kept_bill kept_bill(struct kept_lookup *);

/* The cache's answers to the turns of `asker` led nowhere: they are asked for again. */
void kept_forget(struct kept *, const char *asker);

/* --- a call ----------------------------------------------------------------------------- */

/* The name under which a request that starts now is recorded, or replayed, new; NULL: off. */
char *kept_name(struct kept *, const struct llm_request *);

/*
 * Keeps what came of a request, and warns of what cannot be kept. NULL: that is done. Else `done`
 * comes from the loop, once all is written and the journal has it; until then, or until
 * kept_writing_free(), all that is given is lent.
 */
struct kept_writing *kept_keep(struct kept *, const char *name, const struct llm_request *,
			       const struct llm_response *, const struct rlmd_error *,
			       struct llm_warnings *, kept_done_fn *done, void *owner);

/* Whether the journal has been given it: then it stays. Else nothing is left of it. */
bool kept_is_journaled(const struct kept_writing *);
void kept_writing_free(struct kept_writing *); /* `done` does not come; NULL is fine */

/* The request was cancelled, and had used that; `sent`, unless it was cancelled before. */
void kept_keep_cancelled(struct kept *, const char *name, const struct llm_request *,
			 const struct llm_usage *, int64_t cost, bool sent);

/* --- values that code got from a clock or the host ------------------------------------- */

/* A value is known by what code had asked for, and how often. */
struct kept_value {
	char id[EXCHANGE_ID_SIZE];
	int64_t number;
};
void kept_value_name(struct kept *, struct rlmd_text asked, struct kept_value *ret);
char *kept_value_find(struct kept *, const struct kept_value *,
		      size_t *ret_size); /* new, or NULL */

/* Keeps a value, which was `found` or not. No request is sent before the journal has it. */
void kept_value_keep(struct kept *, const struct kept_value *, struct rlmd_text, bool found);

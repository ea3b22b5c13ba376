/*
 * llm/cache.h - answers of models that were had before, in a directory that processes share.
 *
 * One file an exchange, which holds the answer and no request: a line with its time and its code, a
 * line of JSON, and the text as it is. Its name is made of the request, of whom it was sent to, and
 * of a secret that a tenant and a provider's key make; so is the code by which an entry is known to
 * be whole and ours. A process without both finds nothing there, learns of no key, and can plant
 * nothing: what is torn, forged, too old or no entry at all is not there.
 *
 * Files appear whole and are replaced at once, so that any number of processes may use a directory.
 * Each keeps it within its size: after a part of that was written, in the loop's steps, and when it
 * closes it. The entry that was not used for the longest time goes first.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "llm/exchange.h"
#include "llm/request.h"

enum { CACHE_NAME_SIZE = EXCHANGE_ID_SIZE + 24, CACHE_SECRET_SIZE = 32 };

struct cache;
struct cache_reading;
struct rlmd_provider;

/*
 * Makes the directory, for its owner only, where it is missing. RLMD_ERROR_INPUT for one that
 * belongs to somebody else, that others may write, or that is a link.
 */
struct cache *cache_new(struct event_base *, const char *dir, int64_t size, struct rlmd_error *);
void cache_free(struct cache *); /* within its size; NULL is fine */
void cache_cut(struct cache *);  /* in the child of a fork: no file is touched any more */

/* Of this directory and size. */
bool cache_is(const struct cache *, const char *dir, int64_t size);

/* Where an exchange stands. The key is lent by its provider. */
struct cache_address {
	char name[CACHE_NAME_SIZE];
	unsigned char secret[CACHE_SECRET_SIZE];
	const char *key; /* that no entry may hold; NULL: none */
};

/* The address of a request to that provider; `tenant` may be NULL. All that identifies the request
 * (exchange_id()) is in its name. */
void cache_address_init(struct cache_address *, const struct rlmd_provider *, const char *tenant,
			const struct llm_request *);

/* The same for the request's n-th time, from 0. */
void cache_address_number(struct cache_address *, int64_t n);

/* An entry that is being read, new; NULL: there is none. The address is lent until it is freed. */
struct cache_reading *cache_find(struct cache *, const struct cache_address *, int64_t age_ms);

/* Reads about `bytes` more, for many megabytes at once would hold the loop. False: there is no more
 * to be read. */
bool cache_read(struct cache_reading *, size_t bytes);

/* After all was read, once. False: it is older, or none of ours. `ret` becomes the caller's. */
bool cache_take(struct cache_reading *, struct exchange *ret);
void cache_reading_free(struct cache_reading *); /* NULL is fine */

/* It is not to be found again. */
void cache_forget(struct cache *, const char *name);

/* An answer on its way into the cache, where it replaces what stood there; all is lent until it is
 * freed. One that is larger than the cache may be is not kept, which is no error. NULL:
 * RLMD_ERROR_INPUT. */
struct exchange_file *cache_keep(struct cache *, const struct cache_address *,
				 const struct llm_response *, struct rlmd_error *);

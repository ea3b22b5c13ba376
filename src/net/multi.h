/*
 * net/multi.h - libcurl's multi handles on libevent.
 *
 * Transfers are spread over several of them, for libcurl scans a handle's connections at each
 * request.
 */
#pragma once

#include <curl/curl.h>
#include <event2/event.h>
#include <stdbool.h>

/* All handles; and one: a set of transfers and the connections that they share. */
struct multi;
struct shard;

/* A transfer is over. Comes from the loop, never from inside of libcurl; it frees nothing. */
typedef void multi_over_fn(CURL *, CURLcode);
/* libcurl has acted, and all that it finished was told: the last thing done in this callback of the
 * loop's, so that anything may be called and freed. */
typedef void multi_acted_fn(void *owner);

/* `owner` is lent, for multi_acted_fn; NULL: libcurl does not start. */
struct multi *multi_new(struct event_base *, multi_over_fn *, multi_acted_fn *, void *owner);
void multi_free(struct multi *); /* transfers must be gone; NULL is fine */

/* Whether libcurl is about to call multi_acted_fn. */
bool multi_is_acting(const struct multi *);

/* Starts a transfer; gives where it went, lent. */
struct shard *multi_add(struct multi *, CURL *);
/* Before its end, or after it. */
void multi_remove(struct shard *, CURL *);

/*
 * llm/multi.h - libcurl's multi handles on libevent.
 *
 * Transfers are spread over several of them, for libcurl scans a handle's connections at each
 * request.
 */
#pragma once

#include <curl/curl.h>
#include <event2/event.h>

/* All handles; and one: a set of transfers and the connections that they share. */
struct multi;
struct shard;

/* A transfer is over. Comes from the loop, never from inside of libcurl. */
typedef void multi_over_fn(CURL *, CURLcode);

struct multi *multi_new(struct event_base *, multi_over_fn *); /* NULL: libcurl does not start */
void multi_free(struct multi *); /* transfers must be gone; NULL is fine */

/* Starts a transfer; gives where it went, lent. */
struct shard *multi_add(struct multi *, CURL *);
/* Before its end, or after it. */
void multi_remove(struct shard *, CURL *);

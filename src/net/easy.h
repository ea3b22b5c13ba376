/*
 * net/easy.h - libcurl's easy handles, kept for the next request.
 *
 * All requests of a provider go to the same address with the same headers: a handle that is used
 * again has them already, and what was found out about the way there. A new one for each request
 * cost a sixth of a small call.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "net/route.h"

/* One request's handle. */
struct easy {
	CURL *curl;                  /* owned; its private pointer is nobody's */
	struct route route;          /* to its URL */
	char words[CURL_ERROR_SIZE]; /* libcurl's, about a failure */

	char *url;                  /* owned */
	CURLU *parsed;              /* owned: the same, read once; NULL: libcurl is to complain */
	struct curl_slist *headers; /* owned; wiped, for one of them may hold a key */
	struct easy *next;          /* owned: of those that nobody uses */
};

struct easy_pool;
struct easy_pool *easy_pool_new(void);
void easy_pool_free(struct easy_pool *); /* all must be back; NULL is fine */

/* Set up with all that requests have in common; `url` and `headers` (NULL-terminated) are copied.
 */
struct easy *easy_pool_take(struct easy_pool *, const char *url, const char *const *headers);

/*
 * From now on a request of it connects, and asks nothing; or again what it is told to.
 *
 * libcurl 7.88 has no word for that: what CURLOPT_CONNECT_ONLY connects is for nobody else. So it
 * is to ask for what has changed since a time that no calendar has, which it refuses to write, with
 * CURLE_BAD_FUNCTION_ARGUMENT, when the connection stands; nothing has been sent by then, and the
 * connection is kept for the next request.
 */
void easy_ask_nothing(struct easy *, bool nothing);

/* No multi handle may know it any more. */
void easy_pool_give(struct easy_pool *, struct easy *);

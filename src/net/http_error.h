/*
 * net/http_error.h - why no answer came over a connection, for a person to read.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/route.h"

struct http_error {
	CURL *easy;                /* lent */
	CURLcode code;             /* what libcurl makes of it */
	const char *words;         /* lent: libcurl's own, or "" */
	const struct route *route; /* lent */
	bool proxied;              /* the connection was one to the proxy */
	bool sent;                 /* something of the request has left */
	bool lost;                 /* ... on a kept connection, which then broke unanswered */
	bool unclean;              /* on a kept connection was what nobody had asked for */
	size_t max_size;           /* of the answer */
	int connect_ms;            /* that a connection may take */
	int socket_errno;          /* why no socket could be made for it; 0: it could */
};

/* Fills the error; says whether the same request would end in the same way again. */
bool http_error_explain(const struct http_error *, struct rlmd_error *);

/* Status 407, by whom ever it was answered: who wants what, and where to put it. */
void http_error_at_proxy(const struct route *, struct rlmd_error *);

/*
 * net/http.h - POST a body (or GET), stream the answer back: libcurl on libevent.
 *
 * Redirects are off, only http and https are spoken, keys are bound to the
 * URL's host by their caller.
 *
 * Nothing is sent twice: where a connection that was kept dies before its answer, which libcurl
 * would mend by sending the request again, the transfer fails, for the server may have read it.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "net/body.h"

struct http;
struct http *http_new(struct event_base *, struct rlmd_error *);
void http_free(struct http *); /* transfers must be gone */

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void http_cut(struct http *);

struct http_request {
	const char *url;            /* lent during http_start() */
	const char *const *headers; /* lent likewise, NULL-terminated "Name: value" */
	struct body *body;          /* taken, and measured; NULL: a GET */
	int64_t deadline;           /* on clock_ms(): RLMD_ERROR_TIMEOUT after it */
	int64_t idle_ms;            /* RLMD_ERROR_TIMEOUT when no byte came for so long */
	size_t max_size;            /* of the answer; RLMD_ERROR_BAD_REPLY beyond it */
	bool fresh;                 /* on a new connection, and none that was kept */
};

/*
 * Connects to the server ahead of the first request there: its name, TCP, TLS, and nothing of HTTP.
 * The next request gets its result, as if that had been started then: its connection, for which it
 * waits if need be, or its failure, if that is new. Nothing where libcurl would not use that
 * connection: with TLS, of libcurl 8.
 */
void http_connect(struct http *, const char *url);

struct http_transfer;

/* The status: comes once, before the first data, or before the end of an empty body. */
typedef void http_status_fn(void *owner, struct http_transfer *, int status);
/* Bytes of the body as they come, at most 64 KiB, lent: a server that sends faster has to wait. */
typedef void http_data_fn(void *owner, struct http_transfer *, struct rlmd_text);
/* The end: err is NULL for a complete answer of any status. */
typedef void http_done_fn(void *owner, struct http_transfer *, const struct rlmd_error *err);

/* Never calls back before it returns; callbacks come outside of libcurl's, so that any
 * http function may be called in them. The owner frees the transfer, at any time. */
struct http_transfer *http_start(struct http *, struct http_request *, http_status_fn *,
				 http_data_fn *, http_done_fn *, void *owner);
void http_transfer_free(struct http_transfer *); /* cancels; NULL is fine */

/* A header of the answer, lent; NULL: absent. */
const char *http_header(const struct http_transfer *, const char *name);

/* Whether any of the request has left, so that the server may have worked on it. Bytes to a proxy
 * alone, to be let through, are none of it. */
bool http_sent(const struct http_transfer *);

/* Of one that failed: whether a kept connection died on it, or had something on it already, so that
 * a new one may be better. */
bool http_lost(const struct http_transfer *);

/* ... and whether it would fail in the same way again, whenever it was tried. */
bool http_hopeless(const struct http_transfer *);

/* Whether status 407 comes from a proxy that was asked in the server's place; then what it wants.
 */
bool http_refused_by_proxy(const struct http_transfer *, int status, struct rlmd_error *);

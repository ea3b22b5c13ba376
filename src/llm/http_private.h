/*
 * llm/http_private.h - what http.c, which has the transfers, and http_ahead.c, which has a
 * connection made before there is one, share.
 */
#pragma once

#include <curl/curl.h>

#include "llm/easy.h"
#include "llm/http.h"
#include "llm/intake.h"
#include "llm/multi.h"
#include "llm/sockets.h"

enum { HTTP_CONNECT_MS = 5000 };

struct http {
	struct event_base *base; /* lent */
	struct multi *multi;     /* owned */
	struct easies *easies;   /* owned */
	struct sockets *sockets; /* owned */

	struct http_transfer *due; /* lent: told once libcurl has acted; NULL: none */

	struct http_transfer *ahead;   /* owned: a connection for the next request; NULL: none */
	struct http_transfer *waiting; /* lent: that request; NULL: none yet */
	int64_t ahead_ms;              /* when it was made, or failed; 0: not yet */
};

struct http_transfer {
	struct http *http;    /* lent */
	struct shard *shard;  /* lent: where libcurl has it */
	struct easy *easy;    /* owned */
	struct body *body;    /* owned: libcurl reads it from here */
	struct intake intake; /* what the owner has not drained yet */
	struct event *post;   /* owned: a callback is due, and no act of libcurl's ends before it */
	struct event *watch;  /* owned: deadline and silence */
	int64_t deadline, idle_ms, moved_ms;
	curl_off_t uploaded; /* when last looked at */
	long port;           /* of whom was connected to; 0: not known */
	long size_before;    /* bytes sent before the request: to a proxy */
	bool attached;       /* the multi handle knows it */
	bool asked;          /* the request was on its way */
	bool lost;           /* it was to be sent once more */
	bool unclean;        /* it was to be sent where an answer was waiting already */
	bool silent;         /* it asks nothing */
	bool status_told, fresh, over, failed, hopeless;
	bool *gone;              /* lent: set where the owner frees it in a callback */
	struct rlmd_error error; /* if failed */

	http_status_fn *on_status;
	http_data_fn *on_data;
	http_done_fn *on_done;
	void *owner; /* lent */
};

/* As http_start(), but for libcurl, which does not know it yet. */
struct http_transfer *http_transfer_new(struct http *, struct http_request *, http_status_fn *,
					http_data_fn *, http_done_fn *, void *owner);
void http_transfer_attach(struct http_transfer *);
void http_transfer_detach(struct http_transfer *);

/* What it has to tell is told, from the loop or once libcurl has acted. */
void http_transfer_post(struct http_transfer *);

/* Whether one that asks nothing has ended as it should. */
bool http_has_connected(const struct http_transfer *, CURLcode);

/* Whether the connection that was made ahead is to decide about this transfer, now or when it is
 * there. False: there is none for it. */
bool http_wait_for_ahead(struct http_transfer *);

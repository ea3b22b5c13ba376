/*
 * tests/llm/server.h - a web server in the test's own event loop, which says what it was told to.
 *
 * Answers are raw bytes, used in the order in which they were given; the last one stays.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

enum server_then {
	SERVER_KEEP,  /* the connection, for the next request */
	SERVER_CLOSE, /* it */
	SERVER_HOLD,  /* it open and silent */
};

struct server {
	char url[64];    /* "http://127.0.0.1:port" */
	size_t requests; /* that came whole */
	size_t holding;  /* now waiting for more of an answer that is held */
	size_t left;     /* connections that the client closed while it was held or served */
	size_t connections;
	size_t closed; /* of them: by us, as an answer had it */
	bool lists;    /* the answers are for GETs, too, which else get 404 and are not counted */
	char *last;    /* owned: head and body of the last request */
	struct server_private *private; /* owned */
};

struct server *server_new(struct event_base *);
void server_free(struct server *);

/* `piece` bytes at a time, or 0: at once. An empty answer with SERVER_CLOSE drops the connection.
 */
void server_answer(struct server *, const char *raw, enum server_then, size_t piece);

/* A complete answer with Content-Length; `headers` are lines with "\r\n" each. */
void server_json(struct server *, int status, const char *headers, const char *body);

/* A complete stream, chunked: of server-sent events, or of another type. */
void server_sse(struct server *, const char *events, size_t piece);
void server_stream(struct server *, const char *type, const char *bytes, size_t piece);

/* In place of all of these: the body of the answer to each request, which the server frees: JSON
 * (with a member "error" it is a refusal, 400), or, where it begins with "data:", events. `request`
 * is head and body. */
typedef char *server_respond_fn(void *owner, const char *request);
void server_respond(struct server *, server_respond_fn *, void *owner);

/* On every connection at once, whether somebody has asked there or not. */
void server_say(struct server *, const char *raw);

/* Runs the loop until `*flag`; fails the test when it hangs. */
void run_until(struct event_base *, const bool *flag);
/* ... until `*count` is at least `wanted`. */
void run_until_count(struct event_base *, const size_t *count, size_t wanted);

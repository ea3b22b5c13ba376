/*
 * cli/rpc.h - JSON-RPC 2.0 with a peer, one message a line, over two descriptors or one.
 *
 * Both sides may ask. Messages that the peer does not read are kept, up to RPC_UNREAD_BYTES or for
 * RPC_UNREAD_MS without progress; then the connection ends. https://www.jsonrpc.org/specification
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>

#include "base/error.h"

enum {
	RPC_LINE_MAX = 64 << 20,     /* bytes of a message; a longer one is refused */
	RPC_UNREAD_BYTES = 64 << 20, /* of messages that the peer has not read */
	RPC_UNREAD_MS = 30000,       /* after the peer has last read some */
};

/* Codes of errors; all others are RPC_FAILED, with the name of the error's kind in its data. */
enum {
	RPC_FAILED = -32000,
	RPC_TOO_EARLY = -32002,
	RPC_BAD_MESSAGE = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_NO_JSON = -32700,
};

struct rpc;
struct rpc_call;
struct rpc_request;

/* A request of the peer, which rpc_reply() or rpc_fail() has to answer, now or later; NULL: a
 * notification. `params` are an object, lent. */
typedef void rpc_asked_fn(void *owner, const char *method, const json_t *params,
			  struct rpc_request *);

/* There is no more to come, once and from the loop: the peer has closed (RLMD_ERROR_NONE), or the
 * connection was ended. */
typedef void rpc_end_fn(void *owner, const struct rlmd_error *);

/* The answer to a call, once and from the loop: lent; NULL: it failed, for that reason. None comes
 * after rpc_end_fn. */
typedef void rpc_answer_fn(void *owner, const json_t *result, const char *why);

/* The descriptors, which may be one, are lent, and must not block. Calls back from the loop. */
struct rpc *rpc_new(struct event_base *, int in, int out, rpc_asked_fn *, rpc_end_fn *,
		    void *owner);

/* Requests that were not answered, and calls without an answer, are gone. NULL is fine. */
void rpc_free(struct rpc *);

/* Takes no more messages, and ends once the peer has read all. */
void rpc_finish(struct rpc *);

/* Each takes the JSON over. Of a notification nothing is answered. */
void rpc_reply(struct rpc_request *, json_t *result);
void rpc_fail(struct rpc_request *,
	      const struct rlmd_error *); /* lends it; the code is its kind's */
void rpc_refuse(struct rpc_request *, int code, const struct rlmd_error *);
void rpc_notify(struct rpc *, const char *method, json_t *params);
struct rpc_call *rpc_ask(struct rpc *, const char *method, json_t *params, rpc_answer_fn *,
			 void *owner);

/* The answer is not wanted any more: the peer is told, and no callback follows. NULL is fine. */
void rpc_cancel(struct rpc_call *);

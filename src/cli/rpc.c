#include "cli/rpc.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/text.h"
#include "base/timer.h"

enum {
	READ_SIZE = 256 << 10,
	DEPTH_MAX = 128,
};

struct rpc_request {
	struct rpc *rpc; /* lent */
	json_t *id;      /* owned */
	LIST_ENTRY(rpc_request) entry;
};

struct rpc_call {
	struct rpc *rpc; /* lent */
	json_int_t id;
	rpc_answer_fn *answer;
	void *owner; /* lent */
	LIST_ENTRY(rpc_call) entry;
};

struct rpc {
	int in, out; /* lent */
	rpc_asked_fn *asked;
	rpc_end_fn *end;
	void *owner;                       /* lent */
	struct event *readable, *writable; /* owned */
	struct timer *posted;              /* owned: the end, or the next read of a file */
	struct evbuffer *received, *sent;  /* owned: not taken, and not written yet */
	bool skips;                        /* the rest of a line that is too long */
	bool finishes, over;               /* takes nothing more; and will tell its end */
	struct rlmd_error error;           /* why */
	json_int_t last_id;                /* of our calls */
	LIST_HEAD(, rpc_request) requests; /* owned: without an answer */
	LIST_HEAD(, rpc_call) calls;       /* owned: likewise */
};

/* --- the end ---------------------------------------------------------------------------- */

static void set_over(struct rpc *rpc)
{
	rpc->over = true;
	event_del(rpc->readable);
	event_del(rpc->writable);
	timer_post(rpc->posted);
}

static void break_off(struct rpc *rpc, const char *why)
{
	if (rpc->over)
		return;
	error_set(&rpc->error, RLMD_ERROR_NETWORK, "%s", why);
	set_over(rpc);
}

/* --- writing ---------------------------------------------------------------------------- */

static void write_more(struct rpc *rpc)
{
	static const struct timeval patience = {.tv_sec = RPC_UNREAD_MS / 1000};

	while (evbuffer_get_length(rpc->sent)) {
		int written = evbuffer_write(rpc->sent, rpc->out);

		if (written > 0)
			continue;
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && errno == EAGAIN)
			break;
		break_off(rpc, "the client has closed its end");
		return;
	}
	if (evbuffer_get_length(rpc->sent))
		loop_add(rpc->writable, &patience);
	else
		event_del(rpc->writable);
	if (!evbuffer_get_length(rpc->sent) && rpc->finishes && !rpc->over)
		set_over(rpc);
}

static void on_writable(evutil_socket_t fd, short what, void *owner)
{
	struct rpc *rpc = owner;

	(void)fd;
	if (what & EV_TIMEOUT)
		break_off(rpc, "the client reads nothing: it was waited for 30 s");
	else
		write_more(rpc);
}

/* While something waits for the peer, the loop writes. */
static void send_message(struct rpc *rpc, json_t *message)
{
	bool waits = evbuffer_get_length(rpc->sent);

	json_object_set_new(message, "jsonrpc", json_string("2.0"));
	if (!rpc->over)
		json_write_line(message, rpc->sent);
	json_decref(message);
	if (rpc->over)
		return;
	if (!waits)
		write_more(rpc);
	else if (evbuffer_get_length(rpc->sent) > RPC_UNREAD_BYTES)
		break_off(rpc, "the client reads too slowly: 64 MiB wait for it");
}

static void send_error(struct rpc *rpc, json_t *id, int code, const struct rlmd_error *err)
{
	json_t *error = json_make("{s:i, s:o, s:{s:s}}", "code", code, "message",
				  json_from_text(text_of(err->text)), "data", "kind",
				  rlmd_error_name(err->kind));

	send_message(rpc, json_make("{s:o, s:o}", "id", id, "error", error));
}

static void request_free(struct rpc_request *request)
{
	LIST_REMOVE(request, entry);
	json_decref(request->id);
	free(request);
}

void rpc_reply(struct rpc_request *request, json_t *result)
{
	if (request) {
		send_message(request->rpc,
			     json_make("{s:O, s:o}", "id", request->id, "result", result));
		request_free(request);
	} else {
		json_decref(result);
	}
}

void rpc_fail(struct rpc_request *request, const struct rlmd_error *err)
{
	rpc_refuse(request, err->kind == RLMD_ERROR_USAGE ? RPC_BAD_PARAMS : RPC_FAILED, err);
}

void rpc_refuse(struct rpc_request *request, int code, const struct rlmd_error *err)
{
	if (!request)
		return;
	send_error(request->rpc, json_incref(request->id), code, err);
	request_free(request);
}

void rpc_notify(struct rpc *rpc, const char *method, json_t *params)
{
	send_message(rpc, json_make("{s:s, s:o}", "method", method, "params", params));
}

struct rpc_call *rpc_ask(struct rpc *rpc, const char *method, json_t *params, rpc_answer_fn *answer,
			 void *owner)
{
	struct rpc_call *call = xcalloc(1, sizeof *call);

	*call = (struct rpc_call){
		.rpc = rpc, .id = ++rpc->last_id, .answer = answer, .owner = owner};
	LIST_INSERT_HEAD(&rpc->calls, call, entry);
	send_message(rpc, json_make("{s:I, s:s, s:o}", "id", call->id, "method", method, "params",
				    params));
	return call;
}

static void call_free(struct rpc_call *call)
{
	LIST_REMOVE(call, entry);
	free(call);
}

void rpc_cancel(struct rpc_call *call)
{
	if (!call)
		return;
	rpc_notify(call->rpc, "$/cancelRequest", json_make("{s:I}", "id", call->id));
	call_free(call);
}

/* --- reading ---------------------------------------------------------------------------- */

static void refuse_message(struct rpc *rpc, const json_t *message, int code, const char *why)
{
	const json_t *id = json_object_get(message, "id");
	struct rlmd_error err;

	error_set(&err, RLMD_ERROR_USAGE, "%s", why);
	send_error(rpc, id ? json_deep_copy(id) : json_null(), code, &err);
}

/* An answer to nothing that was asked is passed over: it may have been cancelled meanwhile. */
static void take_answer(struct rpc *rpc, const json_t *message)
{
	json_int_t id = json_integer_value(json_object_get(message, "id"));
	const json_t *error = json_object_get(message, "error");
	const char *why = json_string_value(json_object_get(error, "message"));
	struct rpc_call *call, found;

	LIST_FOREACH (call, &rpc->calls, entry)
		if (call->id == id)
			break;
	if (!call)
		return;
	found = *call;
	call_free(call);
	if (error)
		found.answer(found.owner, NULL, why ? why : "the client failed");
	else
		found.answer(found.owner, json_object_get(message, "result"), NULL);
}

static void take_call(struct rpc *rpc, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");
	const char *method = json_string_value(json_object_get(message, "method"));
	json_auto_t *none = params ? NULL : json_make_object();
	struct rpc_request *request = NULL;

	if (params && !json_is_object(params)) {
		refuse_message(rpc, message, RPC_BAD_PARAMS, "params are an object");
		return;
	}
	if (id) {
		request = xcalloc(1, sizeof *request);
		request->rpc = rpc;
		request->id = json_deep_copy(id);
		LIST_INSERT_HEAD(&rpc->requests, request, entry);
	}
	rpc->asked(rpc->owner, method, params ? params : none, request);
}

static bool is_id(const json_t *id)
{
	return !id || json_is_string(id) || json_is_integer(id);
}

static void take_message(struct rpc *rpc, const json_t *message)
{
	const json_t *version = json_object_get(message, "jsonrpc");

	if (json_is_array(message))
		refuse_message(rpc, NULL, RPC_BAD_MESSAGE,
			       "a line is one message: batches are not spoken");
	else if (!json_is_object(message) || !text_equal(json_text(version), "2.0"))
		refuse_message(rpc, NULL, RPC_BAD_MESSAGE,
			       "a message is an object with \"jsonrpc\": \"2.0\"");
	else if (json_is_string(json_object_get(message, "method")) &&
		 is_id(json_object_get(message, "id")))
		take_call(rpc, message);
	else if (json_object_get(message, "result") || json_object_get(message, "error"))
		take_answer(rpc, message);
	else
		refuse_message(rpc, NULL, RPC_BAD_MESSAGE,
			       "a message has a method, which is a string, and an id, which is a "
			       "string or an integer; or a result, or an error");
}

static void take_line(struct rpc *rpc, struct rlmd_text line)
{
	json_auto_t *message = NULL;
	struct rlmd_error err;

	if (!text_trim(line).size)
		return;
	message = json_read(line, DEPTH_MAX, &err);
	if (message)
		take_message(rpc, message);
	else
		refuse_message(rpc, NULL, RPC_NO_JSON, err.text);
}

static void refuse_length(struct rpc *rpc)
{
	rpc->skips = true;
	refuse_message(rpc, NULL, RPC_BAD_MESSAGE,
		       "a message has at most 64 MiB: send long texts as blobs");
}

/* Of a line that goes on, nothing is kept once it is too long. */
static void look_at_length(struct rpc *rpc)
{
	size_t size = evbuffer_get_length(rpc->received);

	if (size > RPC_LINE_MAX && !rpc->skips)
		refuse_length(rpc);
	if (rpc->skips)
		evbuffer_drain(rpc->received, size);
}

static bool take_next(struct rpc *rpc)
{
	struct evbuffer_ptr end = evbuffer_search_eol(rpc->received, NULL, NULL, EVBUFFER_EOL_LF);
	size_t size = (size_t)end.pos;

	if (end.pos < 0)
		return false;
	if (size > RPC_LINE_MAX && !rpc->skips)
		refuse_length(rpc);
	if (size && !rpc->skips)
		take_line(rpc, text_from(buffer_pullup(rpc->received, (ev_ssize_t)size), size));
	rpc->skips = false;
	evbuffer_drain(rpc->received, size + 1);
	return true;
}

static void read_more(struct rpc *rpc)
{
	struct evbuffer_iovec room = buffer_reserve(rpc->received, READ_SIZE);
	ssize_t got = read(rpc->in, room.iov_base, room.iov_len);
	bool has_line = got > 0 && memchr(room.iov_base, '\n', (size_t)got);

	room.iov_len = got > 0 ? (size_t)got : 0;
	evbuffer_commit_space(rpc->received, &room, 1);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		if (!rpc->finishes)
			set_over(rpc);
		return;
	}
	while (has_line && !rpc->over && !rpc->finishes && take_next(rpc))
		continue;
	look_at_length(rpc);
}

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	read_more(owner);
}

/* The kernel tells of no file that it is readable, epoll_ctl(2): it always is. */
static void on_posted(void *owner)
{
	struct rpc *rpc = owner;

	if (rpc->over) {
		rpc->end(rpc->owner, &rpc->error);
		return;
	}
	read_more(rpc);
	if (!rpc->finishes)
		timer_post(rpc->posted);
}

struct rpc *rpc_new(struct event_base *base, int in, int out, rpc_asked_fn *asked, rpc_end_fn *end,
		    void *owner)
{
	struct rpc *rpc = xcalloc(1, sizeof *rpc);
	struct stat st;

	*rpc = (struct rpc){.in = in, .out = out, .asked = asked, .end = end, .owner = owner};
	rpc->received = buffer_new();
	rpc->sent = buffer_new();
	LIST_INIT(&rpc->requests);
	LIST_INIT(&rpc->calls);
	rpc->readable = loop_event(base, in, EV_READ | EV_PERSIST, on_readable, rpc);
	rpc->writable = loop_event(base, out, EV_WRITE, on_writable, rpc);
	rpc->posted = timer_new(base, on_posted, rpc);
	if (!fstat(in, &st) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)) &&
	    event_add(rpc->readable, NULL))
		timer_post(rpc->posted);
	else
		loop_add(rpc->readable, NULL);
	return rpc;
}

void rpc_finish(struct rpc *rpc)
{
	rpc->finishes = true;
	event_del(rpc->readable);
	if (!evbuffer_get_length(rpc->sent) && !rpc->over)
		set_over(rpc);
}

void rpc_free(struct rpc *rpc)
{
	if (!rpc)
		return;
	while (!LIST_EMPTY(&rpc->requests))
		request_free(LIST_FIRST(&rpc->requests));
	while (!LIST_EMPTY(&rpc->calls))
		call_free(LIST_FIRST(&rpc->calls));
	event_free(rpc->readable);
	event_free(rpc->writable);
	timer_free(rpc->posted);
	evbuffer_free(rpc->received);
	evbuffer_free(rpc->sent);
	free(rpc);
}

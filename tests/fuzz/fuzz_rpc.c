/* Lines of a JSON-RPC peer, whatever they hold, to a host that answers, refuses, asks back, forgets
 * and takes back: what it says is JSON, a line each. */
#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	INPUT_MAX = 32 << 10, /* bytes: a pipe holds them */
	CALLS_MAX = 8,
	DEPTH = 100,
	TURNS_MAX = 200,
};

struct fuzz_host {
	struct rpc *rpc;
	struct rpc_call *calls[CALLS_MAX]; /* without an answer */
	size_t called;
	bool over;
};

static void on_answer(void *owner, const json_t *result, const char *why)
{
	(void)owner;
	assert(!result != !why);
}

static void on_asked(void *owner, const char *method, const json_t *params,
		     struct rpc_request *request)
{
	struct fuzz_host *host = owner;
	struct rlmd_error err;

	assert(json_is_object(params));
	if (!strcmp(method, "echo")) {
		rpc_reply(request, json_make_copy(params));
	} else if (!strcmp(method, "fail")) {
		error_set(&err, RLMD_ERROR_INPUT, "%s", json_get_string(params, "why"));
		rpc_fail(request, &err);
	} else if (!strcmp(method, "ask") && host->called < CALLS_MAX) {
		host->calls[host->called++] = rpc_ask(host->rpc, "tool.call",
						      json_make_copy(params), on_answer, host);
		rpc_notify(host->rpc, "told", json_make_object());
		rpc_reply(request, json_make_object());
	} else if (!strcmp(method, "finish")) {
		rpc_reply(request, json_make_object());
		rpc_finish(host->rpc);
	} else if (strcmp(method, "forget") != 0) {
		error_set(&err, RLMD_ERROR_USAGE, "there is no such method");
		rpc_refuse(request, RPC_NO_METHOD, &err);
	}
}

static void on_end(void *owner, const struct rlmd_error *err)
{
	(void)err;
	((struct fuzz_host *)owner)->over = true;
}

/* All that the host has said so far. */
static void read_all(int from, struct evbuffer *said)
{
	while (evbuffer_read(said, from, -1) > 0)
		;
}

static void check(struct rlmd_text said)
{
	for (size_t at = 0, end; at < said.size; at = end) {
		json_t *message;

		end = text_line_end(said, at);
		message = json_read(text_slice(said, at, end), DEPTH + 2, NULL);
		assert(json_is_object(message));
		json_decref(message);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_base *base = event_base_new();
	auto_evbuffer struct evbuffer *said = buffer_new();
	struct fuzz_host host = {0};
	int in[2], out[2];

	size = size < INPUT_MAX ? size : INPUT_MAX;
	if (pipe2(in, O_CLOEXEC | O_NONBLOCK) || pipe2(out, O_CLOEXEC | O_NONBLOCK) ||
	    (size && write(in[1], data, size) != (ssize_t)size))
		abort();
	close(in[1]);
	host.rpc = rpc_new(base, in[0], out[1], on_asked, on_end, &host);
	for (int turn = 0; turn < TURNS_MAX && !host.over; turn++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		read_all(out[0], said);
	}
	rpc_free(host.rpc);
	read_all(out[0], said);
	check(text_in(said));
	event_base_free(base);
	close(in[0]);
	close(out[0]);
	close(out[1]);
	return 0;
}

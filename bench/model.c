/*
 * A model server that answers after a fixed time: Ollama's /api/chat on
 * loopback, with little work of its own, so that what is measured is not it.
 *
 * A request that opens with a system message is a turn of a run: the first two
 * are answered by a block that asks eight sub-questions at once, the third by
 * such a block and the final answer. Everything else is a sub-question. One
 * that opens with "wait N" is answered after N times as long.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/measure.h"

#define BLOCK                                                                                      \
	"I ask about each part.\n```repl\nprint(len(batch_llm_query(['part %d' % i for i in "      \
	"range(8)])))\n```\n"

struct server {
	struct event_base *base;
	int64_t delay; /* ms */
};

enum { WAITS_MAX = 1000 };

struct answer {
	struct evhttp_request *request;
	struct event *timer;
	struct evbuffer *body;
};

/* 0: it does not say. */
static int waits_of(const json_t *messages)
{
	const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
	const char *content = json_string_value(json_object_get(last, "content"));
	int waits = 0;

	if (!content || sscanf(content, "wait %d", &waits) != 1 || waits < 0 || waits > WAITS_MAX)
		return 0;
	return waits;
}

static const char *answer_to(const json_t *messages)
{
	const json_t *message;
	size_t index, turns = 0;
	bool run = false;

	json_array_foreach (messages, index, message) {
		const char *role = json_string_value(json_object_get(message, "role"));

		run |= role && !strcmp(role, "system");
		turns += role && !strcmp(role, "assistant");
	}
	if (!run || waits_of(messages))
		return "This part says nothing of note.";
	return turns < 2 ? BLOCK : BLOCK "FINAL(done)";
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
	struct answer *answer = owner;

	(void)fd, (void)what;
	evhttp_send_reply(answer->request, 200, "OK", answer->body);
	evbuffer_free(answer->body);
	event_free(answer->timer);
	free(answer);
}

static void on_request(struct evhttp_request *request, void *owner)
{
	struct server *server = owner;
	struct evbuffer *in = evhttp_request_get_input_buffer(request);
	size_t size = evbuffer_get_length(in);
	json_t *body = json_loadb((char *)evbuffer_pullup(in, -1), size, 0, NULL);
	struct answer *answer = xcalloc(1, sizeof *answer);
	const json_t *messages = json_object_get(body, "messages");
	int waits = waits_of(messages);
	struct timeval delay = clock_timeval(server->delay * (waits ? waits : 1));
	json_t *reply = json_pack("{s:s, s:{s:s, s:s}, s:b, s:s, s:i, s:i}", "model", "bench",
				  "message", "role", "assistant", "content", answer_to(messages),
				  "done", 1, "done_reason", "stop", "prompt_eval_count",
				  (int)(size / 4), "eval_count", 40);
	char *line = json_dumps(reply, JSON_COMPACT);

	answer->request = request;
	answer->body = evbuffer_new();
	evbuffer_add_printf(answer->body, "%s\n", line);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "application/x-ndjson");
	answer->timer = event_new(server->base, -1, 0, on_timer, answer);
	event_add(answer->timer, &delay);
	free(line);
	json_decref(reply);
	json_decref(body);
}

/* The port that the kernel chose. */
static int port_of(struct evhttp_bound_socket *bound)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;

	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size))
		measure_fail("getsockname failed");
	return ntohs(address.sin_port);
}

int main(int argc, char **argv)
{
	struct server server = {.base = event_base_new()};
	struct evhttp *http = evhttp_new(server.base);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);

	if (argc != 2 || !bound)
		measure_fail("usage: model DELAY_MS");
	server.delay = strtol(argv[1], NULL, 10);
	evhttp_set_gencb(http, on_request, &server);
	printf("%d\n", port_of(bound));
	fflush(stdout);
	event_base_dispatch(server.base);
	return 0;
}

/* Sends a trace to a collector by OTLP/HTTP, rlmd/trace.h. */
#include <event2/event.h>
#include <rlmd/trace.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "net/http.h"
#include "trace/otlp.h"
#include "trace/spans.h"

#define SIGNAL "/v1/traces"

enum {
	PUSH_MS = 10000,
	REQUEST_MAX = 1 << 20, /* bytes of spans in one request, about */
	ANSWER_MAX = 1 << 20,
	WORDS_SHOWN = 200, /* bytes of a refusal */
};

struct push {
	struct event_base *base; /* owned */
	struct http *http;       /* owned */
	char *url;               /* owned */
	char **headers;          /* owned, ended by a NULL */
	size_t header_count;
	int64_t deadline;

	/* Of the request at hand. */
	struct http_transfer *transfer;
	struct evbuffer *answer; /* owned */
	struct rlmd_error error;
	int status;
	bool over;
};

static void add_header(struct push *push, char *header)
{
	push->headers = array_grow(push->headers, push->header_count, sizeof *push->headers);
	push->headers[push->header_count++] = header;
}

/* Nothing in a value can end its header, or begin another one. */
static bool add_headers(struct push *push, const char *list, struct rlmd_error *err)
{
	bool ok = true;
	char *name, *value;

	add_header(push, xstrdup("Content-Type: application/json"));
	while (list && ok && otlp_take_pair(&list, &name, &value)) {
		ok = name && *name && !strpbrk(name, ": \r\n") && !strpbrk(value, "\r\n");
		if (ok)
			add_header(push, xasprintf("%s: %s", name, value));
		free(name);
		free(value);
	}
	add_header(push, NULL);
	return ok || error_set(err, RLMD_ERROR_USAGE,
			       "the headers for the collector are to be a list of name=value with "
			       "commas between");
}

static char *whole_url(const char *url)
{
	size_t size = strlen(url), end = strlen(SIGNAL);

	while (size && url[size - 1] == '/')
		size--;
	if (size > end && !strncmp(url + size - end, SIGNAL, end))
		return xstrndup(url, size);
	return xasprintf("%.*s" SIGNAL, (int)size, url);
}

static bool push_open(struct push *push, const struct rlmd_otlp_options *options,
		      struct rlmd_error *err)
{
	const char *url = options->url ? options->url : "";

	*push = (struct push){0};
	push->answer = buffer_new();
	push->deadline = clock_ms() + (options->time_ms > 0 ? options->time_ms : PUSH_MS);
	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%.100s' is no address of a collector: it begins with http:// or "
				 "https://",
				 url);
	push->url = whole_url(url);
	if (!add_headers(push, options->headers, err))
		return false;
	push->base = loop_new();
	if (!push->base)
		return error_set(err, RLMD_ERROR_MACHINE, "there is no event loop");
	push->http = http_new(push->base, err);
	return push->http;
}

static void push_close(struct push *push)
{
	http_transfer_free(push->transfer);
	http_free(push->http);
	if (push->base)
		event_base_free(push->base);
	for (size_t i = 0; i < push->header_count; i++)
		free(push->headers[i]);
	free(push->headers);
	free(push->url);
	evbuffer_free(push->answer);
}

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct push *push = owner;

	(void)transfer;
	push->status = status;
}

static void on_data(void *owner, struct http_transfer *transfer, struct evbuffer *data)
{
	struct push *push = owner;

	(void)transfer;
	buffer_move(push->answer, data, evbuffer_get_length(data));
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *err)
{
	struct push *push = owner;

	(void)transfer;
	if (err)
		push->error = *err;
	push->over = true;
	event_base_loopbreak(push->base);
}

static bool refused(const struct push *push, struct rlmd_error *err)
{
	struct rlmd_text words = text_in(push->answer);
	bool is_key = push->status == 401 || push->status == 403;
	char shown[4 * WORDS_SHOWN];

	text_escape(text_clip(words, WORDS_SHOWN), shown, sizeof shown);
	return error_set(err, is_key ? RLMD_ERROR_AUTH : RLMD_ERROR_BAD_REPLY,
			 "the collector answered with status %d%s%s", push->status,
			 words.size ? ": " : "", shown);
}

static bool send_one(struct push *push, struct rlmd_text bytes, struct rlmd_error *err)
{
	struct http_request request = {
		.url = push->url,
		.headers = (const char *const *)push->headers,
		.body = body_new(),
		.deadline = push->deadline,
		.idle_ms = PUSH_MS,
		.max_size = ANSWER_MAX,
	};

	body_add(request.body, bytes.bytes);
	while (!body_measure(request.body, SIZE_MAX))
		;
	evbuffer_drain(push->answer, evbuffer_get_length(push->answer));
	push->error = (struct rlmd_error){0};
	push->over = false;
	push->transfer = http_start(push->http, &request, on_status, on_data, on_done, push);
	while (!push->over && !event_base_dispatch(push->base))
		;
	http_transfer_free(take_pointer(&push->transfer));
	if (push->error.kind) {
		*err = push->error;
		return error_context(err, "the collector");
	}
	return push->status / 100 == 2 || refused(push, err);
}

static bool send_all(const struct spans *spans, const struct rlmd_otlp_options *options,
		     size_t *ret_sent, struct rlmd_error *err)
{
	struct push push;
	bool ok = push_open(&push, options, err);
	size_t next;

	for (*ret_sent = 0; ok && *ret_sent < spans->count; *ret_sent = ok ? next : *ret_sent) {
		auto_evbuffer struct evbuffer *bytes = buffer_new();

		next = otlp_write(spans, options, *ret_sent, REQUEST_MAX, bytes);
		buffer_add(bytes, "", 1);
		ok = send_one(&push, text_in(bytes), err);
	}
	push_close(&push);
	return ok;
}

bool rlmd_trace_push(struct rlmd_text lines, const char *name,
		     const struct rlmd_otlp_options *given, size_t *ret_sent, size_t *ret_all,
		     struct rlmd_error *err)
{
	struct rlmd_otlp_options options;
	struct spans spans;
	size_t sent = 0;
	bool ok;

	if (!otlp_take_options(given, &options, err))
		return false;
	ok = spans_read(lines, name, &spans, err) && send_all(&spans, &options, &sent, err);
	if (ret_sent)
		*ret_sent = sent;
	if (ret_all)
		*ret_all = spans.count;
	spans_done(&spans);
	return ok;
}

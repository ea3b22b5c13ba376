/* Sends traces to a collector by OTLP/HTTP, rlmd/trace.h. */
#include <event2/event.h>
#include <rlmd/trace.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/timer.h"
#include "net/http.h"
#include "trace/otlp.h"
#include "trace/spans.h"

#define SIGNAL "/v1/traces"

enum {
	PUSH_MS = 10000,        /* of rlmd_trace_push(), and of each request */
	REQUEST_MAX = 1 << 20,  /* bytes of spans in one request, about */
	WAITING_MAX = 64 << 20, /* bytes of traces that wait */
	ANSWER_MAX = 1 << 20,
	WORDS_SHOWN = 200, /* bytes of a refusal */
};

struct waiting_trace {
	STAILQ_ENTRY(waiting_trace) next;
	struct rlmd_text lines; /* owned */
	char **attributes;      /* owned: of its root, ended by a NULL */
};

struct rlmd_span_exporter {
	struct rlmd_otlp_options options; /* texts lent */
	const char *name;                 /* lent: of traces, for errors */
	struct event_base *base;          /* lent */
	struct http *http;                /* owned */
	char *url;                        /* owned */
	char **headers;                   /* owned, ended by a NULL */
	size_t header_count;

	STAILQ_HEAD(, waiting_trace) waiting; /* owned; the first is the one at hand */
	size_t waiting_size;
	struct spans spans; /* of the trace at hand, where `reads` */
	bool reads;
	size_t from, to;         /* spans of the request at hand */
	struct timer *step;      /* owned: posted where there is something to do */
	struct timer *late;      /* owned: the end of a flush */
	bool over;               /* nothing is sent any more */
	size_t sent, all;        /* spans of the traces that were read */
	size_t dropped;          /* traces */
	struct rlmd_error error; /* the first */

	/* Of the request at hand. */
	struct http_transfer *transfer;
	struct evbuffer *answer; /* owned */
	int status;
};

/* --- how it is asked ------------------------------------------------------------------ */

static void add_header(struct rlmd_span_exporter *exporter, char *header)
{
	exporter->headers = array_grow(exporter->headers, exporter->header_count,
				       sizeof *exporter->headers);
	exporter->headers[exporter->header_count++] = header;
}

/* Nothing in a value can end its header, or begin another one. */
static bool add_headers(struct rlmd_span_exporter *exporter, const char *list,
			struct rlmd_error *err)
{
	bool ok = true;
	char *name, *value;

	add_header(exporter, xstrdup("Content-Type: application/json"));
	while (list && ok && otlp_take_pair(&list, &name, &value)) {
		ok = name && *name && !strpbrk(name, ": \r\n") && !strpbrk(value, "\r\n");
		if (ok)
			add_header(exporter, xasprintf("%s: %s", name, value));
		free(name);
		free(value);
	}
	add_header(exporter, NULL);
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

/* --- traces that wait -------------------------------------------------------------------- */

static void forget_first(struct rlmd_span_exporter *exporter)
{
	struct waiting_trace *trace = STAILQ_FIRST(&exporter->waiting);

	if (exporter->reads)
		spans_done(&exporter->spans);
	exporter->reads = false;
	exporter->waiting_size -= trace->lines.size;
	STAILQ_REMOVE_HEAD(&exporter->waiting, next);
	for (char **attribute = trace->attributes; *attribute; attribute++)
		free(*attribute);
	free(trace->attributes);
	free((char *)trace->lines.bytes);
	free(trace);
}

static void fail(struct rlmd_span_exporter *exporter, const struct rlmd_error *err)
{
	if (!exporter->error.kind)
		exporter->error = *err;
	forget_first(exporter);
	timer_post(exporter->step);
}

void rlmd_span_exporter_add(struct rlmd_span_exporter *exporter, struct rlmd_text lines,
			    const char *const *attributes)
{
	struct waiting_trace *trace;
	size_t count = 0;

	if (!exporter)
		return;
	if (exporter->over || (!STAILQ_EMPTY(&exporter->waiting) &&
			       exporter->waiting_size + lines.size > WAITING_MAX)) {
		exporter->dropped++;
		return;
	}
	trace = xcalloc(1, sizeof *trace);
	trace->lines = text_from(text_copy(lines), lines.size);
	while (attributes && attributes[count])
		count++;
	trace->attributes = xcalloc(count + 1, sizeof *trace->attributes);
	while (count--)
		trace->attributes[count] = xstrdup(attributes[count]);
	exporter->waiting_size += lines.size;
	STAILQ_INSERT_TAIL(&exporter->waiting, trace, next);
	if (!exporter->reads)
		timer_post(exporter->step);
}

/* --- requests ------------------------------------------------------------------------------ */

static bool is_refused(const struct rlmd_span_exporter *exporter, struct rlmd_error *err)
{
	struct rlmd_text words = text_in(exporter->answer);
	bool is_key = exporter->status == 401 || exporter->status == 403;
	char shown[4 * WORDS_SHOWN];

	if (exporter->status / 100 == 2)
		return false;
	text_escape(text_clip(words, WORDS_SHOWN), shown, sizeof shown);
	return !error_set(err, is_key ? RLMD_ERROR_AUTH : RLMD_ERROR_BAD_REPLY,
			  "the collector answered with status %d%s%s", exporter->status,
			  words.size ? ": " : "", shown);
}

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct rlmd_span_exporter *exporter = owner;

	(void)transfer;
	exporter->status = status;
}

static void on_data(void *owner, struct http_transfer *transfer, struct rlmd_text data)
{
	struct rlmd_span_exporter *exporter = owner;

	(void)transfer;
	buffer_add(exporter->answer, data.bytes, data.size);
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *failed)
{
	struct rlmd_span_exporter *exporter = owner;
	struct rlmd_error err = failed ? *failed : (struct rlmd_error){0};

	http_transfer_free(transfer);
	exporter->transfer = NULL;
	if (err.kind) {
		error_context(&err, "the collector");
		fail(exporter, &err);
	} else if (is_refused(exporter, &err)) {
		fail(exporter, &err);
	} else {
		exporter->sent += exporter->to - exporter->from;
		exporter->from = exporter->to;
		timer_post(exporter->step);
	}
}

static void send_some(struct rlmd_span_exporter *exporter)
{
	auto_evbuffer struct evbuffer *bytes = buffer_new();
	struct http_request request = {
		.url = exporter->url,
		.headers = (const char *const *)exporter->headers,
		.body = body_new(),
		.deadline = clock_ms() + PUSH_MS,
		.idle_ms = PUSH_MS,
		.max_size = ANSWER_MAX,
	};

	exporter->to = otlp_write(&exporter->spans, &exporter->options, exporter->from, REQUEST_MAX,
				  bytes);
	buffer_add(bytes, "", 1);
	body_add(request.body, text_in(bytes).bytes);
	while (!body_measure(request.body, SIZE_MAX))
		;
	evbuffer_drain(exporter->answer, evbuffer_get_length(exporter->answer));
	exporter->transfer = http_start(exporter->http, &request, on_status, on_data, on_done,
					exporter);
}

static void read_first(struct rlmd_span_exporter *exporter)
{
	const struct waiting_trace *trace = STAILQ_FIRST(&exporter->waiting);
	struct rlmd_error err;

	exporter->reads = true;
	exporter->from = 0;
	if (!spans_read(trace->lines, exporter->name, &exporter->spans, &err)) {
		fail(exporter, &err);
		return;
	}
	exporter->spans.attributes = (const char *const *)trace->attributes;
	exporter->all += exporter->spans.count;
	timer_post(exporter->step);
}

static void on_step(void *owner)
{
	struct rlmd_span_exporter *exporter = owner;

	if (exporter->transfer || STAILQ_EMPTY(&exporter->waiting))
		return;
	if (!exporter->reads) {
		read_first(exporter);
	} else if (exporter->from < exporter->spans.count) {
		send_some(exporter);
	} else {
		forget_first(exporter);
		timer_post(exporter->step);
	}
}

/* --- the end ------------------------------------------------------------------------------- */

/* A trace that was not read is one that was dropped: nobody knows its spans. */
static void give_up(struct rlmd_span_exporter *exporter)
{
	exporter->over = true;
	http_transfer_free(take_pointer(&exporter->transfer));
	while (!STAILQ_EMPTY(&exporter->waiting)) {
		exporter->dropped += !exporter->reads;
		forget_first(exporter);
	}
}

static void on_late(void *owner)
{
	struct rlmd_span_exporter *exporter = owner;

	if (!exporter->error.kind)
		error_set(&exporter->error, RLMD_ERROR_TIMEOUT,
			  "the collector has not answered in time");
	give_up(exporter);
}

void rlmd_span_exporter_flush(struct rlmd_span_exporter *exporter, int64_t time_ms)
{
	if (!exporter)
		return;
	timer_start(exporter->late, time_ms > 0 ? time_ms : PUSH_MS);
	while (!STAILQ_EMPTY(&exporter->waiting) && !event_base_loop(exporter->base, EVLOOP_ONCE))
		;
	timer_stop(exporter->late);
	give_up(exporter);
}

bool rlmd_span_exporter_result(const struct rlmd_span_exporter *exporter, size_t *ret_sent,
			       size_t *ret_all, struct rlmd_error *err)
{
	if (!exporter)
		return error_set(err, RLMD_ERROR_USAGE, "there is no exporter");
	if (ret_sent)
		*ret_sent = exporter->sent;
	if (ret_all)
		*ret_all = exporter->all;
	if (exporter->error.kind) {
		*err = exporter->error;
		return false;
	}
	return !exporter->dropped ||
	       error_set(err, RLMD_ERROR_TIMEOUT,
			 "the collector is too slow: %zu traces were not sent", exporter->dropped);
}

struct rlmd_span_exporter *rlmd_span_exporter_new(struct event_base *base,
						  const struct rlmd_otlp_options *given,
						  struct rlmd_error *err)
{
	struct rlmd_span_exporter *exporter;
	const char *url;

	if (!base) {
		error_set(err, RLMD_ERROR_USAGE, "an exporter needs an event loop");
		return NULL;
	}
	exporter = xcalloc(1, sizeof *exporter);
	STAILQ_INIT(&exporter->waiting);
	exporter->base = base;
	exporter->name = "the trace";
	exporter->answer = buffer_new();
	exporter->step = timer_new(base, on_step, exporter);
	exporter->late = timer_new(base, on_late, exporter);
	if (!otlp_take_options(given, &exporter->options, err))
		goto failed;
	url = exporter->options.url ? exporter->options.url : "";
	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) {
		error_set(err, RLMD_ERROR_USAGE,
			  "'%.100s' is no address of a collector: it begins with http:// or "
			  "https://",
			  url);
		goto failed;
	}
	exporter->url = whole_url(url);
	if (add_headers(exporter, exporter->options.headers, err) &&
	    (exporter->http = http_new(base, err)))
		return exporter;
failed:
	rlmd_span_exporter_free(exporter);
	return NULL;
}

void rlmd_span_exporter_free(struct rlmd_span_exporter *exporter)
{
	if (!exporter)
		return;
	give_up(exporter);
	http_free(exporter->http);
	timer_free(exporter->step);
	timer_free(exporter->late);
	for (size_t i = 0; i < exporter->header_count; i++)
		free(exporter->headers[i]);
	free(exporter->headers);
	free(exporter->url);
	evbuffer_free(exporter->answer);
	free(exporter);
}

/* --- one trace -------------------------------------------------------------------------------- */

bool rlmd_trace_push(struct rlmd_text lines, const char *name,
		     const struct rlmd_otlp_options *options, size_t *ret_sent, size_t *ret_all,
		     struct rlmd_error *err)
{
	struct event_base *base = loop_new();
	struct rlmd_span_exporter *exporter;
	bool ok;

	if (!base)
		return error_set(err, RLMD_ERROR_MACHINE, "there is no event loop");
	exporter = rlmd_span_exporter_new(base, options, err);
	if (exporter) {
		exporter->name = name;
		rlmd_span_exporter_add(exporter, lines, NULL);
		rlmd_span_exporter_flush(exporter, exporter->options.time_ms);
	}
	ok = exporter && rlmd_span_exporter_result(exporter, ret_sent, ret_all, err);
	rlmd_span_exporter_free(exporter);
	event_base_free(base);
	return ok;
}

/*
 * rlmd/trace.h - reads a trace: its events, and the tree of runs that they make.
 *
 * A trace is lines of JSON, one an event, as the hook `event` of a job gets them
 * (docs/trace.md in the source). It may end anywhere, if its run was killed.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;

/*
 * The tree of the last root run in the lines: a JSON object as the member `trace` of a result, new;
 * the caller frees it. A last line that was cut is passed over. A run without an end has the
 * answerSource "error" and the usage that its events add up to. `name` is for errors, or NULL.
 * NULL and RLMD_ERROR_INPUT if a line is not of a trace; the text has its number.
 */
RLMD_API char *rlmd_trace_tree(struct rlmd_text lines, const char *name, struct rlmd_error *);

/* An event: its name, and its line of JSON without the line feed; both lent. */
typedef void rlmd_trace_event_fn(void *owner, const char *event, struct rlmd_text line);

/*
 * The events of the last trace in the lines, each once and in their order. Lines that were cut are
 * passed over, as above. False and RLMD_ERROR_INPUT if a line is not of a trace, before any event
 * is given, or if there is none; RLMD_ERROR_USAGE for a function that is NULL.
 */
RLMD_API bool rlmd_trace_events(struct rlmd_text lines, const char *name, rlmd_trace_event_fn *,
				void *owner, struct rlmd_error *);

/* The last trace in the lines for viewers of Chrome's trace event format, as Perfetto: a JSON
 * object, new; the caller frees it. NULL: as rlmd_trace_events(), and RLMD_ERROR_INPUT for a trace
 * that does not say when it began. */
RLMD_API char *rlmd_trace_chrome(struct rlmd_text lines, const char *name, struct rlmd_error *);

/* How a trace becomes OpenTelemetry's spans (docs/trace.md). All is lent, and may be NULL. */
struct rlmd_otlp_options {
	size_t size;
	const char *service;     /* service.name; NULL: "rlmd" */
	const char *resource;    /* more attributes of the resource, as OTEL_RESOURCE_ATTRIBUTES */
	const char *traceparent; /* the span above the root (W3C Trace Context) */
	bool content;            /* prompts, answers and code, too */
	const char *url;         /* of rlmd_trace_push(): a base, or whole, ending in /v1/traces */
	const char *headers;     /* of each request, as OTEL_EXPORTER_OTLP_HEADERS */
	int64_t time_ms;         /* of rlmd_trace_push(), for all requests together; 0: 10,000 */
};

#define RLMD_OTLP_OPTIONS_INIT RLMD_INIT(struct rlmd_otlp_options)

/* The last trace in the lines as OTLP in JSON, one object, new; the caller frees it. Ids are made
 * of those of runs: the same trace gives the same spans. NULL: as rlmd_trace_chrome(). */
RLMD_API char *rlmd_trace_otlp(struct rlmd_text lines, const char *name,
			       const struct rlmd_otlp_options *, struct rlmd_error *);

/* Sends the same to a collector by OTLP/HTTP, some hundred spans a request; blocks until it is
 * over. False: as rlmd_trace_chrome(); RLMD_ERROR_USAGE for a bad url or header;
 * RLMD_ERROR_NETWORK, RLMD_ERROR_TIMEOUT; RLMD_ERROR_AUTH or RLMD_ERROR_BAD_REPLY where the
 * collector refuses them. `ret_sent`, if it is not NULL, is the number of spans that were sent,
 * `ret_all` of all. */
RLMD_API bool rlmd_trace_push(struct rlmd_text lines, const char *name,
			      const struct rlmd_otlp_options *, size_t *ret_sent, size_t *ret_all,
			      struct rlmd_error *);

/* Sends the spans of many traces to a collector, one trace after the other, on an event loop, which
 * never waits for it. For a program that serves jobs and stays. */
struct rlmd_span_exporter;

/* `base` and the texts of the options are lent until it is freed. NULL: RLMD_ERROR_USAGE for a bad
 * url or header, RLMD_ERROR_MACHINE. */
RLMD_API struct rlmd_span_exporter *rlmd_span_exporter_new(struct event_base *base,
							   const struct rlmd_otlp_options *,
							   struct rlmd_error *);

/* The last trace in the lines, which are copied. `attributes`: names and values of more attributes
 * of its root's span, in turn, ended by a NULL; or NULL. Where traces of 64 MiB wait, it is
 * dropped. */
RLMD_API void rlmd_span_exporter_add(struct rlmd_span_exporter *, struct rlmd_text lines,
				     const char *const *attributes);

/* Runs the loop until all is sent, for so many milliseconds at most (0: 10,000). Whatever was not
 * sent by then is dropped, and so is all that is added later. */
RLMD_API void rlmd_span_exporter_flush(struct rlmd_span_exporter *, int64_t time_ms);

/* How many spans were sent, and how many those traces had that were read. False: some were not,
 * and `err` is the first reason: errors as of rlmd_trace_push(). */
RLMD_API bool rlmd_span_exporter_result(const struct rlmd_span_exporter *, size_t *ret_sent,
					size_t *ret_all, struct rlmd_error *err);
RLMD_API void rlmd_span_exporter_free(struct rlmd_span_exporter *); /* NULL is fine */

#ifdef __cplusplus
}
#endif

/*
 * batch/trace_buffer.h - the trace of a job as it comes, in bounded memory, in case it fails.
 *
 * The beginning and the end are kept, and of what lies between it is said how much it was. The kept
 * events can be shown as any trace can (docs/trace.md).
 */
#pragma once

#include <rlmd/rlmd.h>

struct evbuffer;
struct trace_buffer;
struct rlmd_span_exporter;

enum {
	TRACE_BUFFER_FIRST = 64 << 10, /* bytes of the beginning, and the first event in any case */
	TRACE_BUFFER_LAST =
		192 << 10, /* of the end; an event that is longer than this is left out */
};

struct trace_buffer *trace_buffer_new(void);
void trace_buffer_free(struct trace_buffer *); /* NULL is fine */

/* An event: a line of JSON without its line feed; copied. */
void trace_buffer_add(struct trace_buffer *, struct rlmd_text line);

/* Appends all lines that are kept, but those of runs whose own beginning is not. */
void trace_buffer_write(const struct trace_buffer *, struct evbuffer *out);

/* Sends its spans; `attributes` as rlmd_span_exporter_add() has them. */
void trace_buffer_export(const struct trace_buffer *, struct rlmd_span_exporter *,
			 const char *const *attributes);

/*
 * llm/stream.h - bytes of a stream into events: server-sent events and NDJSON.
 *
 * SSE as the WHATWG HTML standard has it (data lines joined, comments ignored, CR, LF or CRLF,
 * a leading BOM dropped); NDJSON is a line an event. Split anywhere, the events are the same.
 */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "llm/adapter.h"

struct stream;
typedef bool stream_event_fn(void *owner, const struct adapter_event *, struct rlmd_error *);

/* Asked at the beginning of each event: how many bytes, or 0, are events that need no reading, for
 * they were taken. All of the last one is among them. */
typedef bool stream_ahead_fn(void *owner, struct rlmd_text bytes, size_t *ret_taken,
			     struct rlmd_error *);

struct stream *stream_new(enum adapter_framing, stream_event_fn *, stream_ahead_fn *ahead,
			  void *owner);
void stream_free(struct stream *);

/* Feeds bytes; false once a callback said so or an event outgrew REPLY_EVENT_MAX. */
bool stream_feed(struct stream *, struct rlmd_text, struct rlmd_error *);

/* The end of the body. The bytes that are there count, without the blank line that ends an SSE
 * event or the line feed that ends a line: some servers leave them out. So the last event may be
 * half a one. */
bool stream_end(struct stream *, struct rlmd_error *);

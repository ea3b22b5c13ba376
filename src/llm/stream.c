#include "llm/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BOM "\xef\xbb\xbf"

struct stream {
	enum adapter_framing framing;
	stream_event_fn *fn;
	void *owner;           /* lent */
	struct evbuffer *line; /* owned: the line that has not ended yet */
	struct evbuffer *data; /* owned: SSE's data lines so far, each ended by a line feed */
	char event[64];        /* SSE's event field; a longer one is unknown to us anyway */
	bool begun;            /* the first line is over: no byte order mark any more */
	bool after_cr;         /* a line feed now belongs to the carriage return before it */
};

struct stream *stream_new(enum adapter_framing framing, stream_event_fn *fn, void *owner)
{
	struct stream *stream = xcalloc(1, sizeof *stream);

	*stream = (struct stream){
		.framing = framing,
		.fn = fn,
		.owner = owner,
		.line = evbuffer_new(),
		.data = evbuffer_new(),
	};
	return stream;
}

void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	evbuffer_free(stream->line);
	evbuffer_free(stream->data);
	free(stream);
}

static bool dispatch(struct stream *stream, struct rlmd_error *err)
{
	struct rlmd_text data = text_in(stream->data);
	bool ok = true;

	if (data.size) {
		data.size--; /* the last line's line feed */
		ok = stream->fn(stream->owner, text_of(stream->event), data, err);
		evbuffer_drain(stream->data, data.size + 1);
	}
	stream->event[0] = '\0';
	return ok;
}

static bool take_field(struct stream *stream, struct rlmd_text name, struct rlmd_text value,
		       struct rlmd_error *err)
{
	if (text_equal(name, "event")) {
		value = text_clip(value, sizeof stream->event - 1);
		memcpy(stream->event, value.bytes, value.size);
		stream->event[value.size] = '\0';
	} else if (text_equal(name, "data")) {
		if (evbuffer_get_length(stream->data) + value.size >= REPLY_EVENT_MAX)
			return error_set(err, RLMD_ERROR_BAD_REPLY,
					 "an event is longer than %d MiB", REPLY_EVENT_MAX >> 20);
		evbuffer_add(stream->data, value.bytes, value.size);
		evbuffer_add(stream->data, "\n", 1);
	}
	return true;
}

static bool take_sse_line(struct stream *stream, struct rlmd_text line, struct rlmd_error *err)
{
	const char *colon;
	struct rlmd_text value;

	if (!line.size)
		return dispatch(stream, err);
	colon = memchr(line.bytes, ':', line.size);
	if (!colon)
		return take_field(stream, line, text_from("", 0), err);
	value = text_from(colon + 1, (size_t)(line.bytes + line.size - colon - 1));
	if (value.size && *value.bytes == ' ')
		value = text_from(value.bytes + 1, value.size - 1);
	/* A comment is a field without a name, and so of no interest. */
	return take_field(stream, text_from(line.bytes, (size_t)(colon - line.bytes)), value, err);
}

static bool take_line(struct stream *stream, struct rlmd_error *err)
{
	struct rlmd_text line = text_in(stream->line);
	size_t size = line.size;
	bool ok = true;

	if (!stream->begun && line.size >= 3 && !memcmp(line.bytes, BOM, 3))
		line = text_from(line.bytes + 3, line.size - 3);
	stream->begun = true;
	switch (stream->framing) {
	case FRAMING_SSE:
		ok = take_sse_line(stream, line, err);
		break;
	case FRAMING_NDJSON:
		line = text_trim(line);
		ok = !line.size || stream->fn(stream->owner, text_of(""), line, err);
		break;
	}
	evbuffer_drain(stream->line, size);
	return ok;
}

/* How many bytes come before the end of the line. */
static size_t line_size(const struct stream *stream, struct rlmd_text text)
{
	char cr = stream->framing == FRAMING_SSE ? '\r' : '\n';
	size_t size = 0;

	while (size < text.size && text.bytes[size] != '\n' && text.bytes[size] != cr)
		size++;
	return size;
}

bool stream_feed(struct stream *stream, struct rlmd_text text, struct rlmd_error *err)
{
	while (text.size) {
		size_t size = line_size(stream, text);
		bool paired = stream->after_cr && *text.bytes == '\n';

		stream->after_cr = false;
		if (evbuffer_get_length(stream->line) + size > REPLY_EVENT_MAX)
			return error_set(err, RLMD_ERROR_BAD_REPLY, "a line is longer than %d MiB",
					 REPLY_EVENT_MAX >> 20);
		evbuffer_add(stream->line, text.bytes, size);
		text = text_from(text.bytes + size, text.size - size);
		if (!text.size)
			return true;
		stream->after_cr = *text.bytes == '\r';
		text = text_from(text.bytes + 1, text.size - 1);
		if (!paired && !take_line(stream, err))
			return false;
	}
	return true;
}

bool stream_end(struct stream *stream, struct rlmd_error *err)
{
	if (evbuffer_get_length(stream->line) && !take_line(stream, err))
		return false;
	return dispatch(stream, err);
}

#include "llm/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

#define BOM  "\xef\xbb\xbf"
#define DATA "data: "
enum { DATA_SIZE = sizeof DATA - 1 };

struct stream {
	enum adapter_framing framing;
	stream_event_fn *fn;
	void *owner;           /* lent */
	struct evbuffer *line; /* owned: the line that has not ended yet */
	struct evbuffer *data; /* owned: SSE's data lines so far, each ended by a line feed */
	struct rlmd_text only; /* lent while feeding: SSE's data, of one line that needs no copy */
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
		.line = buffer_new(),
		.data = buffer_new(),
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
	size_t size = evbuffer_get_length(stream->data);
	bool ok = true;

	if (stream->only.bytes) {
		ok = stream->fn(stream->owner, text_of(stream->event), stream->only, err);
		stream->only = (struct rlmd_text){0};
	} else if (size) {
		ok = stream->fn(stream->owner, text_of(stream->event),
				text_slice(text_in(stream->data), 0, size - 1), err);
		evbuffer_drain(stream->data, size);
	}
	stream->event[0] = '\0';
	return ok;
}

/* Nearly all events come in one piece, and have one line: these are not copied. */
static void keep_only(struct stream *stream)
{
	if (!stream->only.bytes)
		return;
	buffer_add(stream->data, stream->only.bytes, stream->only.size);
	buffer_add(stream->data, "\n", 1);
	stream->only = (struct rlmd_text){0};
}

static bool take_data(struct stream *stream, struct rlmd_text value, bool stays,
		      struct rlmd_error *err)
{
	keep_only(stream);
	if (evbuffer_get_length(stream->data) + value.size >= REPLY_EVENT_MAX)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "an event is longer than %d MiB",
				 REPLY_EVENT_MAX >> 20);
	stream->only = value;
	if (!stays || evbuffer_get_length(stream->data))
		keep_only(stream);
	return true;
}

/* `stays`: the line is there until the feeding is over. */
static bool take_field(struct stream *stream, struct rlmd_text name, struct rlmd_text value,
		       bool stays, struct rlmd_error *err)
{
	if (text_equal(name, "data"))
		return take_data(stream, value, stays, err);
	if (text_equal(name, "event")) {
		value = text_clip(value, sizeof stream->event - 1);
		memcpy(stream->event, value.bytes, value.size);
		stream->event[value.size] = '\0';
	}
	return true;
}

static bool take_sse_line(struct stream *stream, struct rlmd_text line, bool stays,
			  struct rlmd_error *err)
{
	const char *colon;
	struct rlmd_text value;

	if (!line.size)
		return dispatch(stream, err);
	colon = memchr(line.bytes, ':', line.size);
	if (!colon)
		return take_field(stream, line, text_from("", 0), false, err);
	value = text_from(colon + 1, (size_t)(line.bytes + line.size - colon - 1));
	if (value.size && *value.bytes == ' ')
		value = text_from(value.bytes + 1, value.size - 1);
	/* A comment is a field without a name, and so of no interest. */
	return take_field(stream, text_from(line.bytes, (size_t)(colon - line.bytes)), value, stays,
			  err);
}

static bool take_line(struct stream *stream, struct rlmd_text line, bool stays,
		      struct rlmd_error *err)
{
	if (!stream->begun && line.size >= 3 && !memcmp(line.bytes, BOM, 3))
		line = text_from(line.bytes + 3, line.size - 3);
	stream->begun = true;
	if (stream->framing == FRAMING_SSE)
		return take_sse_line(stream, line, stays, err);
	line = text_trim(line);
	return !line.size || stream->fn(stream->owner, text_of(""), line, err);
}

/* The line whose beginning came before. */
static bool take_kept_line(struct stream *stream, struct rlmd_error *err)
{
	struct rlmd_text line = text_in(stream->line);
	bool ok = take_line(stream, line, false, err);

	evbuffer_drain(stream->line, line.size);
	return ok;
}

/* Where lines end, which of SSE may be at either of two; each is looked for once. */
struct ends {
	const char *lf, *cr, *end;
	bool sse;
};

static void find_ends(struct ends *ends, const char *at)
{
	size_t left = (size_t)(ends->end - at);

	if (!ends->lf || ends->lf < at) {
		ends->lf = memchr(at, '\n', left);
		ends->lf = ends->lf ? ends->lf : ends->end;
	}
	if (!ends->cr || ends->cr < at) {
		ends->cr = ends->sse ? memchr(at, '\r', left) : NULL;
		ends->cr = ends->cr ? ends->cr : ends->end;
	}
}

/* A line that has ended: `rest` of it, after what came before. */
static bool end_line(struct stream *stream, struct rlmd_text rest, struct rlmd_error *err)
{
	if (!evbuffer_get_length(stream->line))
		return take_line(stream, rest, true, err);
	buffer_add(stream->line, rest.bytes, rest.size);
	return take_kept_line(stream, err);
}

/* Nearly all of a stream has this form: one line of data, and the empty one that ends its event.
 * None of it has to be kept until then. */
static bool is_plain_event(const struct stream *stream, struct rlmd_text line, const char *next)
{
	return line.size >= DATA_SIZE && line.size < REPLY_EVENT_MAX && *next == '\n' &&
	       !memcmp(line.bytes, DATA, DATA_SIZE) && stream->begun && !*stream->event &&
	       !stream->after_cr && !stream->only.bytes && !evbuffer_get_length(stream->line) &&
	       !evbuffer_get_length(stream->data);
}

static bool feed(struct stream *stream, struct rlmd_text text, struct rlmd_error *err)
{
	const char *at = text.bytes, *end = at + text.size, *stop;
	struct ends ends = {NULL, NULL, end, stream->framing == FRAMING_SSE};

	for (; at < end; at = stop + 1) {
		bool paired = stream->after_cr && *at == '\n';
		struct rlmd_text rest;

		find_ends(&ends, at);
		stop = ends.lf < ends.cr ? ends.lf : ends.cr;
		rest = text_from(at, (size_t)(stop - at));
		if (ends.sse && ends.lf < ends.cr && stop + 1 < end &&
		    is_plain_event(stream, rest, stop + 1)) {
			rest = text_from(at + DATA_SIZE, rest.size - DATA_SIZE);
			if (!stream->fn(stream->owner, (struct rlmd_text){"", 0}, rest, err))
				return false;
			stop++;
			continue;
		}
		stream->after_cr = false;
		if (evbuffer_get_length(stream->line) + rest.size > REPLY_EVENT_MAX)
			return error_set(err, RLMD_ERROR_BAD_REPLY, "a line is longer than %d MiB",
					 REPLY_EVENT_MAX >> 20);
		if (stop == end) {
			buffer_add(stream->line, rest.bytes, rest.size);
			return true;
		}
		stream->after_cr = *stop == '\r';
		if (!paired && !end_line(stream, rest, err))
			return false;
	}
	return true;
}

bool stream_feed(struct stream *stream, struct rlmd_text text, struct rlmd_error *err)
{
	bool ok = !text.size || feed(stream, text, err);

	keep_only(stream);
	return ok;
}

bool stream_end(struct stream *stream, struct rlmd_error *err)
{
	if (evbuffer_get_length(stream->line) && !take_kept_line(stream, err))
		return false;
	return dispatch(stream, err);
}

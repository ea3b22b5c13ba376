#include "llm/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

#define BOM "\xef\xbb\xbf"

enum { EARLIER_MAX = 16 << 10 }; /* bytes: a longer event is none that was expected */

struct stream {
	enum adapter_framing framing;
	stream_event_fn *fn;
	stream_ahead_fn *ahead;
	void *owner;           /* lent */
	struct evbuffer *line; /* owned: the line that has not ended yet */
	struct evbuffer *data; /* owned: SSE's data lines so far, each ended by a line feed */
	struct rlmd_text only; /* lent while feeding: SSE's data, of one line that needs no copy */
	char event[64];        /* SSE's event field; a longer one is unknown to us anyway */
	/* The bytes of the event that has not ended yet: owned, those of earlier feedings, or a bit
	 * more than EARLIER_MAX of them; and lent, those of this one, to the end of their last
	 * line. */
	struct evbuffer *earlier;
	const char *start, *end;
	bool begun;    /* the first line is over: no byte order mark any more */
	bool after_cr; /* a line feed now belongs to the carriage return before it */
};

struct stream *stream_new(enum adapter_framing framing, stream_event_fn *fn, stream_ahead_fn *ahead,
			  void *owner)
{
	struct stream *stream = xcalloc(1, sizeof *stream);

	*stream = (struct stream){
		.framing = framing,
		.fn = fn,
		.ahead = ahead,
		.owner = owner,
		.line = buffer_new(),
		.data = buffer_new(),
		.earlier = buffer_new(),
	};
	return stream;
}

void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	evbuffer_free(stream->line);
	evbuffer_free(stream->data);
	evbuffer_free(stream->earlier);
	free(stream);
}

/* No event has begun that has not ended. */
static bool is_between(const struct stream *stream)
{
	return stream->start == stream->end && !evbuffer_get_length(stream->earlier);
}

static void keep_earlier(struct stream *stream)
{
	if (evbuffer_get_length(stream->earlier) <= EARLIER_MAX)
		buffer_add(stream->earlier, stream->start, (size_t)(stream->end - stream->start));
}

static void end_event(struct stream *stream)
{
	evbuffer_drain(stream->earlier, evbuffer_get_length(stream->earlier));
	stream->event[0] = '\0';
	stream->start = stream->end;
}

/* An event with data, which are lent from its bytes if those are `whole`. */
static bool give(struct stream *stream, struct rlmd_text data, bool whole, struct rlmd_error *err)
{
	struct adapter_event event = {.name = text_of(stream->event), .data = data};
	size_t taken;

	if (evbuffer_get_length(stream->earlier)) {
		keep_earlier(stream);
		if (!stream->ahead(stream->owner, text_in(stream->earlier), &taken, err))
			return false;
		if (taken)
			return true;
	} else if (whole && stream->end[-1] == '\n') {
		event.bytes = text_from(stream->start, (size_t)(stream->end - stream->start));
	}
	return stream->fn(stream->owner, &event, err);
}

static bool dispatch(struct stream *stream, struct rlmd_error *err)
{
	size_t size = evbuffer_get_length(stream->data);
	bool ok = true;

	if (stream->only.bytes) {
		ok = give(stream, stream->only, true, err);
		stream->only = (struct rlmd_text){0};
	} else if (size) {
		ok = give(stream, text_slice(text_in(stream->data), 0, size - 1), false, err);
		evbuffer_drain(stream->data, size);
	}
	end_event(stream);
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
	bool ok;

	if (!stream->begun && line.size >= 3 && !memcmp(line.bytes, BOM, 3)) {
		line = text_from(line.bytes + 3, line.size - 3);
		stream->start = stays ? line.bytes : stream->start; /* is of no event */
	}
	stream->begun = true;
	if (stream->framing == FRAMING_SSE)
		return take_sse_line(stream, line, stays, err);
	line = text_trim(line);
	ok = !line.size || give(stream, line, stays, err);
	end_event(stream);
	return ok;
}

/* The line whose beginning came before. */
static bool take_kept_line(struct stream *stream, struct rlmd_error *err)
{
	struct rlmd_text line = text_in(stream->line);
	bool ok = take_line(stream, line, false, err);

	evbuffer_drain(stream->line, line.size);
	return ok;
}

/* Where lines end: the next line feed is looked for once, whatever stands before it. */
struct ends {
	const char *lf, *end;
	bool sse;
};

static const char *find_end(struct ends *ends, const char *at)
{
	const char *cr;

	if (!ends->lf || ends->lf < at) {
		ends->lf = memchr(at, '\n', (size_t)(ends->end - at));
		ends->lf = ends->lf ? ends->lf : ends->end;
	}
	cr = ends->sse ? memchr(at, '\r', (size_t)(ends->lf - at)) : NULL;
	return cr ? cr : ends->lf;
}

/* A line that has ended: `rest` of it, after what came before. */
static bool end_line(struct stream *stream, struct rlmd_text rest, struct rlmd_error *err)
{
	if (!evbuffer_get_length(stream->line))
		return take_line(stream, rest, true, err);
	buffer_add(stream->line, rest.bytes, rest.size);
	return take_kept_line(stream, err);
}

/* A line, or what there is of it. */
static bool feed_line(struct stream *stream, struct ends *ends, const char *at,
		      struct rlmd_error *err)
{
	const char *stop = find_end(ends, at);
	struct rlmd_text rest = text_from(at, (size_t)(stop - at));

	stream->end = stop;
	if (evbuffer_get_length(stream->line) + rest.size > REPLY_EVENT_MAX)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "a line is longer than %d MiB",
				 REPLY_EVENT_MAX >> 20);
	if (stop == ends->end) {
		buffer_add(stream->line, rest.bytes, rest.size);
		return true;
	}
	stream->end++;
	if (*stop == '\r' && stream->end == ends->end)
		stream->after_cr = true;
	else if (*stop == '\r' && *stream->end == '\n')
		stream->end++;
	return end_line(stream, rest, err);
}

static bool feed(struct stream *stream, struct rlmd_text text, struct rlmd_error *err)
{
	struct ends ends = {.end = text.bytes + text.size, .sse = stream->framing == FRAMING_SSE};
	size_t taken;

	stream->after_cr = false;
	stream->start = stream->end = text.bytes;
	while (stream->end < ends.end) {
		const char *at = stream->end;

		if (is_between(stream)) {
			if (!stream->ahead(stream->owner, text_from(at, (size_t)(ends.end - at)),
					   &taken, err))
				return false;
			at = stream->start = stream->end = at + taken;
		}
		if (at < ends.end && !feed_line(stream, &ends, at, err))
			return false;
	}
	if (!is_between(stream))
		keep_earlier(stream);
	return true;
}

bool stream_feed(struct stream *stream, struct rlmd_text text, struct rlmd_error *err)
{
	bool ok;

	if (stream->after_cr && text.size && *text.bytes == '\n') {
		stream->after_cr = false;
		text = text_slice(text, 1, text.size);
	}
	ok = !text.size || feed(stream, text, err);
	keep_only(stream);
	return ok;
}

bool stream_end(struct stream *stream, struct rlmd_error *err)
{
	stream->start = stream->end = NULL;
	if (evbuffer_get_length(stream->line) && !take_kept_line(stream, err))
		return false;
	return dispatch(stream, err);
}

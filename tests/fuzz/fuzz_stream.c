/*
 * Framing: the first byte chooses between SSE and NDJSON and how long the pieces are. The events
 * must be those of the same bytes in one piece.
 */
#include <event2/buffer.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "llm/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_event(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct evbuffer *events = owner;

	(void)err;
	evbuffer_add(events, event->name.bytes, event->name.size);
	evbuffer_add(events, "", 1);
	evbuffer_add(events, event->data.bytes, event->data.size);
	evbuffer_add(events, "", 1);
	return true;
}

static bool on_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken, struct rlmd_error *err)
{
	(void)owner, (void)bytes, (void)err;
	*ret_taken = 0;
	return true;
}

static char *events_of(enum adapter_framing framing, struct rlmd_text bytes, size_t piece,
		       size_t *ret_size)
{
	struct evbuffer *events = evbuffer_new();
	struct stream *stream = stream_new(framing, on_event, on_ahead, events);
	char *string;

	while (bytes.size) {
		size_t size = piece < bytes.size ? piece : bytes.size;

		if (!stream_feed(stream, text_from(bytes.bytes, size), NULL))
			break;
		bytes = text_from(bytes.bytes + size, bytes.size - size);
	}
	stream_end(stream, NULL);
	stream_free(stream);
	string = text_drain(events, ret_size);
	evbuffer_free(events);
	return string;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum adapter_framing framing;
	struct rlmd_text bytes;
	size_t whole_size, cut_size;
	char *whole, *cut;

	if (!size)
		return 0;
	framing = *data & 1 ? FRAMING_SSE : FRAMING_NDJSON;
	bytes = text_from(data + 1, size - 1);
	whole = events_of(framing, bytes, size, &whole_size);
	cut = events_of(framing, bytes, 1 + *data / 2U, &cut_size);
	if (whole_size != cut_size || memcmp(whole, cut, whole_size) != 0)
		abort();
	free(whole);
	free(cut);
	return 0;
}

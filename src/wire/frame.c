#include "wire/frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <event2/buffer.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"

/*
 * All texts inside one frame. JSON needs up to six bytes for one of theirs, and
 * 10,000 indexes, sizes and kinds of error have to fit in FRAME_MAX beside them.
 */
enum { INLINE_MAX = 64 << 10 };

struct frame {
	json_t *message;           /* owned */
	json_t *sizes;             /* owned: of the attachments */
	struct evbuffer *attached; /* owned: their bytes */
	size_t inline_size;
};

struct frame *frame_new(const char *type)
{
	struct frame *frame = xcalloc(1, sizeof *frame);

	frame->message = json_object();
	frame->sizes = json_array();
	frame->attached = evbuffer_new();
	frame_string(frame, "type", type);
	return frame;
}

void frame_free(struct frame *frame)
{
	if (!frame)
		return;
	json_decref(frame->message);
	json_decref(frame->sizes);
	evbuffer_free(frame->attached);
	free(frame);
}

void frame_json(struct frame *frame, const char *key, json_t *stolen)
{
	json_object_set_new(frame->message, key, stolen);
}

void frame_integer(struct frame *frame, const char *key, int64_t value)
{
	frame_json(frame, key, json_integer(value));
}

void frame_string(struct frame *frame, const char *key, const char *string)
{
	frame_json(frame, key, string ? json_from_text(text_of(string)) : json_null());
}

void frame_text(struct frame *frame, const char *key, struct rlmd_text text)
{
	frame_json(frame, key, frame_text_value(frame, text));
}

json_t *frame_text_value(struct frame *frame, struct rlmd_text text)
{
	size_t before = evbuffer_get_length(frame->attached);

	if (text.size <= TEXT_INLINE_MAX && frame->inline_size + text.size <= INLINE_MAX &&
	    text_is_utf8(text)) {
		frame->inline_size += text.size;
		return json_from_text(text);
	}
	text_repair(text, frame->attached);
	json_array_append_new(
		frame->sizes,
		json_integer((json_int_t)(evbuffer_get_length(frame->attached) - before)));
	return json_integer((json_int_t)json_array_size(frame->sizes) - 1);
}

void frame_encode(struct frame *frame, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *json = evbuffer_new();
	uint32_t length;

	if (json_array_size(frame->sizes))
		json_object_set(frame->message, "attachments", frame->sizes);
	json_write(frame->message, false, json);
	assert(evbuffer_get_length(json) <= FRAME_MAX);
	length = htonl((uint32_t)evbuffer_get_length(json));
	evbuffer_add(out, &length, sizeof length);
	/* Copied, so that many small frames take no more memory than their bytes. */
	evbuffer_add(out, text_in(json).bytes, text_in(json).size);
	evbuffer_add_buffer(out, frame->attached);
}

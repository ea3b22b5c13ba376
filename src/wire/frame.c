#include "wire/frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_quote.h"

/*
 * All texts inside one frame. JSON needs up to six bytes for one of theirs, and
 * 10,000 indexes, sizes and kinds of error have to fit in FRAME_MAX beside them.
 */
enum { INLINE_MAX = 64 << 10 };

struct frame {
	struct evbuffer *json;     /* owned: the object, as far as it was written */
	struct evbuffer *sizes;    /* owned: of the attachments, as JSON; NULL: there are none */
	struct evbuffer *attached; /* owned: their bytes; or NULL */
	size_t attachment_count;
	size_t inline_size;
	bool first; /* what comes next is its array's first element */
};

static void put(struct evbuffer *out, const char *string)
{
	buffer_add(out, string, strlen(string));
}

static void put_integer(struct evbuffer *out, int64_t value)
{
	char digits[24];

	buffer_add(out, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value));
}

/* Of a member, or what parts an element from the one before. */
static void put_key(struct frame *frame, const char *key)
{
	if (!frame->first)
		put(frame->json, ",");
	frame->first = false;
	if (!key)
		return;
	put(frame->json, "\"");
	put(frame->json, key);
	put(frame->json, "\":");
}

struct frame *frame_new(const char *type)
{
	struct frame *frame = xcalloc(1, sizeof *frame);

	frame->json = buffer_new();
	frame->first = true;
	put(frame->json, "{");
	frame_string(frame, "type", text_of(type));
	return frame;
}

void frame_free(struct frame *frame)
{
	if (!frame)
		return;
	evbuffer_free(frame->json);
	if (frame->attached) {
		evbuffer_free(frame->sizes);
		evbuffer_free(frame->attached);
	}
	free(frame);
}

void frame_integer(struct frame *frame, const char *key, int64_t value)
{
	put_key(frame, key);
	put_integer(frame->json, value);
}

void frame_null(struct frame *frame, const char *key)
{
	put_key(frame, key);
	put(frame->json, "null");
}

void frame_string(struct frame *frame, const char *key, struct rlmd_text string)
{
	put_key(frame, key);
	json_quote(string, frame->json);
}

/* Where the bytes of the next attachment go. */
static struct evbuffer *attached(struct frame *frame)
{
	if (!frame->attached) {
		frame->attached = buffer_new();
		frame->sizes = buffer_new();
	}
	return frame->attached;
}

/* It is there: the JSON names it by its number. */
static void number(struct frame *frame, size_t size)
{
	put(frame->sizes, frame->attachment_count ? "," : "");
	put_integer(frame->sizes, (int64_t)size);
	put_integer(frame->json, (int64_t)frame->attachment_count++);
}

static void attach(struct frame *frame, struct rlmd_text text)
{
	struct evbuffer *out = attached(frame);
	size_t before = evbuffer_get_length(out);

	text_repair(text, out);
	number(frame, evbuffer_get_length(out) - before);
}

static bool fits_in(const struct frame *frame, size_t size)
{
	return size <= TEXT_INLINE_MAX && frame->inline_size + size <= INLINE_MAX;
}

static void put_inside(struct frame *frame, struct rlmd_text text)
{
	frame->inline_size += text.size;
	json_quote(text, frame->json);
}

void frame_text(struct frame *frame, const char *key, struct rlmd_text text)
{
	put_key(frame, key);
	if (fits_in(frame, text.size) && text_is_utf8(text))
		put_inside(frame, text);
	else
		attach(frame, text);
}

static void free_attached(const void *bytes, size_t size, void *owned)
{
	(void)bytes;
	(void)size;
	free(owned);
}

void frame_text_owned(struct frame *frame, const char *key, char **owned, size_t size)
{
	char *bytes;

	put_key(frame, key);
	if (fits_in(frame, size)) {
		put_inside(frame, text_from(*owned, size));
		return;
	}
	bytes = take_pointer(owned);
	buffer_add_reference(attached(frame), bytes, size, free_attached, bytes);
	number(frame, size);
}

void frame_array(struct frame *frame, const char *key)
{
	put_key(frame, key);
	put(frame->json, "[");
	frame->first = true;
}

void frame_array_end(struct frame *frame)
{
	put(frame->json, "]");
	frame->first = false;
}

void frame_encode(struct frame *frame, struct evbuffer *out)
{
	uint32_t length;

	if (frame->attached) {
		put(frame->json, ",\"attachments\":[");
		buffer_add_buffer(frame->json, frame->sizes);
		put(frame->json, "]");
	}
	put(frame->json, "}");
	assert(evbuffer_get_length(frame->json) <= FRAME_MAX);
	length = htonl((uint32_t)evbuffer_get_length(frame->json));
	buffer_add(out, &length, sizeof length);
	/* Copied, so that many small frames take no more memory than their bytes. */
	buffer_add(out, text_in(frame->json).bytes, text_in(frame->json).size);
	if (frame->attached)
		buffer_add_buffer(out, frame->attached);
}

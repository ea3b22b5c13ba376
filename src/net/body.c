#include "net/body.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json_quote.h"

enum {
	SHORT = 16 << 10,        /* bytes of a text that is written at once ... */
	WRITTEN_MAX = 128 << 10, /* ... as long as there are not too many of them */
};

/* A text to be quoted, between two bytes of what is written. */
struct insertion {
	size_t offset;
	struct rlmd_text text; /* lent */
};

struct body {
	struct evbuffer *written;     /* owned: all but the insertions */
	struct insertion *insertions; /* owned */
	size_t count;

	size_t measured, size;    /* insertions that were counted, and how much they take */
	struct rlmd_text counted; /* what is left of the one that is being counted */

	size_t read;           /* of what is written */
	size_t next;           /* insertion */
	struct rlmd_text rest; /* what is left of it */
};

struct body *body_new(void)
{
	struct body *body = xcalloc(1, sizeof *body);

	body->written = buffer_new();
	return body;
}

void body_free(struct body *body)
{
	if (!body)
		return;
	evbuffer_free(body->written);
	free(body->insertions);
	free(body);
}

void body_add(struct body *body, const char *json)
{
	buffer_add(body->written, json, strlen(json));
}

void body_printf(struct body *body, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	buffer_add_vprintf(body->written, fmt, args);
	va_end(args);
}

/* The text stands at the end of what is written so far. */
static void insert(struct body *body, struct rlmd_text text)
{
	if (!text.size)
		return;
	body->insertions = xreallocarray(body->insertions, body->count + 1,
					 sizeof *body->insertions);
	body->insertions[body->count++] = (struct insertion){evbuffer_get_length(body->written),
							     text};
	body->counted = body->rest = body->insertions[0].text;
}

void body_quote(struct body *body, struct rlmd_text text)
{
	bool is_short = text.size <= SHORT && evbuffer_get_length(body->written) <= WRITTEN_MAX;

	if (is_short || !text.size) {
		json_quote(text, body->written);
		return;
	}
	body_add(body, "\"");
	insert(body, text);
	body_add(body, "\"");
}

void body_quote_both(struct body *body, struct rlmd_text first, struct rlmd_text second)
{
	body_add(body, "\"");
	insert(body, first);
	body_add(body, "\\n\\n");
	insert(body, second);
	body_add(body, "\"");
}

static struct rlmd_text text_at(const struct body *body, size_t index)
{
	return index < body->count ? body->insertions[index].text : (struct rlmd_text){0};
}

bool body_measure(struct body *body, size_t bytes)
{
	while (body->measured < body->count && bytes) {
		struct rlmd_text piece = text_clip(body->counted, bytes);

		body->size += json_quoted_size(piece);
		bytes -= piece.size;
		body->counted = text_slice(body->counted, piece.size, body->counted.size);
		if (!piece.size && body->counted.size)
			break; /* a character that `bytes` would cut: it is for the next time */
		if (!body->counted.size)
			body->counted = text_at(body, ++body->measured);
	}
	return body->measured == body->count;
}

size_t body_size(const struct body *body)
{
	return evbuffer_get_length(body->written) + body->size;
}

struct rlmd_text body_whole(struct body *body)
{
	return body->count ? (struct rlmd_text){0} : text_in(body->written);
}

static size_t read_written(struct body *body, char *out, size_t room)
{
	struct rlmd_text written = text_in(body->written);
	size_t end = body->next < body->count ? body->insertions[body->next].offset : written.size;
	size_t size = end - body->read < room ? end - body->read : room;

	memcpy(out, written.bytes + body->read, size);
	body->read += size;
	return size;
}

size_t body_read(struct body *body, char *out, size_t room)
{
	size_t used = read_written(body, out, room);

	while (body->next < body->count && room - used >= JSON_QUOTE_ROOM) {
		used += json_quote_some(&body->rest, out + used, room - used);
		if (body->rest.size)
			break;
		body->rest = text_at(body, ++body->next);
		used += read_written(body, out + used, room - used);
	}
	return used;
}

void body_rewind(struct body *body)
{
	body->read = body->next = 0;
	body->rest = text_at(body, 0);
}

/*
 * wire/frame.h - a frame being put together: JSON, and the texts too long for it.
 *
 * The caller adds the fields of one message; a text goes into the JSON as long
 * as it is short, and behind it as an attachment where not.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct evbuffer;

enum {
	FRAME_MAX = 1 << 20, /* bytes of JSON in one frame */
	FRAME_DEPTH_MAX = 8,
	ATTACHMENTS_MAX = 10000,    /* in one frame */
	TEXT_INLINE_MAX = 16 << 10, /* longer texts travel as attachments */

	/* What attachments weigh: their bytes, and so much more each, for what is kept of it. */
	ATTACHMENT_WEIGHT = 8 << 10,
	ATTACHED_MAX = 128 << 20, /* weight after one frame, and of what one worker has under way */
};

struct frame;

struct frame *frame_new(const char *type);
void frame_free(struct frame *); /* NULL is fine */

void frame_integer(struct frame *, const char *key, int64_t);
void frame_string(struct frame *, const char *key, const char *); /* NULL: null */
void frame_json(struct frame *, const char *key, json_t *stolen);
void frame_text(struct frame *, const char *key,
		struct rlmd_text);                          /* copied; invalid UTF-8 repaired */
json_t *frame_text_value(struct frame *, struct rlmd_text); /* new: for an element of an array */

/* Appends the bytes that stand for it; done once. */
void frame_encode(struct frame *, struct evbuffer *out);

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
#include "wire/bounds.h"

struct evbuffer;

enum { FRAME_DEPTH_MAX = 8 };

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

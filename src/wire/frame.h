/*
 * wire/frame.h - a frame being put together: JSON, and the texts too long for it.
 *
 * The caller adds the fields of one message; a text goes into the JSON as long
 * as it is short, and behind it as an attachment where not. The JSON is written as
 * it comes: what it was read from needs to last no longer than the call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "wire/bounds.h"

struct evbuffer;
struct frame;

struct frame *frame_new(const char *type);
void frame_free(struct frame *); /* NULL is fine */

/* A member each; between frame_array() and its end an element, whose key is NULL. */
void frame_integer(struct frame *, const char *key, int64_t);
void frame_null(struct frame *, const char *key);
void frame_string(struct frame *, const char *key, struct rlmd_text); /* invalid UTF-8 repaired */
void frame_text(struct frame *, const char *key, struct rlmd_text);   /* likewise */
/* A text that is UTF-8, by the place whose free() it is: what is too long for the JSON is taken
 * from there, so that megabytes are not copied, and NULL is left. */
void frame_text_owned(struct frame *, const char *key, char **owned, size_t size);
void frame_array(struct frame *, const char *key);
void frame_array_end(struct frame *);

/* Appends the bytes that stand for it; done once. */
void frame_encode(struct frame *, struct evbuffer *out);

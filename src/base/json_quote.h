/*
 * base/json_quote.h - texts as strings of JSON, whole or as much at a time as there is room for.
 *
 * As json_write() writes them, to the byte. Invalid UTF-8 becomes U+FFFD. Plain bytes are copied
 * eight at a time; a text takes about as long as twice its copying.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"

struct evbuffer;

enum { JSON_QUOTE_ROOM = 8 }; /* bytes without which json_quote_some() may write nothing */

/* Appends `text` to `out`, quoted. */
void json_quote(struct rlmd_text, struct evbuffer *out);

/* Writes as much of `rest` as fits into `room` bytes, without the quotes around it, and leaves in
 * `rest` what did not. Returns how many bytes it wrote; at most `room`. */
size_t json_quote_some(struct rlmd_text *rest, char *out, size_t room);

/* The size of `text` as a JSON string, without the quotes. The sizes of two halves add up if
 * text_clip() made the first. */
size_t json_quoted_size(struct rlmd_text);

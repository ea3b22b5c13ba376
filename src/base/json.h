/*
 * base/json.h - JSON from strangers, and JSON to them.
 *
 * Trees are jansson's; they are read by base/json_scan.h and written by base/json_quote.h, for
 * jansson's own reading and writing takes 10 to 15 ms for a text of a megabyte. What is read is
 * strict: RFC 8259, valid UTF-8, no duplicate keys, no trailing bytes, and a limit on depth.
 * Strings may hold NUL: use json_text().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct evbuffer;

/* Significant digits of a written number: 0.000605 stays that, and a pico-dollar is not lost. */
enum { JSON_DIGITS = 15 };

/* How deep a text nests, and how many members and elements it has, if it is JSON. */
struct json_shape {
	unsigned depth;
	size_t values;
};

/* Takes no memory, and a small part of the time that reading takes. */
struct json_shape json_look(struct rlmd_text);

/* One JSON value from `text`, new; NULL and RLMD_ERROR_BAD_REPLY otherwise. */
json_t *json_read(struct rlmd_text, unsigned max_depth, struct rlmd_error *);

/* The bytes of a JSON string, lent while it lives; empty for anything else and NULL. */
struct rlmd_text json_text(const json_t *);

/* A JSON string of any bytes, new; invalid UTF-8 becomes U+FFFD. */
json_t *json_from_text(struct rlmd_text);

/* The member as an integer; `otherwise` where it is missing or no integer. */
int64_t json_get_integer(const json_t *object, const char *key, int64_t otherwise);
bool json_get_bool(const json_t *object, const char *key, bool otherwise);
struct rlmd_text json_get_text(const json_t *object, const char *key);
const char *json_get_string(const json_t *object, const char *key); /* lent; "" where it is none */

/* Adds one to a member that counts; what it was before: 0, where there was none. */
int64_t json_count(json_t *object, const char *key);

/* Appends the compact form of `value`; with `sorted` the canonical one. */
void json_write(const json_t *value, bool sorted, struct evbuffer *out);

/* The compact form as a new string. */
char *json_to_string(const json_t *value);

/* Appends one line: compact JSON and a line feed. */
void json_write_line(const json_t *value, struct evbuffer *out);

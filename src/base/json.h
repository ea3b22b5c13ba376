/*
 * base/json.h - JSON as trees: read from strangers, made, and written.
 *
 *   base/json       trees, for all that is small or not read often
 *   base/json_scan  goes over a text once, for what is large or read often; it makes views
 *   base/json_view  a value as it stands in the text
 *   base/json_quote a text as a JSON string, for what is too long for a tree
 *
 * Trees are jansson's; they are read by base/json_scan.h and written by base/json_quote.h, for
 * jansson's own reading and writing takes 10 to 15 ms for a text of a megabyte. Reading is strict:
 * RFC 8259, valid UTF-8, no duplicate keys, no trailing bytes, and a limit on depth. Strings may
 * hold NUL: use json_text().
 *
 * Memory is there, or the program ends. jansson says by NULL or by a number that it found none, and
 * takes NULL for a value that is left out: a request or a result would lack a member without a
 * word. So json_make() and the like take the place of its functions that allocate. The program's
 * own floors may use those as they are (alloc_install()).
 */
#pragma once

#include <jansson.h>
#include <stdarg.h>
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

/* New ones; a string of any bytes: json_from_text(). */
json_t *json_make_object(void);
json_t *json_make_array(void);
json_t *json_make_integer(json_int_t);
json_t *json_make_real(double);         /* NULL where it is no number, or infinite */
json_t *json_make_string(const char *); /* invalid UTF-8 becomes U+FFFD; NULL gives NULL */
json_t *json_make_copy(const json_t *); /* whose members are shared; NULL gives NULL */

/* json_pack(); NULL where an argument is, or is invalid UTF-8, or no finite number. Without the
 * formats `s#`, `s%` and `s+`. */
json_t *json_make(const char *fmt, ...);
json_t *json_vmake(const char *fmt, va_list);

/* Each takes the value over, and leaves all as it is where the value is NULL. The key is UTF-8. */
void json_put(json_t *object, const char *key, json_t *value);
void json_put_at(json_t *object, struct rlmd_text key, json_t *value);
void json_append(json_t *array, json_t *value);
void json_insert(json_t *array, size_t index, json_t *value);

/* Adds the members of the second one, which they share then. */
void json_update(json_t *object, const json_t *more);
void json_update_missing(json_t *object, const json_t *more);
void json_extend(json_t *array, const json_t *more);

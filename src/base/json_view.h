/*
 * base/json_view.h - one value of JSON as it stands in a text.
 *
 * Views come from base/json_scan.h, which has checked what they show: no other bytes may be put
 * into one. They lend, as the text does; nothing is copied before somebody wants it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct evbuffer;

enum json_view_kind {
	JSON_VIEW_NONE, /* there is no such value */
	JSON_VIEW_OBJECT,
	JSON_VIEW_ARRAY,
	JSON_VIEW_STRING,
	JSON_VIEW_INTEGER,
	JSON_VIEW_REAL, /* and, where any number is let pass, an integer beyond 64 bits */
	JSON_VIEW_TRUE,
	JSON_VIEW_FALSE,
	JSON_VIEW_NULL,
};

/* One value as it stands in the text; zero is none. */
struct json_view {
	enum json_view_kind kind;
	bool escaped;          /* a string with escapes in it */
	struct rlmd_text text; /* a string's bytes between its quotes; else all of the value */
};

/* True and false, as struct; false for all else is how a missing one is read. */
bool json_view_is_true(const struct json_view *);

/* An integer; `otherwise` for anything else. */
int64_t json_view_integer(const struct json_view *, int64_t otherwise);

/* False for what is no number; what no double holds is infinite. */
bool json_view_number(const struct json_view *, double *ret);

/* Whether it is that string. */
bool json_view_equal(const struct json_view *, const char *string);

/* Whether it is a string with NUL in it. */
bool json_view_has_nul(const struct json_view *);

/* Whether it is a string that is not empty, which to count a long one would take too long for. */
bool json_view_has_text(const struct json_view *);

/* The bytes that a string stands for, none for anything else: written to `out`, which has room for
 * text.size, and how many they are: what is behind them is written over, too; */
size_t json_view_copy(const struct json_view *, char *out);
/* ... appended; */
void json_view_append(const struct json_view *, struct evbuffer *out);
/* ... or as whole characters, at most `size` bytes of them, which is 4 at least: lent from the text
 * or from `room`, and gone from `rest`; */
struct rlmd_text json_view_take(struct json_view *rest, char *room, size_t size);
/* ... or lent: from the text itself, or where it has escapes from `ret_owned`, which is new. */
struct rlmd_text json_view_text(const struct json_view *, char **ret_owned);

/*
 * For who checks a string: the escape at the start of `text`, which begins with its backslash, and
 * the character that it is. Its length, of both halves of a surrogate pair; 0 where it is none.
 */
size_t json_view_escape(struct rlmd_text, uint32_t *ret_point);

/*
 * base/json_scan.h - JSON from strangers, read without making a tree of it.
 *
 * A scan goes over a text once and hands out views: places in the text, lent while that lives. It
 * takes what jansson does (RFC 8259, valid UTF-8, no lone surrogate, no duplicate key, no NUL
 * in one, no integer beyond 64 bits, nothing behind the value), and no memory but for the keys of
 * an object with very many. An event of a stream takes it a sixth of the time that jansson takes,
 * a long string a fiftieth.
 *
 *	struct json_scan scan;
 *	struct json_view key, name = {0};
 *
 *	json_scan_init(&scan, text, &bounds);
 *	if (json_scan_enter(&scan, JSON_VIEW_OBJECT))
 *		while (json_scan_member(&scan, &key))
 *			if (json_view_equal(&key, "name"))
 *				json_scan_value(&scan, &name);
 *	if (!json_scan_end(&scan, err))
 *		return false;
 *
 * A value that nobody takes is checked and skipped. What is wrong ends all loops, and is told by
 * json_scan_end(): whatever was noted before counts only if that says true.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json_keys.h"
#include "base/json_view.h"

enum { JSON_SCAN_DEPTH = 64 }; /* no bound may be larger without levels of its own */

struct json_ahead;
struct json_scan_level;

struct json_scan_bounds {
	unsigned depth;                 /* of objects and arrays within each other */
	size_t values;                  /* as json_look() counts them; 0: any number */
	bool any_number;                /* one that is too large is no error */
	const struct json_ahead *ahead; /* lent, or NULL: what was checked of the text before */
	struct json_scan_level *levels; /* lent, or NULL: room for `depth` of them */
};

/* An object or array that is open; private. */
struct json_scan_level {
	size_t keys; /* of the levels around it */
	bool is_object;
	bool begun;   /* it has a member or an element */
	bool escaped; /* one of its keys is */
};

/* On the stack of who scans. After json_scan_init() json_scan_end() has to come. */
struct json_scan {
	/* private */
	const char *start, *at, *end; /* lent */
	const struct json_ahead *ahead;
	const char *error; /* what is wrong at `at`, or NULL */
	size_t values, max_values;
	unsigned depth, max_depth;
	bool any_number;
	bool due; /* a value comes next */
	struct json_scan_level few[JSON_SCAN_DEPTH];
	struct json_scan_level *levels; /* `few`, or lent */
	struct json_keys keys;
};

void json_scan_init(struct json_scan *, struct rlmd_text, const struct json_scan_bounds *);

/* What the value that comes next is: REAL for any number, NONE where there is none, or no JSON. */
enum json_view_kind json_scan_kind(struct json_scan *);

/* Takes the value that comes next, all of it. False where there is none. */
bool json_scan_value(struct json_scan *, struct json_view *ret);

/* Goes into the value that comes next, if it is an OBJECT or ARRAY as asked for: that is read with
 * json_scan_member() or json_scan_element(), to its end or as far as it is wanted. */
bool json_scan_enter(struct json_scan *, enum json_view_kind);

/* The next member, whose value comes next; false at the object's end, which leaves it. */
bool json_scan_member(struct json_scan *, struct json_view *ret_key);
bool json_scan_element(struct json_scan *);

/* Checks what is left, also of levels that were not read to their end. False and
 * RLMD_ERROR_BAD_REPLY where the text is not JSON within its bounds. */
bool json_scan_end(struct json_scan *, struct rlmd_error *);

/* The string that `text` begins with, whatever stands behind it; false where it begins with none.
 */
bool json_scan_string(struct rlmd_text text, struct json_view *ret);

/* Goes over the inside of a string: to the quote that ends it, the end, or what no string has
 * there. Sets `ret_escaped` at an escape. */
const char *json_scan_inside(const char *at, const char *end, bool *ret_escaped);

/* A member that is wanted. A table of them ends with a row without a name. */
struct json_scan_field {
	const char *name;
	unsigned view; /* of `views`: where its value is noted */
	const struct json_scan_field
		*inside;                     /* or NULL: what is wanted of it, if it is an object */
	const struct json_scan_field *first; /* or NULL: of its first element, if it is an array */
};

/* One whole text that is an object, by a table; what is not in it stays NONE in `views`. False and
 * RLMD_ERROR_BAD_REPLY where the text is not JSON; of a value that is no object nothing is noted.
 */
bool json_scan_fields(struct rlmd_text, const struct json_scan_bounds *,
		      const struct json_scan_field *, struct json_view *views, size_t view_count,
		      struct rlmd_error *);

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
 * A value that nobody takes is checked and skipped. An error ends all loops, and json_scan_end()
 * tells it: values that were read before count only if that says true.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
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

enum { JSON_KEYS_FEW = 32 };

/* The keys of the objects that are open, as they stand in the text, so that none is there twice;
 * private. Takes memory only where there are very many at once. */
struct json_keys {
	size_t count, room;
	struct rlmd_text few[JSON_KEYS_FEW];
	struct rlmd_text *all; /* `few`, or owned */
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

/* The kind of the next value: REAL for any number, NONE if there is none, or no JSON. */
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

/*
 * Long strings, checked while their bytes come. A reader of an answer of megabytes has to wait for
 * its end, and then goes over all of it at once. Nearly all of such a text are the insides of a few
 * strings, which can be gone over before: a scan that is told of this goes on where that has ended.
 * It reads what it would have read, and finds the same errors at the same places. It holds row 17
 * of docs/performance.md: a run that gets an answer of 7 MB holds the loop for 1.9 ms in the place
 * of 5.1.
 */

/* Embed it; zero knows of nothing. */
struct json_ahead {
	/* private */
	const char *start; /* lent: of the text, as it stands now */
	size_t at;         /* bytes that were gone over */
	bool inside;       /* the last string has not ended yet */
	size_t count, room;
	struct json_ahead_string {
		size_t start, checked; /* of its inside: where it begins, and is not checked yet */
		bool escaped;
	} * strings; /* owned: in their order; no short ones but the last */
};

void json_ahead_done(struct json_ahead *); /* which then knows of nothing */

/* All that has come of the text: what it was before, and more. Wherever it stands now it is lent
 * until the next time, or until nobody scans it any more. */
void json_ahead_feed(struct json_ahead *, struct rlmd_text so_far);

/*
 * A scan is where it stands in the text, and the levels that are open around that. Strings are gone
 * through eight bytes at a time, because they are nearly all of any text that is long.
 */
#include "base/json_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/block.h"

enum {
	INTEGER_DIGITS = 18, /* of any 64-bit integer; one more may be one, too */
	REAL_BYTES = 300,    /* no real number of so many without an exponent is too large */
	PAIRS_MAX = 16,      /* so many keys are compared each with each, more are sorted */
	SHORT = 256,         /* bytes of a string that is not worth a note */
};

static void keys_init(struct json_keys *keys)
{
	keys->count = 0;
	keys->room = JSON_KEYS_FEW;
	keys->all = keys->few;
}

static void keys_done(struct json_keys *keys)
{
	if (keys->all != keys->few)
		free(keys->all);
}

static void keys_add(struct json_keys *keys, struct rlmd_text key)
{
	if (keys->count == keys->room) {
		struct rlmd_text *owned = keys->all == keys->few ? NULL : keys->all;

		keys->room *= 2;
		keys->all = xreallocarray(owned, keys->room, sizeof *keys->all);
		if (!owned)
			memcpy(keys->all, keys->few, sizeof keys->few);
	}
	keys->all[keys->count++] = key;
}

static int compare_bytes(struct rlmd_text a, struct rlmd_text b)
{
	size_t shorter = a.size < b.size ? a.size : b.size;
	int order = shorter ? memcmp(a.bytes, b.bytes, shorter) : 0;

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_bytes(const void *a, const void *b)
{
	return compare_bytes(*(const struct rlmd_text *)a, *(const struct rlmd_text *)b);
}

static bool sort_and_compare_bytes(struct rlmd_text *keys, size_t count)
{
	bool twice = false;

	qsort(keys, count, sizeof *keys, by_bytes);
	for (size_t i = 1; i < count && !twice; i++)
		twice = !compare_bytes(keys[i - 1], keys[i]);
	return twice;
}

static bool compare_all(const struct rlmd_text *keys, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (keys[i].size == keys[j].size &&
			    !memcmp(keys[i].bytes, keys[j].bytes, keys[i].size))
				return true;
	return false;
}

static struct json_view view_of_key(struct rlmd_text key)
{
	bool escaped = key.size && memchr(key.bytes, '\\', key.size);

	return (struct json_view){JSON_VIEW_STRING, escaped, key};
}

/* Two ways to write one key make it twice, too: so those with escapes are compared without them. */
static bool compare_unescaped(struct rlmd_text *keys, size_t count)
{
	size_t room = 1, used = 0;
	bool twice;
	char *bytes;

	for (size_t i = 0; i < count; i++)
		room += keys[i].size;
	bytes = xcalloc(room, 1);
	for (size_t i = 0; i < count; i++) {
		struct json_view view = view_of_key(keys[i]);

		keys[i] = text_from(bytes + used, json_view_copy(&view, bytes + used));
		used += keys[i].size;
	}
	twice = sort_and_compare_bytes(keys, count);
	free(bytes);
	return twice;
}

/* Takes away those of one object, which came after `count`; `escaped` says that one has an escape.
 * True where one of them is there twice, however it is written. */
static bool keys_close(struct json_keys *keys, size_t count, bool escaped)
{
	struct rlmd_text *own = keys->all + count;
	size_t own_count = keys->count - count;

	keys->count = count;
	if (escaped)
		return compare_unescaped(own, own_count);
	if (own_count > PAIRS_MAX)
		return sort_and_compare_bytes(own, own_count);
	return compare_all(own, own_count);
}

void json_scan_init(struct json_scan *scan, struct rlmd_text text,
		    const struct json_scan_bounds *bounds)
{
	assert(bounds->levels || bounds->depth <= JSON_SCAN_DEPTH);
	scan->start = scan->at = text.bytes ? text.bytes : "";
	scan->end = scan->start + text.size;
	scan->error = NULL;
	scan->values = 0;
	scan->max_values = bounds->values ? bounds->values : SIZE_MAX;
	scan->depth = 0;
	scan->max_depth = bounds->depth;
	scan->any_number = bounds->any_number;
	scan->ahead = bounds->ahead;
	scan->levels = bounds->levels ? bounds->levels : scan->few;
	scan->due = true;
	keys_init(&scan->keys);
}

/* The first error is the one that is told; nothing is read behind it. */
static bool fail(struct json_scan *scan, const char *error)
{
	if (!scan->error)
		scan->error = error;
	scan->due = false;
	return false;
}

/* The next byte that is no space, or NUL at the end, which no text may have there either. */
static char peek(struct json_scan *scan)
{
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
		scan->at++;
	return scan->at < scan->end ? *scan->at : '\0';
}

static const char too_many[] = "too many values", too_deep[] = "nested too deep";

static bool count_value(struct json_scan *scan)
{
	return ++scan->values <= scan->max_values || fail(scan, too_many);
}

static struct rlmd_text rest_of(const struct json_scan *scan)
{
	return text_from(scan->at, (size_t)(scan->end - scan->at));
}

/* Reads the next character, which needs an escape. False also at the end of the string. */
static bool take_special(struct json_scan *scan, bool *ret_escaped)
{
	uint32_t point;
	size_t size;

	if ((unsigned char)*scan->at >= 0x80) {
		size = utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
		if (!size)
			return fail(scan, "invalid UTF-8");
	} else if (*scan->at == '\\') {
		size = json_view_escape(rest_of(scan), &point);
		*ret_escaped = true;
		if (!size)
			return fail(scan, "invalid escape");
	} else {
		return *scan->at != '"' && fail(scan, "control character in a string");
	}
	scan->at += size;
	return true;
}

static const char *skip_plain(const char *at, const char *end)
{
	for (; end - at >= BLOCK; at += BLOCK) {
		uint64_t mask = block_not_plain(block_load(at));

		if (mask)
			return at + block_first(mask);
	}
	while (at < end && block_is_plain(*at))
		at++;
	return at;
}

static inline void take_inside(struct json_scan *scan, bool *ret_escaped)
{
	do
		scan->at = skip_plain(scan->at, scan->end);
	while (scan->at < scan->end && *scan->at != '"' && take_special(scan, ret_escaped));
}

static int compare_offsets(const void *offset, const void *string)
{
	size_t wanted = *(const size_t *)offset;
	size_t start = ((const struct json_ahead_string *)string)->start;

	return (wanted > start) - (wanted < start);
}

/* Of a string whose inside begins at `inside`: up to where it is checked; sets `ret_escaped` if
 * there is an escape in that. */
static const char *skip_checked(const struct json_ahead *ahead, const char *inside,
				bool *ret_escaped)
{
	size_t start = (size_t)(inside - ahead->start);
	const struct json_ahead_string *string = NULL;

	if (ahead->count)
		string = bsearch(&start, ahead->strings, ahead->count, sizeof *string,
				 compare_offsets);
	if (!string)
		return inside;
	*ret_escaped |= string->escaped;
	return ahead->start + string->checked;
}

static bool take_string(struct json_scan *scan, struct json_view *ret)
{
	const char *start = ++scan->at;
	bool escaped = false;

	if (scan->ahead)
		scan->at = skip_checked(scan->ahead, start, &escaped);
	take_inside(scan, &escaped);
	if (scan->error)
		return false;
	if (scan->at == scan->end)
		return fail(scan, "a string without an end");
	*ret = (struct json_view){JSON_VIEW_STRING, escaped,
				  text_from(start, (size_t)(scan->at - start))};
	scan->at++;
	return true;
}

bool json_scan_string(struct rlmd_text text, struct json_view *ret)
{
	struct json_scan scan;

	if (!text.size || *text.bytes != '"')
		return false;
	scan.at = text.bytes;
	scan.end = text.bytes + text.size;
	scan.error = NULL;
	scan.ahead = NULL;
	return take_string(&scan, ret);
}

/* Goes over the inside of a string: to the quote that ends it, the end, or what no string has
 * there. Sets `ret_escaped` at an escape. */
static const char *skip_inside(const char *at, const char *end, bool *ret_escaped)
{
	struct json_scan scan;

	scan.at = at;
	scan.end = end;
	scan.error = NULL;
	take_inside(&scan, ret_escaped);
	return scan.at;
}

void json_ahead_done(struct json_ahead *ahead)
{
	free(ahead->strings);
	*ahead = (struct json_ahead){0};
}

/* In the place of the last one, if that was short. */
static struct json_ahead_string *add_string(struct json_ahead *ahead, size_t start)
{
	struct json_ahead_string *last = ahead->count ? &ahead->strings[ahead->count - 1] : NULL;

	if (!last || last->checked - last->start >= SHORT) {
		if (ahead->count == ahead->room) {
			ahead->room = ahead->room ? 2 * ahead->room : 4;
			ahead->strings = xreallocarray(ahead->strings, ahead->room,
						       sizeof *ahead->strings);
		}
		last = &ahead->strings[ahead->count++];
	}
	*last = (struct json_ahead_string){.start = start, .checked = start};
	return last;
}

/* Between strings nothing is of interest but where the next one begins. */
static bool enter_string(struct json_ahead *ahead, struct rlmd_text text)
{
	const char *quote = memchr(text.bytes + ahead->at, '"', text.size - ahead->at);

	ahead->inside = quote;
	ahead->at = quote ? (size_t)(quote - text.bytes) + 1 : text.size;
	if (quote)
		add_string(ahead, ahead->at);
	return quote;
}

/* Goes on in a string; true at its end. Before that it stops at a character of which half has come,
 * or at an error, which the scan will find there. */
static bool finish_string(struct json_ahead *ahead, struct rlmd_text text)
{
	struct json_ahead_string *string = &ahead->strings[ahead->count - 1];
	const char *end = text.bytes + text.size;
	const char *at = skip_inside(text.bytes + string->checked, end, &string->escaped);

	ahead->at = string->checked = (size_t)(at - text.bytes);
	if (at == end || *at != '"')
		return false;
	ahead->inside = false;
	ahead->at++;
	return true;
}

void json_ahead_feed(struct json_ahead *ahead, struct rlmd_text so_far)
{
	assert(so_far.size >= ahead->at);
	ahead->start = so_far.bytes;
	while (ahead->at < so_far.size &&
	       (ahead->inside ? finish_string(ahead, so_far) : enter_string(ahead, so_far)))
		;
}

static size_t take_digits(struct json_scan *scan)
{
	const char *start = scan->at;

	while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
		scan->at++;
	return (size_t)(scan->at - start);
}

static bool is_next(const struct json_scan *scan, char c)
{
	return scan->at < scan->end && *scan->at == c;
}

static bool take_exponent(struct json_scan *scan)
{
	scan->at++;
	if (is_next(scan, '+') || is_next(scan, '-'))
		scan->at++;
	return take_digits(scan) > 0;
}

/* 19 digits may be too many. */
static bool fits(const struct json_view *number, size_t digits)
{
	const char *most = *number->text.bytes == '-' ? "9223372036854775808"
						      : "9223372036854775807";
	const char *first = number->text.bytes + number->text.size - digits;

	return digits <= INTEGER_DIGITS ||
	       (digits == strlen(most) && memcmp(first, most, digits) <= 0);
}

static bool is_finite(const struct json_view *number, bool exponent)
{
	double value;

	if (!exponent && number->text.size <= REAL_BYTES)
		return true;
	return json_view_number(number, &value) && value - value == 0;
}

/* The syntax of a number; `ret_digits` are those before its point. */
static bool take_number_text(struct json_scan *scan, size_t *ret_digits, bool *ret_real,
			     bool *ret_exponent)
{
	bool zero;

	if (is_next(scan, '-'))
		scan->at++;
	zero = is_next(scan, '0');
	*ret_digits = take_digits(scan);
	if (!*ret_digits || (zero && *ret_digits > 1))
		return false;
	*ret_real = is_next(scan, '.');
	if (*ret_real) {
		scan->at++;
		if (!take_digits(scan))
			return false;
	}
	*ret_exponent = is_next(scan, 'e') || is_next(scan, 'E');
	return !*ret_exponent || take_exponent(scan);
}

static bool take_number(struct json_scan *scan, struct json_view *ret)
{
	struct json_view number = {.text.bytes = scan->at};
	bool real, exponent, fine;
	size_t digits;

	if (!take_number_text(scan, &digits, &real, &exponent))
		return fail(scan, "invalid number");
	number.text.size = (size_t)(scan->at - number.text.bytes);
	number.kind = real || exponent ? JSON_VIEW_REAL : JSON_VIEW_INTEGER;
	if (number.kind == JSON_VIEW_REAL)
		fine = is_finite(&number, exponent);
	else
		fine = fits(&number, digits);
	if (!fine && !scan->any_number)
		return fail(scan, "a number that is too large");
	*ret = number;
	ret->kind = fine ? number.kind : JSON_VIEW_REAL;
	return true;
}

static bool take_word(struct json_scan *scan, const char *word, enum json_view_kind kind,
		      struct json_view *ret)
{
	if (!text_starts(rest_of(scan), word))
		return fail(scan, "invalid token");
	*ret = (struct json_view){.kind = kind, .text = text_from(scan->at, strlen(word))};
	scan->at += ret->text.size;
	return true;
}

enum json_view_kind json_scan_kind(struct json_scan *scan)
{
	char c = scan->due ? peek(scan) : '\0';

	switch (c) {
	case '{':
		return JSON_VIEW_OBJECT;
	case '[':
		return JSON_VIEW_ARRAY;
	case '"':
		return JSON_VIEW_STRING;
	case 't':
		return JSON_VIEW_TRUE;
	case 'f':
		return JSON_VIEW_FALSE;
	case 'n':
		return JSON_VIEW_NULL;
	default:
		return c == '-' || (c >= '0' && c <= '9') ? JSON_VIEW_REAL : JSON_VIEW_NONE;
	}
}

static bool enter(struct json_scan *scan, enum json_view_kind kind)
{
	if (scan->depth == scan->max_depth)
		return fail(scan, too_deep);
	if (!count_value(scan))
		return false;
	scan->levels[scan->depth++] = (struct json_scan_level){
		.keys = scan->keys.count,
		.is_object = kind == JSON_VIEW_OBJECT,
	};
	scan->at++;
	scan->due = false;
	return true;
}

bool json_scan_enter(struct json_scan *scan, enum json_view_kind kind)
{
	return json_scan_kind(scan) == kind && enter(scan, kind);
}

static bool leave(struct json_scan *scan)
{
	const struct json_scan_level *level = &scan->levels[--scan->depth];

	scan->at++;
	if (level->is_object && keys_close(&scan->keys, level->keys, level->escaped))
		fail(scan, "duplicate object key");
	return false;
}

static bool take_key(struct json_scan *scan, struct json_view *ret)
{
	if (peek(scan) != '"')
		return fail(scan, "no key");
	if (!take_string(scan, ret))
		return false;
	/* As jansson, whose keys are C strings. */
	if (ret->escaped && json_view_has_nul(ret))
		return fail(scan, "NUL byte in object key");
	scan->levels[scan->depth - 1].escaped |= ret->escaped;
	keys_add(&scan->keys, ret->text);
	if (peek(scan) != ':')
		return fail(scan, "no colon behind a key");
	scan->at++;
	return count_value(scan);
}

/* Goes to the next value of the level that is open; false at its end. */
static bool next(struct json_scan *scan, struct json_view *ret_key)
{
	struct json_scan_level *level = &scan->levels[scan->depth - 1];
	char c = peek(scan);

	if (scan->error)
		return false;
	if (c == (level->is_object ? '}' : ']'))
		return leave(scan);
	if (level->begun) {
		if (c != ',')
			return fail(scan, "no comma and no end");
		scan->at++;
		if (!count_value(scan))
			return false;
	}
	level->begun = true;
	if (level->is_object && !take_key(scan, ret_key))
		return false;
	scan->due = true;
	return true;
}

/* Skips the array or object that was entered, with all in it. */
static void skip_level(struct json_scan *scan)
{
	unsigned around = scan->depth - 1;
	struct json_view ignored;

	while (!scan->error && scan->depth > around) {
		enum json_view_kind kind;

		if (!next(scan, &ignored))
			continue;
		kind = json_scan_kind(scan);
		if (kind == JSON_VIEW_OBJECT || kind == JSON_VIEW_ARRAY)
			enter(scan, kind);
		else
			json_scan_value(scan, &ignored);
	}
}

static bool take_level(struct json_scan *scan, enum json_view_kind kind, struct json_view *ret)
{
	const char *start = scan->at;

	if (!enter(scan, kind))
		return false;
	skip_level(scan);
	*ret = (struct json_view){.kind = kind,
				  .text = text_from(start, (size_t)(scan->at - start))};
	return !scan->error;
}

static bool take_value(struct json_scan *scan, struct json_view *ret)
{
	enum json_view_kind kind = json_scan_kind(scan);

	scan->due = false;
	switch (kind) {
	case JSON_VIEW_NONE:
		break;
	case JSON_VIEW_OBJECT:
	case JSON_VIEW_ARRAY:
		return take_level(scan, kind, ret);
	case JSON_VIEW_STRING:
		return take_string(scan, ret);
	case JSON_VIEW_INTEGER:
	case JSON_VIEW_REAL:
		return take_number(scan, ret);
	case JSON_VIEW_TRUE:
		return take_word(scan, "true", kind, ret);
	case JSON_VIEW_FALSE:
		return take_word(scan, "false", kind, ret);
	case JSON_VIEW_NULL:
		return take_word(scan, "null", kind, ret);
	}
	return fail(scan, "invalid token");
}

bool json_scan_value(struct json_scan *scan, struct json_view *ret)
{
	return scan->due && take_value(scan, ret);
}

static bool next_in(struct json_scan *scan, struct json_view *ret_key)
{
	struct json_view ignored;

	if (scan->due)
		take_value(scan, &ignored);
	return !scan->error && next(scan, ret_key);
}

bool json_scan_member(struct json_scan *scan, struct json_view *ret_key)
{
	assert(scan->error || scan->levels[scan->depth - 1].is_object);
	return next_in(scan, ret_key);
}

bool json_scan_element(struct json_scan *scan)
{
	struct json_view none;

	assert(scan->error || !scan->levels[scan->depth - 1].is_object);
	return next_in(scan, &none);
}

bool json_scan_end(struct json_scan *scan, struct rlmd_error *err)
{
	struct json_view ignored;

	if (scan->due)
		take_value(scan, &ignored);
	while (!scan->error && scan->depth)
		skip_level(scan);
	if (!scan->error && (peek(scan) || scan->at < scan->end))
		fail(scan, "end of file expected");
	keys_done(&scan->keys);
	if (scan->error == too_deep) /* a bound of ours, as the next: it may be JSON */
		return error_set(err, RLMD_ERROR_BAD_REPLY, "JSON nested more than %u deep",
				 scan->max_depth);
	if (scan->error == too_many)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "JSON of more than %zu values",
				 scan->max_values);
	return !scan->error || error_set(err, RLMD_ERROR_BAD_REPLY, "not JSON: %s (byte %zu)",
					 scan->error, (size_t)(scan->at - scan->start));
}

static void scan_fields(struct json_scan *, const struct json_scan_field *, struct json_view *);

/* Nothing, where the value is of another kind than the table has something for. */
static bool scan_inside(struct json_scan *scan, const struct json_scan_field *field,
			struct json_view *views)
{
	if (field->inside && json_scan_enter(scan, JSON_VIEW_OBJECT)) {
		scan_fields(scan, field->inside, views);
		return true;
	}
	if (!field->first || !json_scan_enter(scan, JSON_VIEW_ARRAY))
		return false;
	for (bool first = true; json_scan_element(scan); first = false)
		if (first && json_scan_enter(scan, JSON_VIEW_OBJECT))
			scan_fields(scan, field->first, views);
	return true;
}

static void scan_field(struct json_scan *scan, const struct json_scan_field *field,
		       struct json_view *views)
{
	enum json_view_kind kind = json_scan_kind(scan);
	const char *start = scan->at;

	if (scan_inside(scan, field, views))
		views[field->view] = (struct json_view){
			.kind = kind, .text = text_from(start, (size_t)(scan->at - start))};
	else
		json_scan_value(scan, &views[field->view]);
}

static void scan_fields(struct json_scan *scan, const struct json_scan_field *fields,
			struct json_view *views)
{
	struct json_view key;

	while (json_scan_member(scan, &key))
		for (const struct json_scan_field *field = fields; field->name; field++)
			if (json_view_equal(&key, field->name)) {
				scan_field(scan, field, views);
				break;
			}
}

bool json_scan_fields(struct rlmd_text text, const struct json_scan_bounds *bounds,
		      const struct json_scan_field *fields, struct json_view *views,
		      size_t view_count, struct rlmd_error *err)
{
	struct json_scan scan;

	memset(views, 0, view_count * sizeof *views);
	json_scan_init(&scan, text, bounds);
	if (json_scan_enter(&scan, JSON_VIEW_OBJECT))
		scan_fields(&scan, fields, views);
	return json_scan_end(&scan, err);
}

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_quote.h"
#include "base/json_scan.h"

enum {
	GATHERED = 1024,            /* bytes */
	ESCAPED = 6,                /* of one byte of a text, at most */
	ROOM = 2 + JSON_QUOTE_ROOM, /* beside them: the quotes, and what quoting wants to have */
	SHORT = (GATHERED - ROOM) / ESCAPED,
};

struct json_shape json_look(struct rlmd_text text)
{
	struct json_shape shape = {0};
	bool in_string = false;
	unsigned depth = 0;

	for (size_t i = 0; i < text.size; i++) {
		char c = text.bytes[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			shape.values++;
			if (++depth > shape.depth)
				shape.depth = depth;
		} else if (c == ',' || c == ':') {
			shape.values++;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
	}
	return shape;
}

static json_t *read_value(struct json_scan *);

static json_t *read_string(const struct json_view *view)
{
	auto_free char *owned = NULL;
	struct rlmd_text text = json_view_text(view, &owned);

	return xpresent(json_stringn_nocheck(text.bytes ? text.bytes : "", text.size));
}

static json_t *read_number(const struct json_view *view)
{
	double number = 0;

	if (view->kind == JSON_VIEW_INTEGER)
		return json_make_integer(json_view_integer(view, 0));
	json_view_number(view, &number);
	return json_make_real(number);
}

/* A key that is there twice is found by the scan, at the object's end. */
static json_t *read_object(struct json_scan *scan)
{
	json_t *object = json_make_object();
	struct json_view key;

	while (json_scan_member(scan, &key)) {
		auto_free char *name = xreallocarray(NULL, key.text.size + 1, 1);

		name[json_view_copy(&key, name)] = '\0';
		json_put(object, name, read_value(scan));
	}
	return object;
}

static json_t *read_array(struct json_scan *scan)
{
	json_t *array = json_make_array();

	while (json_scan_element(scan))
		json_append(array, read_value(scan));
	return array;
}

/* NULL where the scan has failed; what was read around it then is dropped. */
static json_t *read_value(struct json_scan *scan)
{
	struct json_view view = {0};

	if (json_scan_enter(scan, JSON_VIEW_OBJECT))
		return read_object(scan);
	if (json_scan_enter(scan, JSON_VIEW_ARRAY))
		return read_array(scan);
	json_scan_value(scan, &view);
	switch (view.kind) {
	case JSON_VIEW_STRING:
		return read_string(&view);
	case JSON_VIEW_INTEGER:
	case JSON_VIEW_REAL:
		return read_number(&view);
	case JSON_VIEW_TRUE:
	case JSON_VIEW_FALSE:
		return json_boolean(json_view_is_true(&view));
	case JSON_VIEW_NULL:
		return json_null();
	case JSON_VIEW_NONE:
	case JSON_VIEW_OBJECT:
	case JSON_VIEW_ARRAY:
		break;
	}
	return NULL;
}

json_t *json_read(struct rlmd_text text, unsigned max_depth, struct rlmd_error *err)
{
	auto_free struct json_scan_level *levels = NULL;
	struct json_scan_bounds bounds = {.depth = max_depth};
	json_auto_t *value = NULL;
	struct json_scan scan;

	if (max_depth > JSON_SCAN_DEPTH)
		bounds.levels = levels = xcalloc(max_depth, sizeof *levels);
	json_scan_init(&scan, text, &bounds);
	value = read_value(&scan);
	return json_scan_end(&scan, err) ? take_pointer(&value) : NULL;
}

struct rlmd_text json_text(const json_t *value)
{
	if (!json_is_string(value))
		return (struct rlmd_text){0};
	return text_from(json_string_value(value), json_string_length(value));
}

json_t *json_from_text(struct rlmd_text text)
{
	auto_evbuffer struct evbuffer *repaired = NULL;

	if (!text_is_utf8(text)) { /* jansson's own check takes ten times as long */
		repaired = buffer_new();
		text_repair(text, repaired);
		text = text_in(repaired);
	}
	return xpresent(json_stringn_nocheck(text.bytes ? text.bytes : "", text.size));
}

int64_t json_get_integer(const json_t *object, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

int64_t json_count(json_t *object, const char *key)
{
	int64_t before = json_get_integer(object, key, 0);

	json_put(object, key, json_make_integer(before + 1));
	return before;
}

bool json_get_bool(const json_t *object, const char *key, bool otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

struct rlmd_text json_get_text(const json_t *object, const char *key)
{
	return json_text(json_object_get(object, key));
}

const char *json_get_string(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "";
}

/* A document that is being written. Short pieces are gathered before they go into the buffer. */
struct writing {
	struct evbuffer *out; /* lent */
	bool sorted;
	size_t used;
	char gathered[GATHERED];
};

static void flush(struct writing *writing)
{
	buffer_add(writing->out, writing->gathered, writing->used);
	writing->used = 0;
}

static void put(struct writing *writing, const char *bytes, size_t size)
{
	if (sizeof writing->gathered - writing->used < size)
		flush(writing);
	memcpy(writing->gathered + writing->used, bytes, size);
	writing->used += size;
}

static void put_word(struct writing *writing, const char *word)
{
	put(writing, word, strlen(word));
}

static void put_text(struct writing *writing, struct rlmd_text text)
{
	size_t size;

	if (text.size > SHORT) {
		flush(writing);
		json_quote(text, writing->out);
		return;
	}
	if (ESCAPED * text.size + ROOM > sizeof writing->gathered - writing->used)
		flush(writing);
	put(writing, "\"", 1);
	size = json_quote_some(&text, writing->gathered + writing->used,
			       sizeof writing->gathered - writing->used);
	writing->used += size;
	put(writing, "\"", 1);
}

static int put_dumped(const char *bytes, size_t size, void *writing)
{
	put(writing, bytes, size);
	return 0;
}

static void put_value(struct writing *, const json_t *);

static void put_array(struct writing *writing, const json_t *array)
{
	const json_t *element;
	size_t i;

	put(writing, "[", 1);
	json_array_foreach (array, i, element) {
		if (i)
			put(writing, ",", 1);
		put_value(writing, element);
	}
	put(writing, "]", 1);
}

static void put_member(struct writing *writing, bool first, const char *key, const json_t *value)
{
	if (!first)
		put(writing, ",", 1);
	put_text(writing, text_of(key));
	put(writing, ":", 1);
	put_value(writing, value);
}

static int compare_keys(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void put_sorted(struct writing *writing, json_t *object)
{
	auto_free const char **keys = xcalloc(json_object_size(object) + 1, sizeof *keys);
	const char *key;
	json_t *value;
	size_t count = 0;

	json_object_foreach (object, key, value)
		keys[count++] = key;
	qsort(keys, count, sizeof *keys, compare_keys);
	for (size_t i = 0; i < count; i++)
		put_member(writing, !i, keys[i], json_object_get(object, keys[i]));
}

static void put_object(struct writing *writing, json_t *object)
{
	bool first = true;
	const char *key;
	json_t *value;

	put(writing, "{", 1);
	if (writing->sorted)
		put_sorted(writing, object);
	else
		json_object_foreach (object, key, value) {
			put_member(writing, first, key, value);
			first = false;
		}
	put(writing, "}", 1);
}

static void put_value(struct writing *writing, const json_t *value)
{
	char digits[24];

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_object(writing, (json_t *)value);
		return;
	case JSON_ARRAY:
		put_array(writing, value);
		return;
	case JSON_STRING:
		put_text(writing, json_text(value));
		return;
	case JSON_INTEGER:
		snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		put_word(writing, digits);
		return;
	case JSON_REAL:
		if (json_dump_callback(value, put_dumped, writing,
				       JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_DIGITS)))
			alloc_failed();
		return;
	case JSON_TRUE:
	case JSON_FALSE:
		put_word(writing, json_is_true(value) ? "true" : "false");
		return;
	case JSON_NULL:
		put_word(writing, "null");
		return;
	}
}

void json_write(const json_t *value, bool sorted, struct evbuffer *out)
{
	struct writing writing = {.out = out, .sorted = sorted};

	if (!value)
		return;
	put_value(&writing, value);
	flush(&writing);
}

void json_write_line(const json_t *value, struct evbuffer *out)
{
	json_write(value, false, out);
	buffer_add(out, "\n", 1);
}

char *json_to_string(const json_t *value)
{
	auto_evbuffer struct evbuffer *out = buffer_new();

	json_write(value, false, out);
	return text_drain(out, NULL);
}

json_t *json_make_object(void)
{
	return xpresent(json_object());
}

json_t *json_make_array(void)
{
	return xpresent(json_array());
}

json_t *json_make_integer(json_int_t number)
{
	return xpresent(json_integer(number));
}

json_t *json_make_real(double number)
{
	return isfinite(number) ? xpresent(json_real(number)) : NULL;
}

json_t *json_make_string(const char *string)
{
	return string ? json_from_text(rlmd_text_of(string)) : NULL;
}

json_t *json_make_copy(const json_t *value)
{
	return value ? xpresent(json_copy((json_t *)value)) : NULL;
}

/* An argument is NULL that must not be, or no finite number. */
static bool lacks_argument(const char *fmt, va_list args)
{
	bool lacks = false;

	for (; *fmt && !lacks; fmt++)
		switch (*fmt) {
		case 's':
		case 'o':
		case 'O':
			assert(!fmt[1] || !strchr("#%+", fmt[1]));
			lacks = !va_arg(args, void *) && fmt[1] != '?' && fmt[1] != '*';
			break;
		case 'f':
			lacks = !isfinite(va_arg(args, double));
			break;
		case 'I':
			(void)va_arg(args, json_int_t);
			break;
		case 'i':
		case 'b':
			(void)va_arg(args, int);
			break;
		default: /* an `n`, a bracket or what stands between */
			break;
		}
	return lacks;
}

json_t *json_vmake(const char *fmt, va_list args)
{
	json_error_t error = {0};
	va_list again;
	json_t *value;

	va_copy(again, args);
	value = json_vpack_ex(&error, 0, fmt, args);
	/* Of a value within, jansson does not say why it is not there. */
	if (!value && json_error_code(&error) != json_error_invalid_utf8 &&
	    !lacks_argument(fmt, again))
		alloc_failed();
	va_end(again);
	return value;
}

json_t *json_make(const char *fmt, ...)
{
	json_t *value;
	va_list args;

	va_start(args, fmt);
	value = json_vmake(fmt, args);
	va_end(args);
	return value;
}

/* Of a function of jansson's that gives a number below zero where it failed. */
static void done(int result)
{
	if (result < 0)
		alloc_failed();
}

void json_put(json_t *object, const char *key, json_t *value)
{
	if (json_is_object(object) && key && value)
		done(json_object_set_new_nocheck(object, key, value));
	else
		json_decref(value);
}

void json_put_at(json_t *object, struct rlmd_text key, json_t *value)
{
	done(json_object_setn_new_nocheck(object, key.bytes, key.size, value));
}

void json_append(json_t *array, json_t *value)
{
	if (json_is_array(array) && value)
		done(json_array_append_new(array, value));
	else
		json_decref(value);
}

void json_insert(json_t *array, size_t index, json_t *value)
{
	if (json_is_array(array) && value && index <= json_array_size(array))
		done(json_array_insert_new(array, index, value));
	else
		json_decref(value);
}

void json_update(json_t *object, const json_t *more)
{
	if (json_is_object(object) && json_is_object(more))
		done(json_object_update(object, (json_t *)more));
}

void json_update_missing(json_t *object, const json_t *more)
{
	const char *key;
	json_t *value;

	/* json_object_update_missing() itself passes over results. */
	json_object_foreach ((json_t *)more, key, value)
		if (!json_object_get(object, key))
			json_put(object, key, json_incref(value));
}

void json_extend(json_t *array, const json_t *more)
{
	if (json_is_array(array) && json_is_array(more))
		done(json_array_extend(array, (json_t *)more));
}

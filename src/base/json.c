#include "base/json.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

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

json_t *json_read(struct rlmd_text text, unsigned max_depth, struct rlmd_error *err)
{
	json_error_t error;
	json_t *value;

	/* jansson recurses, so the depth is counted before it may. */
	if (json_look(text).depth > max_depth) {
		error_set(err, RLMD_ERROR_BAD_REPLY, "JSON nested more than %u deep", max_depth);
		return NULL;
	}
	value = json_loadb(text.bytes ? text.bytes : "", text.size,
			   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
	if (!value)
		error_set(err, RLMD_ERROR_BAD_REPLY, "not JSON: %s (byte %d)", error.text,
			  error.position);
	return value;
}

struct rlmd_text json_text(const json_t *value)
{
	if (!json_is_string(value))
		return (struct rlmd_text){0};
	return text_from(json_string_value(value), json_string_length(value));
}

json_t *json_from_text(struct rlmd_text text)
{
	json_t *value = json_stringn(text.bytes ? text.bytes : "", text.size);
	auto_evbuffer struct evbuffer *repaired = NULL;

	if (value)
		return value;
	repaired = evbuffer_new();
	text_repair(text, repaired);
	return json_stringn_nocheck((char *)evbuffer_pullup(repaired, -1),
				    evbuffer_get_length(repaired));
}

int64_t json_get_integer(const json_t *object, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

int64_t json_count(json_t *object, const char *key)
{
	int64_t before = json_get_integer(object, key, 0);

	json_object_set_new_nocheck(object, key, json_integer(before + 1));
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

static int append(const char *bytes, size_t size, void *out)
{
	return evbuffer_add(out, bytes, size);
}

void json_write(const json_t *value, bool sorted, struct evbuffer *out)
{
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_DIGITS) |
		       (sorted ? JSON_SORT_KEYS : 0);

	json_dump_callback(value, append, out, flags);
}

void json_write_line(const json_t *value, struct evbuffer *out)
{
	json_write(value, false, out);
	evbuffer_add(out, "\n", 1);
}

char *json_to_string(const json_t *value)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	json_write(value, false, out);
	return text_drain(out, NULL);
}

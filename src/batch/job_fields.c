#include "batch/job_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_scan.h"

enum {
	DEPTH_MAX = JSON_SCAN_DEPTH,
	VALUES_MAX = 1000000, /* of a line: what is read costs memory for each */
	SHOWN = 60,           /* bytes of a stranger's word in an error */
};

static const struct json_scan_bounds bounds = {
	.depth = DEPTH_MAX, .values = VALUES_MAX, .any_number = true};

static const char *kind_name(enum json_view_kind kind)
{
	static const char *const names[] = {
		[JSON_VIEW_NONE] = "nothing",     [JSON_VIEW_OBJECT] = "an object",
		[JSON_VIEW_ARRAY] = "an array",   [JSON_VIEW_STRING] = "a string",
		[JSON_VIEW_INTEGER] = "a number", [JSON_VIEW_REAL] = "a number",
		[JSON_VIEW_TRUE] = "true",        [JSON_VIEW_FALSE] = "false",
		[JSON_VIEW_NULL] = "null",
	};

	return names[kind];
}

static bool unknown(const struct job_fields *fields, const struct json_view *key,
		    struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *known = buffer_new();
	auto_free char *list = NULL;
	struct rlmd_text shown = text_clip(key->text, SHOWN);

	for (size_t i = 0; i < fields->count; i++)
		buffer_add_printf(known, "%s%s", i ? ", " : "", fields->names[i]);
	list = text_drain(known, NULL);
	return error_set(err, RLMD_ERROR_INPUT, "%s%.*s: %s has no such key; it has %s",
			 fields->prefix, (int)shown.size, shown.bytes, fields->what, list);
}

static size_t index_of(const struct job_fields *fields, const struct json_view *key)
{
	size_t i = 0;

	while (i < fields->count && !json_view_equal(key, fields->names[i]))
		i++;
	return i;
}

bool job_fields_read(const struct job_fields *fields, struct rlmd_text object,
		     struct json_view *ret, struct rlmd_error *err)
{
	struct json_view key, stranger = {0};
	enum json_view_kind kind;
	struct json_scan scan;

	assert(fields->count <= JOB_FIELDS_MAX);
	for (size_t i = 0; i < fields->count; i++)
		ret[i] = (struct json_view){0};
	json_scan_init(&scan, object, &bounds);
	kind = json_scan_kind(&scan);
	if (json_scan_enter(&scan, JSON_VIEW_OBJECT))
		while (json_scan_member(&scan, &key)) {
			size_t i = index_of(fields, &key);
			bool is_null = json_scan_kind(&scan) == JSON_VIEW_NULL;

			if (i == fields->count)
				stranger = key;
			else if (!is_null)
				json_scan_value(&scan, &ret[i]);
		}
	if (!json_scan_end(&scan, err)) {
		err->kind = RLMD_ERROR_INPUT;
		return false;
	}
	if (kind != JSON_VIEW_OBJECT)
		return error_set(err, RLMD_ERROR_INPUT, "%s must be an object, this is %s",
				 fields->what, kind_name(kind));
	return !stranger.kind || unknown(fields, &stranger, err);
}

bool job_fields_is(const struct json_view *view, enum json_view_kind kind, const char *name,
		   struct rlmd_error *err)
{
	return view->kind == JSON_VIEW_NONE || view->kind == kind ||
	       error_set(err, RLMD_ERROR_INPUT, "%s: must be %s, not %s", name, kind_name(kind),
			 kind_name(view->kind));
}

bool job_fields_string(const struct json_view *view, const char *name, size_t limit, char **ret,
		       struct rlmd_error *err)
{
	auto_free char *owned = NULL;
	struct rlmd_text text;

	if (!job_fields_is(view, JSON_VIEW_STRING, name, err))
		return false;
	if (view->kind == JSON_VIEW_NONE)
		return true;
	if (json_view_has_nul(view))
		return error_set(err, RLMD_ERROR_INPUT, "%s: has a NUL character; leave it out",
				 name);
	text = json_view_text(view, &owned);
	if (!text.size)
		return error_set(err, RLMD_ERROR_INPUT, "%s: is empty; say what it is to be", name);
	if (text.size > limit)
		return error_set(err, RLMD_ERROR_INPUT, "%s: has %zu bytes; at most %zu may be",
				 name, text.size, limit);
	*ret = text_copy(text);
	return true;
}

bool job_fields_count(const struct json_view *view, const char *name, int64_t min, int64_t max,
		      int64_t *ret, struct rlmd_error *err)
{
	struct rlmd_text shown = text_clip(view->text, SHOWN);
	double number;

	if (view->kind == JSON_VIEW_NONE)
		return true;
	if (!json_view_number(view, &number))
		return error_set(err, RLMD_ERROR_INPUT, "%s: must be a number, not %s", name,
				 kind_name(view->kind));
	/* Beyond 2^53 a double is not exact; no bound is as large. */
	if (number < (double)min || number > (double)max || number != floor(number))
		return error_set(err, RLMD_ERROR_INPUT,
				 "%s: %.*s is no whole number from %" PRId64 " to %" PRId64, name,
				 (int)shown.size, shown.bytes, min, max);
	*ret = (int64_t)number;
	return true;
}

/*
 * Reading by base/json_scan.h is reading by jansson: both take a text or both refuse it, and what
 * they make of it is the same tree.
 */
#pragma once

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_scan.h"

enum { SCAN_DEPTH = 16 };

static json_t *tree_of(struct json_scan *, unsigned depth);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Taken in parts, each of whole characters. */
static void take_in_parts(const struct json_view *view, size_t most, struct evbuffer *out)
{
	struct json_view rest = *view;
	char *room = malloc(most);

	while (rest.text.size) {
		struct rlmd_text part = json_view_take(&rest, room, most);

		require(part.size && part.size <= most && text_is_utf8(part));
		evbuffer_add(out, part.bytes, part.size);
	}
	free(room);
}

/* All ways to a string's bytes lead to the same ones. */
static json_t *tree_of_string(const struct json_view *view)
{
	auto_free char *owned = NULL, *room = malloc(view->text.size + 1);
	auto_evbuffer struct evbuffer *appended = evbuffer_new(), *parts = evbuffer_new();
	struct rlmd_text text = json_view_text(view, &owned);
	size_t size = json_view_copy(view, room);
	json_t *string = json_stringn(text.bytes, text.size);

	json_view_append(view, appended);
	take_in_parts(view, 4, parts);
	take_in_parts(view, 64, parts);
	require(text_in(parts).size == 2 * size && json_view_has_text(view) == (size > 0));
	require(!size || !memcmp(text_in(parts).bytes, text.bytes, size));
	require(!size || !memcmp(text_in(parts).bytes + size, text.bytes, size));
	require(string && text.size == size);
	require(!size || !memcmp(room, text.bytes, size));
	require(text_in(appended).size == size);
	require(!size || !memcmp(text_in(appended).bytes, text.bytes, size));
	require(json_view_has_nul(view) == (size && memchr(text.bytes, 0, size)));
	require(json_view_has_nul(view) || json_view_equal(view, json_string_value(string)));
	return string;
}

static json_t *tree_of_number(const struct json_view *view)
{
	double number;

	require(json_view_number(view, &number));
	if (view->kind == JSON_VIEW_REAL)
		return json_real(number);
	require((double)json_view_integer(view, 7) == number);
	return json_integer(json_view_integer(view, 7));
}

static json_t *tree_of_scalar(const struct json_view *view)
{
	switch (view->kind) {
	case JSON_VIEW_STRING:
		return tree_of_string(view);
	case JSON_VIEW_INTEGER:
	case JSON_VIEW_REAL:
		return tree_of_number(view);
	case JSON_VIEW_TRUE:
	case JSON_VIEW_FALSE:
		return json_boolean(json_view_is_true(view));
	case JSON_VIEW_NULL:
		return json_null();
	case JSON_VIEW_NONE:
	case JSON_VIEW_OBJECT:
	case JSON_VIEW_ARRAY:
		break;
	}
	abort();
}

static json_t *tree_of_object(struct json_scan *scan, unsigned depth)
{
	json_t *object = json_object();
	struct json_view key;

	while (json_scan_member(scan, &key)) {
		auto_free char *owned = NULL;
		struct rlmd_text name = json_view_text(&key, &owned);
		auto_free char *string = text_copy(name);
		json_t *value = tree_of(scan, depth + 1);

		if (value)
			json_object_set_new(object, string, value);
	}
	return object;
}

static json_t *tree_of_array(struct json_scan *scan, unsigned depth)
{
	json_t *array = json_array();

	while (json_scan_element(scan)) {
		json_t *value = tree_of(scan, depth + 1);

		if (value)
			json_array_append_new(array, value);
	}
	return array;
}

/* NULL where nothing can be read; then the scan has failed. */
static json_t *tree_of(struct json_scan *scan, unsigned depth)
{
	struct json_view view;

	require(depth <= SCAN_DEPTH);
	if (json_scan_enter(scan, JSON_VIEW_OBJECT))
		return tree_of_object(scan, depth);
	if (json_scan_enter(scan, JSON_VIEW_ARRAY))
		return tree_of_array(scan, depth);
	return json_scan_value(scan, &view) ? tree_of_scalar(&view) : NULL;
}

/* The text taken as one value, nothing of it looked at. */
static bool skips(struct rlmd_text text, const struct json_scan_bounds *bounds)
{
	struct json_scan scan;
	struct json_view view;
	bool taken;

	json_scan_init(&scan, text, bounds);
	taken = json_scan_value(&scan, &view);
	if (!json_scan_end(&scan, NULL))
		return false;
	require(taken && view.kind && view.text.bytes >= text.bytes &&
		view.text.bytes + view.text.size <= text.bytes + text.size);
	return true;
}

/* A text that was checked while it came, in pieces of such a size, is read as any other. */
static void read_ahead(struct rlmd_text text, size_t piece, const json_t *expected,
		       const struct rlmd_error *expected_err)
{
	struct json_ahead ahead = {0};
	const struct json_scan_bounds bounds = {.depth = SCAN_DEPTH, .ahead = &ahead};
	json_auto_t *tree = NULL;
	struct rlmd_error err = {0};
	struct json_scan scan;

	for (size_t come = 0; come < text.size;) {
		come = come + piece < text.size ? come + piece : text.size;
		json_ahead_feed(&ahead, text_slice(text, 0, come));
	}
	if (!text.size)
		json_ahead_feed(&ahead, text);
	json_scan_init(&scan, text, &bounds);
	tree = tree_of(&scan, 0);
	require(json_scan_end(&scan, &err) == (expected != NULL));
	require(!strcmp(err.text, expected_err->text));
	require(!expected || json_equal(tree, expected));
	json_ahead_done(&ahead);
}

/* Which recurses: so the depth is looked at before. */
static json_t *read_by_jansson(struct rlmd_text text)
{
	if (json_look(text).depth > SCAN_DEPTH)
		return NULL;
	return json_loadb(text.bytes ? text.bytes : "", text.size,
			  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

/* Whether the text is JSON, which both readers have to say. */
static bool read_by_both(struct rlmd_text text)
{
	static const struct json_scan_bounds bounds = {.depth = SCAN_DEPTH};
	json_auto_t *expected = read_by_jansson(text), *tree = NULL, *read = NULL;
	struct rlmd_error err = {0};
	struct json_scan scan;
	bool whole;

	json_scan_init(&scan, text, &bounds);
	tree = tree_of(&scan, 0);
	whole = json_scan_end(&scan, &err);
	/* jansson overlooks a NUL behind a number or a word; nobody means one. */
	require(whole == (expected != NULL) || (!whole && memchr(text.bytes, '\0', text.size)));
	require(whole ? tree && json_equal(tree, expected)
		      : err.kind == RLMD_ERROR_BAD_REPLY && *err.text);
	require(skips(text, &bounds) == whole);
	read = json_read(text, SCAN_DEPTH, NULL);
	require(whole ? read && json_equal(read, expected) : !read);
	read_ahead(text, 1, whole ? expected : NULL, &err);
	read_ahead(text, 300, whole ? expected : NULL, &err);
	return whole;
}

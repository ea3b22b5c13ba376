#include "batch/results_line.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/json_scan.h"

#define BEGINNING "{\"custom_id\":"

enum {
	MARK_DIGITS = 16,
	ID_MAX = 4096, /* of who wrote the line; ours are shorter */
};

uint64_t results_line_mark(const char *digest)
{
	char digits[MARK_DIGITS + 1];

	snprintf(digits, sizeof digits, "%.*s", MARK_DIGITS, digest);
	return strtoull(digits, NULL, 16) | 1;
}

static void write_head(const struct results_line *line, struct evbuffer *out)
{
	evbuffer_add_printf(out, BEGINNING);
	json_quote(text_of(line->custom_id), out);
	evbuffer_add_printf(out, ",\"tenant\":");
	if (line->tenant)
		json_quote(text_of(line->tenant), out);
	else
		evbuffer_add_printf(out, "null");
	evbuffer_add_printf(out, ",\"attempts\":%" PRId64, line->attempts);
	if (line->mark)
		evbuffer_add_printf(out, ",\"job\":\"%0*" PRIx64 "\"", MARK_DIGITS, line->mark);
}

/* The members of the result, behind those of the head. JSON that was written over several lines has
 * its line feeds between values only. */
static void write_result(struct rlmd_text members, struct evbuffer *out)
{
	if (text_trim(members).bytes[0] != '}')
		evbuffer_add(out, ",", 1);
	while (members.size) {
		size_t end = text_line_end(members, 0);
		bool feed = members.bytes[end - 1] == '\n';

		evbuffer_add(out, members.bytes, end - feed);
		members = text_slice(members, end, members.size);
	}
	evbuffer_add(out, "\n", 1);
}

bool results_line_write(const struct results_line *line, struct evbuffer *out,
			struct rlmd_error *err)
{
	struct rlmd_text result = text_trim(line->result);

	if (result.size < 2 || result.bytes[0] != '{' || result.bytes[result.size - 1] != '}')
		return error_set(err, RLMD_ERROR_INTERNAL, "the result of '%s' is no object",
				 line->custom_id);
	if (result.size > RESULTS_LINE_MAX / 2)
		return error_set(
			err, RLMD_ERROR_INTERNAL,
			"the result of '%s' has %zu bytes, more than a line of results may",
			line->custom_id, result.size);
	write_head(line, out);
	write_result(text_slice(result, 1, result.size), out);
	return true;
}

static uint64_t mark_of(struct rlmd_text text)
{
	char digits[MARK_DIGITS + 1] = "";

	if (text.size == MARK_DIGITS)
		memcpy(digits, text.bytes, MARK_DIGITS);
	return strspn(digits, "0123456789abcdef") == MARK_DIGITS ? strtoull(digits, NULL, 16) : 0;
}

static bool take(struct rlmd_text id, struct rlmd_text mark, char **ret_id, uint64_t *ret_mark,
		 struct rlmd_error *err)
{
	if (!id.size || id.size > ID_MAX || memchr(id.bytes, '\0', id.size))
		return error_set(err, RLMD_ERROR_INPUT, "has no custom_id");
	*ret_id = text_copy(id);
	*ret_mark = mark_of(mark);
	return true;
}

/* Traces nest deeper than a scan may. */
static bool read_deep(struct rlmd_text line, char **ret_id, uint64_t *ret_mark,
		      struct rlmd_error *err)
{
	json_auto_t *object = json_read(line, RESULTS_DEPTH_MAX, err);

	if (object)
		return take(json_get_text(object, "custom_id"), json_get_text(object, "job"),
			    ret_id, ret_mark, err);
	err->kind = RLMD_ERROR_INPUT;
	return false;
}

bool results_line_read(struct rlmd_text line, char **ret_id, uint64_t *ret_mark,
		       struct rlmd_error *err)
{
	static const struct json_scan_bounds bounds = {.depth = JSON_SCAN_DEPTH,
						       .any_number = true};
	static const struct json_scan_field fields[] = {
		{.name = "custom_id", .view = 0}, {.name = "job", .view = 1}, {0}};
	auto_free char *id = NULL, *mark = NULL;
	struct json_view views[2] = {0};

	if (json_look(line).depth > JSON_SCAN_DEPTH)
		return read_deep(line, ret_id, ret_mark, err);
	if (json_scan_fields(line, &bounds, fields, views, 2, err))
		return take(json_view_text(&views[0], &id), json_view_text(&views[1], &mark),
			    ret_id, ret_mark, err);
	err->kind = RLMD_ERROR_INPUT;
	return false;
}

bool results_line_is_rest(struct rlmd_text line)
{
	const char *nul = line.size ? memchr(line.bytes, '\0', line.size) : NULL;
	size_t size = nul ? (size_t)(nul - line.bytes) : line.size;
	size_t known = strlen(BEGINNING);

	return !size || !memcmp(line.bytes, BEGINNING, size < known ? size : known);
}

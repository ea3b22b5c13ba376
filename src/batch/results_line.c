#include "batch/results_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/json_scan.h"
#include "base/money.h"
#include "store/values.h"

#define BEGINNING "{\"custom_id\":"

enum { ID_MAX = 4096 }; /* of who wrote the line; ours are shorter */

enum member { ID, TENANT, ATTEMPTS, JOB, SUCCESS, MEMBERS };

static const struct json_scan_field fields[] = {
	{.name = "custom_id", .view = ID},      {.name = "tenant", .view = TENANT},
	{.name = "attempts", .view = ATTEMPTS}, {.name = "job", .view = JOB},
	{.name = "success", .view = SUCCESS},   {0}};

/* Views of the members that a line has in front of its result, and of `success`. */
static bool scan(struct rlmd_text text, struct json_view views[MEMBERS], struct rlmd_error *err)
{
	struct json_scan_level levels[RESULTS_DEPTH_MAX];
	const struct json_scan_bounds bounds = {
		.depth = RESULTS_DEPTH_MAX, .any_number = true, .levels = levels};

	if (json_scan_fields(text, &bounds, fields, views, MEMBERS, err))
		return true;
	err->kind = RLMD_ERROR_INPUT;
	return false;
}

/* --- written -------------------------------------------------------------------------- */

struct results_line results_line_of(const struct store_job *job)
{
	struct results_line line = {
		.custom_id = job->custom_id,
		.tenant = job->tenant,
		.attempts = job->attempts,
		.result = job->result,
	};
	auto_free char *digits = text_copy(text_clip(job->digest, RESULTS_LINE_JOB));

	snprintf(line.job, sizeof line.job, "%0*" PRIx64, RESULTS_LINE_JOB,
		 (uint64_t)strtoull(digits, NULL, 16) | 1);
	return line;
}

static void write_head(const struct results_line *line, struct evbuffer *out)
{
	buffer_add_printf(out, BEGINNING);
	json_quote(line->custom_id, out);
	buffer_add_printf(out, ",\"tenant\":");
	if (line->tenant.size)
		json_quote(line->tenant, out);
	else
		buffer_add_printf(out, "null");
	buffer_add_printf(out, ",\"attempts\":%" PRId64 ",\"job\":\"%s\"", line->attempts,
			  line->job);
}

/* The members of the result, behind those of the head. JSON that was written over several lines has
 * its line feeds between values only. */
static void write_result(struct rlmd_text members, struct evbuffer *out)
{
	if (text_trim(members).bytes[0] != '}')
		buffer_add(out, ",", 1);
	while (members.size) {
		size_t end = text_line_end(members, 0);
		bool feed = members.bytes[end - 1] == '\n';

		buffer_add(out, members.bytes, end - feed);
		members = text_slice(members, end, members.size);
	}
	buffer_add(out, "\n", 1);
}

/* Whether it is one object, which says nothing that the head does. */
static bool is_result(struct rlmd_text result)
{
	struct json_view views[MEMBERS] = {0};
	struct rlmd_error ignored;

	return result.size >= 2 && result.bytes[0] == '{' && scan(result, views, &ignored) &&
	       !views[ID].kind && !views[TENANT].kind && !views[ATTEMPTS].kind && !views[JOB].kind;
}

bool results_line_write(const struct results_line *line, struct evbuffer *out,
			struct rlmd_error *err)
{
	struct rlmd_text result = text_trim(line->result);

	if (!is_result(result))
		return error_set(err, RLMD_ERROR_INPUT,
				 "the result of '%.*s' is no object, or says whose it is itself",
				 (int)line->custom_id.size, line->custom_id.bytes);
	if (result.size > RESULTS_LINE_MAX / 2)
		return error_set(
			err, RLMD_ERROR_INTERNAL,
			"the result of '%.*s' has %zu bytes, more than a line of results may",
			(int)line->custom_id.size, line->custom_id.bytes, result.size);
	write_head(line, out);
	write_result(text_slice(result, 1, result.size), out);
	return true;
}

/* --- read ----------------------------------------------------------------------------- */

static bool is_digest(const struct json_view *view)
{
	char digits[RESULTS_LINE_JOB + 1] = "";

	if (view->kind == JSON_VIEW_STRING && view->text.size == RESULTS_LINE_JOB)
		memcpy(digits, view->text.bytes, RESULTS_LINE_JOB);
	return strspn(digits, "0123456789abcdef") == RESULTS_LINE_JOB;
}

/* The first member that is not as each line has it; MEMBERS: all are. */
static enum member missing(const struct json_view views[MEMBERS])
{
	if (!views[ID].text.size || views[ID].kind != JSON_VIEW_STRING ||
	    views[ID].text.size > ID_MAX || json_view_has_nul(&views[ID]))
		return ID;
	if (views[TENANT].kind != JSON_VIEW_STRING && views[TENANT].kind != JSON_VIEW_NULL)
		return TENANT;
	if (views[ATTEMPTS].kind != JSON_VIEW_INTEGER)
		return ATTEMPTS;
	if (!is_digest(&views[JOB]))
		return JOB;
	if (views[SUCCESS].kind != JSON_VIEW_TRUE && views[SUCCESS].kind != JSON_VIEW_FALSE)
		return SUCCESS;
	return MEMBERS;
}

bool results_line_read(struct rlmd_text text, struct results_line *ret, struct rlmd_error *err)
{
	struct json_view views[MEMBERS] = {0};
	enum member member;

	if (!scan(text, views, err))
		return false;
	member = missing(views);
	if (member == ID)
		return error_set(err, RLMD_ERROR_INPUT, "has no custom_id");
	if (member != MEMBERS)
		return error_set(err, RLMD_ERROR_INPUT,
				 "has no '%s' as each line of results has it", fields[member].name);
	*ret = (struct results_line){
		.attempts = json_view_integer(&views[ATTEMPTS], 0),
		.success = views[SUCCESS].kind == JSON_VIEW_TRUE,
	};
	ret->custom_id = json_view_text(&views[ID], &ret->owned[0]);
	ret->tenant = json_view_text(&views[TENANT], &ret->owned[1]);
	memcpy(ret->job, views[JOB].text.bytes, RESULTS_LINE_JOB);
	return true;
}

void results_line_done(struct results_line *line)
{
	free(line->owned[0]);
	free(line->owned[1]);
	*line = (struct results_line){0};
}

/* The result as this program has written it, new; NULL: another one has written the line. */
static char *result_in(struct rlmd_text text, const struct results_line *line)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	auto_free char *head = NULL;
	size_t size;

	write_head(line, out);
	head = text_drain(out, &size);
	if (!text_starts(text, head))
		return NULL;
	text = text_slice(text, size, text.size);
	if (text_starts(text, ","))
		text = text_slice(text, 1, text.size);
	return xasprintf("{%.*s", (int)text.size, text.bytes);
}

static char *result_of(struct rlmd_text text, const struct results_line *line, json_t *object)
{
	char *result = result_in(text, line);

	for (enum member member = ID; !result && member < SUCCESS; member++)
		json_object_del(object, fields[member].name);
	return result ? result : json_to_string(object);
}

bool results_line_outcome(struct rlmd_text text, const struct results_line *line,
			  struct store_outcome *ret, char **ret_result, struct rlmd_error *err)
{
	json_auto_t *object = json_read(text, RESULTS_DEPTH_MAX, err);
	const json_t *usage = json_object_get(object, "usage");
	enum rlmd_error_kind kind = error_named(
		json_get_text(json_object_get(object, "error"), "kind"));
	bool forced = strcmp(json_get_string(object, "stopReason"),
			     rlmd_stop_name(RLMD_STOP_FINAL)) != 0;

	if (!object)
		return false;
	*ret = (struct store_outcome){
		.succeeded = line->success,
		.error = text_of(!line->success ? rlmd_error_name(kind ? kind : RLMD_ERROR_INTERNAL)
				 : forced       ? STORE_DEGRADED
						: NULL),
		.cost = money_from_dollars(json_number_value(json_object_get(usage, "cost"))),
		.tokens = json_get_integer(usage, "tokens", 0),
		.attempts = line->attempts,
	};
	*ret_result = result_of(text, line, object);
	ret->result = text_of(*ret_result);
	return true;
}

/* Whether it has these words, or as many of them as it has bytes. */
static bool agrees(struct rlmd_text text, const char *words)
{
	size_t size = strlen(words) < text.size ? strlen(words) : text.size;

	return !size || !memcmp(text.bytes, words, size);
}

bool results_line_is_rest(struct rlmd_text text)
{
	const char *nul = text.size ? memchr(text.bytes, '\0', text.size) : NULL;
	struct json_view views[MEMBERS];
	struct rlmd_error ignored;
	size_t at = strlen(BEGINNING) + 1;

	if (nul)
		text.size = (size_t)(nul - text.bytes);
	while (at < text.size && text.bytes[at] != '"')
		at += text.bytes[at] == '\\' ? 2 : 1;
	at = at + 1 < text.size ? at + 1 : text.size;
	return agrees(text, BEGINNING "\"") &&
	       agrees(text_slice(text, at, text.size), ",\"tenant\":") &&
	       (nul || !scan(text, views, &ignored));
}

#include "batch/job_messages.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "batch/job_fields.h"

enum { NAME_MAX_SIZE = 64 }; /* "body.messages[1000000].content" */

enum body_field { MODEL, MESSAGES, FORMAT, COUNT, IGNORED };

/* The members after the first four say how the model is asked, and how it samples. */
static const char *const body_names[] = {
	"model",
	"messages",
	"response_format",
	"n",
	"temperature",
	"top_p",
	"seed",
	"max_tokens",
	"max_completion_tokens",
	"frequency_penalty",
	"presence_penalty",
	"reasoning_effort",
	"stream",
	"stream_options",
	"store",
	"metadata",
	"user",
	"safety_identifier",
	"prompt_cache_key",
	"service_tier",
	"verbosity",
};

enum { BODY_FIELDS = sizeof body_names / sizeof *body_names };

static const struct job_fields body_members = {"the body of a job", "body.", body_names,
					       BODY_FIELDS};
_Static_assert((int)BODY_FIELDS <= (int)JOB_FIELDS_MAX, "room for all");

struct chat_message {
	struct json_view role, content;
};

struct conversation_list {
	struct chat_message *items; /* owned */
	size_t count, room;
};

/* --- the messages --------------------------------------------------------------- */

/* The next message; a prefix names it in errors. */
static bool read_message(struct rlmd_text text, const char *prefix, struct chat_message *ret,
			 struct rlmd_error *err)
{
	static const char *const parts[] = {"role", "content", "name"};
	const struct job_fields members = {"a message that rlmd can take", prefix, parts, 3};
	struct json_view views[3];

	if (!job_fields_read(&members, text, views, err))
		return false;
	*ret = (struct chat_message){views[0], views[1]};
	return ret->role.kind == JSON_VIEW_STRING ||
	       error_set(err, RLMD_ERROR_INPUT, "%srole: must be a string", prefix);
}

static bool read_messages(const struct json_view *array, struct conversation_list *list,
			  struct rlmd_error *err)
{
	const struct json_scan_bounds bounds = {.depth = JSON_SCAN_DEPTH, .any_number = true};
	struct json_scan scan;
	bool good = true;

	json_scan_init(&scan, array->text, &bounds);
	if (json_scan_enter(&scan, JSON_VIEW_ARRAY))
		while (json_scan_element(&scan)) {
			char prefix[NAME_MAX_SIZE];
			struct json_view view = {0};

			json_scan_value(&scan, &view);
			if (!good)
				continue;
			if (list->count == list->room) {
				list->room = list->room ? 2 * list->room : 8;
				list->items = xreallocarray(list->items, list->room,
							    sizeof *list->items);
			}
			snprintf(prefix, sizeof prefix, "body.messages[%zu].", list->count);
			good = view.kind == JSON_VIEW_OBJECT
				       ? read_message(view.text, prefix, &list->items[list->count],
						      err)
				       : error_set(err, RLMD_ERROR_INPUT,
						   "body.messages[%zu]: must be an object",
						   list->count);
			list->count++;
		}
	/* Errors in its JSON were told before. */
	return json_scan_end(&scan, good ? err : NULL) && good;
}

/* --- their texts ------------------------------------------------------------------ */

static bool no_text(size_t index, struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_INPUT,
			 "body.messages[%zu].content: must be text, or parts of type text", index);
}

/* One part: {"type": "text", "text": "..."} */
static bool append_part(const struct json_view *part, size_t index, struct evbuffer *out,
			struct rlmd_error *err)
{
	static const char *const parts[] = {"type", "text"};
	static const struct job_fields members = {"a part of a message that rlmd can take", "",
						  parts, 2};
	struct json_view views[2];

	if (part->kind != JSON_VIEW_OBJECT)
		return no_text(index, err);
	if (!job_fields_read(&members, part->text, views, err))
		return error_context(err, "body.messages[%zu].content", index);
	if (!json_view_equal(&views[0], "text") || views[1].kind != JSON_VIEW_STRING)
		return no_text(index, err);
	json_view_append(&views[1], out);
	return true;
}

static bool append_parts(const struct json_view *array, size_t index, struct evbuffer *out,
			 struct rlmd_error *err)
{
	const struct json_scan_bounds bounds = {.depth = JSON_SCAN_DEPTH, .any_number = true};
	struct json_view part;
	struct json_scan scan;
	bool good = true;

	json_scan_init(&scan, array->text, &bounds);
	if (json_scan_enter(&scan, JSON_VIEW_ARRAY))
		while (json_scan_element(&scan))
			if (json_scan_value(&scan, &part) && good)
				good = append_part(&part, index, out, err);
	return json_scan_end(&scan, good ? err : NULL) && good;
}

static bool append_text(const struct chat_message *message, size_t index, struct evbuffer *out,
			struct rlmd_error *err)
{
	if (message->content.kind == JSON_VIEW_ARRAY)
		return append_parts(&message->content, index, out, err);
	if (message->content.kind == JSON_VIEW_STRING)
		json_view_append(&message->content, out);
	return message->content.kind == JSON_VIEW_STRING ||
	       message->content.kind == JSON_VIEW_NONE || no_text(index, err);
}

static bool split(const struct conversation_list *list, struct evbuffer *task,
		  struct evbuffer *context, struct rlmd_error *err)
{
	size_t last = list->count;

	while (last && !json_view_equal(&list->items[last - 1].role, "user"))
		last--;
	if (!last)
		return error_set(
			err, RLMD_ERROR_INPUT,
			"body.messages: has no message of the user, which would be the task");
	for (size_t i = 0; i < list->count; i++) {
		if (i == last - 1) {
			if (!append_text(&list->items[i], i, task, err))
				return false;
			continue;
		}
		json_view_append(&list->items[i].role, context);
		buffer_add(context, ":\n", 2);
		if (!append_text(&list->items[i], i, context, err))
			return false;
		buffer_add(context, "\n\n", 2);
	}
	return true;
}

/* --- what else there is ------------------------------------------------------------ */

/* {"type": "json_schema", "json_schema": {"name", "strict", "schema": {...}}} */
static bool read_format(const struct json_view *format, struct json_view *ret_schema,
			struct rlmd_error *err)
{
	static const char *const parts[] = {"type", "json_schema"};
	static const char *const schema_parts[] = {"schema", "name", "strict", "description"};
	static const struct job_fields members = {"a response_format", "body.response_format.",
						  parts, 2};
	static const struct job_fields schema_members = {
		"a json_schema", "body.response_format.json_schema.", schema_parts, 4};
	struct json_view views[2], schema[4];

	if (!format->kind)
		return true;
	if (!job_fields_is(format, JSON_VIEW_OBJECT, "body.response_format", err) ||
	    !job_fields_read(&members, format->text, views, err))
		return false;
	if (json_view_equal(&views[0], "text"))
		return true;
	if (!json_view_equal(&views[0], "json_schema") || views[1].kind != JSON_VIEW_OBJECT)
		return error_set(err, RLMD_ERROR_INPUT,
				 "body.response_format: must be of type text or json_schema; to "
				 "have JSON, say its schema");
	if (!job_fields_read(&schema_members, views[1].text, schema, err))
		return false;
	*ret_schema = schema[0];
	return true;
}

static bool check_body(const struct json_view *views, struct rlmd_error *err)
{
	int64_t answers = 1;

	if (views[MESSAGES].kind != JSON_VIEW_ARRAY)
		return error_set(err, RLMD_ERROR_INPUT,
				 "body.messages: must be an array of messages");
	return job_fields_count(&views[COUNT], "body.n", 1, 1, &answers, err);
}

bool job_messages_read(struct rlmd_text body, struct job_messages *ret, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *task = buffer_new(), *context = buffer_new();
	struct job_messages messages = {0};
	struct conversation_list list = {0};
	struct json_view views[BODY_FIELDS];
	bool good = job_fields_read(&body_members, body, views, err) && check_body(views, err) &&
		    read_format(&views[FORMAT], &messages.schema, err) &&
		    read_messages(&views[MESSAGES], &list, err) && split(&list, task, context, err);

	free(list.items);
	if (!good)
		return false;
	for (size_t i = IGNORED; i < BODY_FIELDS && !messages.ignored; i++)
		if (views[i].kind)
			messages.ignored = body_names[i];
	messages.model = views[MODEL];
	messages.task = text_drain(task, &messages.task_size);
	if (evbuffer_get_length(context))
		messages.context = text_drain(context, &messages.context_size);
	*ret = messages;
	return true;
}

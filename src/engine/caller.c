#include "engine/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"
#include "engine/scope.h"
#include "trace/record.h"

void caller_begin(struct caller *caller, const char *model, struct rlmd_text task)
{
	caller->activity = (struct activity){
		.run = caller->id,
		.parent = caller->parent ? caller->parent->id : NULL,
		.model = model,
		.task = task,
		.depth = caller->depth,
	};
	activity_begin(&caller->scope->activities, &caller->activity);
}

void caller_done(struct caller *caller)
{
	if (caller->activity.run)
		activity_end(&caller->scope->activities, &caller->activity);
	json_decref(caller->warnings);
	caller->warnings = NULL;
	json_decref(caller->asked);
	caller->asked = NULL;
}

void caller_key(struct caller *caller, const struct rlmd_text *what, size_t count,
		char out[static CALLER_KEY_SIZE])
{
	char digest[DIGEST_SIZE];

	*out = '\0';
	if (!llm_knows_positions(caller->scope->llm))
		return;
	digest_texts(what, count, digest);
	if (!caller->asked)
		caller->asked = json_make_object();
	snprintf(out, CALLER_KEY_SIZE, "%.16s.%lld", digest,
		 (long long)json_count(caller->asked, digest));
}

void caller_name(const struct caller *parent, const struct scope *scope, const char *position,
		 char out[static 37])
{
	auto_free char *seed = NULL;

	if (!llm_keeps(scope->llm)) {
		trace_uuid(out);
		return;
	}
	seed = xasprintf("%s %s", parent ? parent->id : scope->id, position);
	trace_uuid_of(text_of(seed), out);
}

void caller_set_path(struct caller *caller, const char *position)
{
	const struct rlmd_text parts[] = {text_of(caller->parent ? caller->parent->path : ""),
					  text_of(position)};
	char digest[DIGEST_SIZE];

	if (!caller->parent || !llm_knows_positions(caller->scope->llm))
		return;
	digest_texts(parts, 2, digest);
	snprintf(caller->path, sizeof caller->path, "%.*s", CALLER_PATH_SIZE - 1, digest);
}

void caller_position(const struct caller *caller, const char *position, int number,
		     struct llm_request *request, char out[static CALLER_POSITION_SIZE])
{
	if (position)
		snprintf(out, CALLER_POSITION_SIZE, "%s %s %s", caller->path,
			 request_kind_name(request->kind), position);
	else
		snprintf(out, CALLER_POSITION_SIZE, "%s %s %d", caller->path,
			 request_kind_name(request->kind), request->turn);
	request->position = out;
	request->number = number;
}

struct log caller_call_log(const struct caller *caller, int number,
			   const struct llm_request *request)
{
	struct log log = log_child(&caller->log);

	log_add_text(&log, "kind", request_kind_name(request->kind));
	if (number == CALLER_TURN)
		log_add_number(&log, "turn", request->turn);
	else
		log_add_number(&log, "call", number);
	return log;
}

bool caller_is_late(struct rlmd_error *err)
{
	return error_limit(err, RLMD_STOP_MAX_TIME, "%s", error_stop_words(RLMD_STOP_MAX_TIME));
}

void caller_warn(struct caller *caller, const char *text)
{
	json_append(caller->warnings, json_from_text(text_of(text)));
	record_warning(caller->scope->trace, caller->id, text);
}

static bool is_warned(const struct caller *caller, const char *text)
{
	const json_t *warning;
	size_t i;

	json_array_foreach (caller->warnings, i, warning)
		if (!strcmp(json_string_value(warning), text))
			return true;
	return false;
}

void caller_warn_once(struct caller *caller, const char *text)
{
	for (; caller; caller = caller->parent)
		if (!is_warned(caller, text))
			caller_warn(caller, text);
}

#include "engine/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "engine/ask.h"
#include "trace/record.h"

void caller_done(struct caller *caller)
{
	json_decref(caller->warnings);
	caller->warnings = NULL;
}

void caller_name(const struct caller *parent, const struct rlmd_job *job, int number,
		 char out[static 37])
{
	auto_free char *seed = NULL;

	if (!llm_keeps(job->llm)) {
		trace_uuid(out);
		return;
	}
	seed = xasprintf("%s %d", parent ? parent->id : job->id, number);
	trace_uuid_of(text_of(seed), out);
}

void caller_place(const struct caller *caller, int number, struct llm_request *request,
		  char out[static CALLER_PLACE_SIZE])
{
	snprintf(out, CALLER_PLACE_SIZE, "%s %s %d", caller->id, llm_kind_name(request->kind),
		 number == ASK_TURN ? request->turn : number);
	request->place = out;
	request->number = number;
}

struct log caller_call_log(const struct caller *caller, int number,
			   const struct llm_request *request)
{
	struct log log = log_child(&caller->log);

	log_add_text(&log, "kind", llm_kind_name(request->kind));
	if (number == ASK_TURN)
		log_add_number(&log, "turn", request->turn);
	else
		log_add_number(&log, "call", number);
	return log;
}

void caller_warn(struct caller *caller, const char *text)
{
	json_array_append_new(caller->warnings, json_from_text(text_of(text)));
	record_warning(caller->job->trace, caller->id, text);
}

static bool is_warned(const struct caller *caller, const char *text)
{
	const json_t *told;
	size_t i;

	json_array_foreach (caller->warnings, i, told)
		if (!strcmp(json_string_value(told), text))
			return true;
	return false;
}

void caller_warn_once(struct caller *caller, const char *text)
{
	for (; caller; caller = caller->parent)
		if (!is_warned(caller, text))
			caller_warn(caller, text);
}

#include "engine/caller.h"

#include <string.h>

#include "base/json.h"
#include "engine/ask.h"
#include "trace/record.h"

void caller_done(struct caller *caller)
{
	json_decref(caller->warnings);
	caller->warnings = NULL;
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

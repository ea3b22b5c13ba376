#include "engine/caller.h"

#include <string.h>

#include "base/json.h"
#include "engine/job.h"
#include "trace/record.h"

void caller_done(struct caller *caller)
{
	json_decref(caller->warnings);
	caller->warnings = NULL;
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

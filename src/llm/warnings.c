#include "llm/warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

enum { WARNINGS_MAX = 64, WARNING_SIZE = 512 };

void warnings_init(struct warnings *warnings)
{
	warnings->fresh = json_array();
	warnings->told = json_object();
}

void warnings_done(struct warnings *warnings)
{
	json_decref(warnings->fresh);
	json_decref(warnings->told);
	*warnings = (struct warnings){0};
}

void warnings_add(struct warnings *warnings, const char *fmt, ...)
{
	char text[WARNING_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (json_object_size(warnings->told) >= WARNINGS_MAX ||
	    json_object_get(warnings->told, text))
		return;
	json_object_set_new_nocheck(warnings->told, text, json_true());
	json_array_append_new(warnings->fresh, json_from_text(text_of(text)));
}

json_t *warnings_take(struct warnings *warnings)
{
	json_t *taken = warnings->fresh;

	warnings->fresh = json_array();
	return taken;
}

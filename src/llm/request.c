#include "llm/request.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

enum { WARNINGS_MAX = 64, WARNING_SIZE = 512 };

const char *request_kind_name(enum llm_kind kind)
{
	switch (kind) {
	case LLM_TURN:
		return "turn";
	case LLM_QUERY:
		return "llm_query";
	case LLM_FORCED:
		return "forced";
	case LLM_DIRECT:
		return "direct";
	}
	return "unknown";
}

enum rlmd_model_kind request_model_kind(const struct llm_request *asked)
{
	if (asked->of_operation)
		return RLMD_MODEL_OPERATION;
	switch (asked->kind) {
	case LLM_TURN:
		return RLMD_MODEL_TURN;
	case LLM_FORCED:
		return RLMD_MODEL_FORCED;
	case LLM_QUERY:
	case LLM_DIRECT:
		break;
	}
	return RLMD_MODEL_SUBCALL;
}

void request_add_usage(struct llm_usage *sum, const struct llm_usage *more)
{
	sum->input += more->input;
	sum->output += more->output;
	sum->cache_read += more->cache_read;
	sum->cache_write += more->cache_write;
	sum->cache_write_1h += more->cache_write_1h;
	sum->reasoning += more->reasoning;
	sum->estimated |= more->estimated;
}

void request_warn(struct llm_warnings *warnings, const char *fmt, ...)
{
	char text[WARNING_SIZE];
	json_auto_t *made = NULL;
	const json_t *each;
	va_list args;
	size_t i;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	made = json_from_text(text_of(text));
	if (!warnings->all)
		warnings->all = json_make_array();
	json_array_foreach (warnings->all, i, each)
		if (json_equal(each, made))
			return;
	if (i < WARNINGS_MAX)
		json_append(warnings->all, json_incref(made));
}

json_t *request_take_warnings(struct llm_warnings *warnings)
{
	json_t *fresh = json_make_array();

	for (; warnings->taken < json_array_size(warnings->all); warnings->taken++)
		json_append(fresh, json_incref(json_array_get(warnings->all, warnings->taken)));
	return fresh;
}

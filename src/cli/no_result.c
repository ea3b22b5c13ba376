#include "cli/no_result.h"

#include "base/json.h"

static json_t *no_usage(void)
{
	static const char *const counts[] = {
		"tokens",   "inputTokens", "outputTokens",    "duration",     "iterations",
		"subcalls", "llmCalls",    "maxDepthReached", "cachedTokens",
	};
	json_t *usage = json_pack("{s:f, s:b, s:b}", "cost", 0.0, "estimated", 0, "costComplete",
				  1);

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		json_object_set_new(usage, counts[i], json_integer(0));
	return usage;
}

json_t *no_result(json_t *notes, const struct rlmd_error *err)
{
	json_t *object = json_pack("{s:b, s:s, s:s?, s:n, s:n, s:o, s:o}", "success", !err,
				   "output", "", "stopReason",
				   err ? rlmd_stop_name(error_stop(err)) : NULL, "trace", "sandbox",
				   "usage", no_usage(), "warnings", json_copy(notes));

	if (err)
		json_object_set_new(object, "error",
				    json_pack("{s:s, s:o}", "kind", rlmd_error_name(err->kind),
					      "message", json_from_text(text_of(err->text))));
	return object;
}

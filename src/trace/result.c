#include "trace/result.h"

#include "base/json.h"
#include "base/money.h"

json_t *result_cost(bool known, int64_t pico)
{
	return known ? json_real(money_to_dollars(pico)) : json_null();
}

json_t *result_usage(const struct budget *budget)
{
	const struct budget_usage *usage = budget_usage(budget);
	json_t *object = json_pack(
		"{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:b}", "cost",
		money_to_dollars(usage->cost), "tokens", (json_int_t)usage->tokens, "inputTokens",
		(json_int_t)usage->input_tokens, "outputTokens", (json_int_t)usage->output_tokens,
		"duration", (json_int_t)budget_elapsed_ms(budget), "iterations",
		(json_int_t)usage->iterations, "subcalls", (json_int_t)usage->subcalls, "llmCalls",
		(json_int_t)usage->llm_calls, "maxDepthReached", usage->max_depth_reached,
		"cachedTokens", (json_int_t)usage->cached_tokens, "estimated", usage->estimated,
		"costComplete", usage->cost_complete);

	if (usage->cached_calls)
		json_object_set_new(object, "cachedCalls",
				    json_integer((json_int_t)usage->cached_calls));
	if (usage->journaled_calls) {
		json_object_set_new(object, "journaledCalls",
				    json_integer((json_int_t)usage->journaled_calls));
		json_object_set_new(object, "journaledTokens",
				    json_integer((json_int_t)usage->journaled_tokens));
		json_object_set_new(object, "journaledCost",
				    json_real(money_to_dollars(usage->journaled_cost)));
	}
	if (usage->overrun_cost)
		json_object_set_new(object, "overrunCost",
				    json_real(money_to_dollars(usage->overrun_cost)));
	if (usage->overrun_tokens)
		json_object_set_new(object, "overrunTokens",
				    json_integer((json_int_t)usage->overrun_tokens));
	return object;
}

json_t *result_error(const struct rlmd_error *err, const char *provider)
{
	json_t *object = json_pack("{s:s, s:o, s:s*}", "kind", rlmd_error_name(err->kind),
				   "message", json_from_text(text_of(err->text)), "provider",
				   provider);

	if (err->http_status)
		json_object_set_new(object, "httpStatus", json_integer(err->http_status));
	return object;
}

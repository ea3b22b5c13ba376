#include "trace/result.h"

#include "base/json.h"
#include "base/money.h"

json_t *result_cost(bool known, int64_t pico)
{
	return known ? json_make_real(money_to_dollars(pico)) : json_null();
}

json_t *result_usage(const struct budget *budget)
{
	const struct budget_usage *usage = budget_usage(budget);
	struct rlmd_amount overrun = budget_overrun(budget);
	json_t *object = json_make(
		"{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:b}", "cost",
		money_to_dollars(usage->cost), "tokens", (json_int_t)usage->tokens, "inputTokens",
		(json_int_t)usage->input_tokens, "outputTokens", (json_int_t)usage->output_tokens,
		"duration", (json_int_t)budget_elapsed_ms(budget), "iterations",
		(json_int_t)usage->iterations, "subcalls", (json_int_t)usage->subcalls, "llmCalls",
		(json_int_t)usage->llm_calls, "maxDepthReached", usage->max_depth_reached,
		"cachedTokens", (json_int_t)usage->cached_tokens, "estimated", usage->estimated,
		"costComplete", usage->cost_complete);

	if (usage->cached_calls)
		json_put(object, "cachedCalls", json_make_integer((json_int_t)usage->cached_calls));
	if (usage->journaled_calls) {
		json_put(object, "journaledCalls",
			 json_make_integer((json_int_t)usage->journaled_calls));
		json_put(object, "journaledTokens",
			 json_make_integer((json_int_t)usage->journaled_tokens));
		json_put(object, "journaledCost",
			 json_make_real(money_to_dollars(usage->journaled_cost)));
	}
	if (overrun.cost)
		json_put(object, "overrunCost", json_make_real(money_to_dollars(overrun.cost)));
	if (overrun.tokens)
		json_put(object, "overrunTokens", json_make_integer((json_int_t)overrun.tokens));
	return object;
}

json_t *result_error(const struct rlmd_error *err, const char *provider)
{
	json_t *object = json_make("{s:s, s:o, s:s*}", "kind", rlmd_error_name(err->kind),
				   "message", json_from_text(text_of(err->text)), "provider",
				   provider);

	if (err->http_status)
		json_put(object, "httpStatus", json_make_integer(err->http_status));
	return object;
}

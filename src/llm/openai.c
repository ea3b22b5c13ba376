/*
 * OpenAI's Chat Completions, and what the many servers that speak it too make
 * of it: vLLM, llama.cpp, LM Studio, OpenRouter, LiteLLM, DeepSeek, Gemini.
 */
#include <inttypes.h>

#include "base/json.h"
#include "base/money.h"
#include "base/number.h"
#include "llm/adapter.h"

#define COST_MAX 10000.0 /* dollars for one call that anybody would ask */

static void encode(const struct llm_request *request, unsigned quirks, bool stream,
		   struct evbuffer *out)
{
	bool old = (quirks & QUIRK_OLD_MAX_TOKENS) && !(quirks & QUIRK_NEW_MAX_TOKENS);

	evbuffer_add(out, "{", 1);
	adapter_put_model(&adapter_openai, request, out);
	evbuffer_add(out, ",", 1);
	adapter_put_messages(request, out);
	evbuffer_add_printf(out, ",\"%s\":%" PRId64, old ? "max_tokens" : "max_completion_tokens",
			    request->max_tokens);
	adapter_put_sampling(request, quirks, "stop", out);
	evbuffer_add_printf(out, ",\"stream\":%s", stream ? "true" : "false");
	if (stream && !(quirks & QUIRK_NO_STREAM_OPTIONS))
		evbuffer_add_printf(out, ",\"stream_options\":{\"include_usage\":true}");
	evbuffer_add(out, "}", 1);
}

/* OpenRouter's "cost" is only its own fee where the customer brought a key of the back end. */
static void take_cost(struct reply *reply, const json_t *usage)
{
	const json_t *cost = json_object_get(usage, "cost");
	const json_t *details = json_object_get(usage, "cost_details");
	double dollars = json_number_value(cost);

	reply->cost_reported = -1;
	if (!cost || json_is_null(cost))
		return;
	if (json_get_bool(usage, "is_byok", false))
		dollars += json_number_value(json_object_get(details, "upstream_inference_cost"));
	if (json_is_number(cost) && dollars >= 0 && dollars <= COST_MAX)
		reply->cost_reported = money_from_dollars(dollars);
	else
		reply->usage_absurd = true;
}

/* The cheap part cannot be more than the whole: then the larger number holds, at the full price. */
static void check_cached(struct reply *reply, struct llm_usage *seen)
{
	if (seen->cache_read <= seen->input)
		return;
	seen->input = seen->cache_read;
	seen->cache_read = 0;
	reply->usage_absurd = true;
}

static void take_usage(struct reply *reply, const json_t *usage)
{
	const json_t *input = json_object_get(usage, "prompt_tokens_details");
	const json_t *output = json_object_get(usage, "completion_tokens_details");
	struct llm_usage seen = {0};
	bool whole;

	if (!json_is_object(usage))
		return;
	reply->usage_absurd = false;
	whole = reply_count(reply, usage, "prompt_tokens", &seen.input);
	whole = reply_count(reply, usage, "completion_tokens", &seen.output) && whole;
	reply_count(reply, input, "cached_tokens", &seen.cache_read);
	reply_count(reply, input, "cache_write_tokens", &seen.cache_write);
	reply_count(reply, output, "reasoning_tokens", &seen.reasoning);
	check_cached(reply, &seen);
	reply->usage_seen = whole && !reply->usage_absurd;
	take_cost(reply, usage);
	seen.cache_write = int64_min(seen.cache_write, seen.input - seen.cache_read);
	seen.reasoning = int64_min(seen.reasoning, seen.output);
	reply->usage = seen;
}

/* A string, or the text parts of a list, as some servers answer. */
static bool take_content(struct reply *reply, const json_t *content, struct rlmd_error *err)
{
	const json_t *part;
	size_t i;

	json_array_foreach (content, i, part)
		if (text_equal(json_get_text(part, "type"), "text") &&
		    !reply_add_text(reply, json_get_text(part, "text"), err))
			return false;
	return reply_add_text(reply, json_text(content), err);
}

/* Some models call tools though none were offered. */
static void pass_tool_calls(struct reply *reply, const json_t *calls)
{
	const json_t *call;
	size_t i;

	json_array_foreach (calls, i, call)
		reply_pass(reply, json_get_text(json_object_get(call, "function"), "arguments"));
}

/* `message` is a whole one or a delta; both have the same members. */
static bool take_message(struct reply *reply, const json_t *message, struct rlmd_error *err)
{
	struct rlmd_text thinking = json_get_text(message, "reasoning_content");
	struct rlmd_text refusal = json_get_text(message, "refusal");

	if (!thinking.size)
		thinking = json_get_text(message, "reasoning");
	if (refusal.size)
		reply_refuse(reply, refusal);
	pass_tool_calls(reply, json_object_get(message, "tool_calls"));
	return take_content(reply, json_object_get(message, "content"), err) &&
	       reply_add_thinking(reply, thinking, err);
}

static void take_finish(struct reply *reply, struct rlmd_text reason)
{
	if (!reason.size)
		return;
	reply->complete = true;
	if (text_equal(reason, "length"))
		reply->finish = LLM_FINISH_LENGTH;
	else if (text_equal(reason, "content_filter"))
		reply_refuse(reply, *reply->refusal ? text_of("") : reason);
}

static bool take_body(struct reply *reply, const json_t *body, const char *member,
		      struct rlmd_error *err)
{
	const json_t *choice = json_array_get(json_object_get(body, "choices"), 0);

	reply_model(reply, body);
	take_usage(reply, json_object_get(body, "usage"));
	if (!take_message(reply, json_object_get(choice, member), err))
		return false;
	take_finish(reply, json_get_text(choice, "finish_reason"));
	return true;
}

static bool has_error(const json_t *object)
{
	const json_t *error = json_object_get(object, "error");

	return error && !json_is_null(error);
}

static bool is_error(const json_t *body)
{
	return has_error(body) || text_equal(json_get_text(body, "object"), "error") ||
	       has_error(json_array_get(json_object_get(body, "choices"), 0));
}

static bool event(struct reply *reply, struct rlmd_text name, struct rlmd_text data,
		  struct rlmd_error *err)
{
	json_auto_t *body = NULL;

	(void)name;
	if (reply->finished || !data.size)
		return true;
	if (text_equal(data, "[DONE]")) {
		reply->finished = reply->complete = true;
		return true;
	}
	body = reply_json(data, err);
	if (!body)
		return false;
	if (is_error(body))
		return reply_error(data, err);
	return take_body(reply, body, "delta", err);
}

static bool whole(struct reply *reply, struct rlmd_text data, struct rlmd_error *err)
{
	json_auto_t *body = reply_json(data, err);
	const json_t *choices = json_object_get(body, "choices");

	if (!body)
		return false;
	if (is_error(body))
		return reply_error(data, err);
	if (!json_is_object(json_object_get(json_array_get(choices, 0), "message")))
		return error_set(err, RLMD_ERROR_BAD_REPLY, "the answer has no message");
	reply->finished = reply->complete = true;
	return take_body(reply, body, "message", err);
}

const struct adapter adapter_openai = {
	.name = "openai",
	.default_model = "gpt-5.4",
	.default_base_url = "https://api.openai.com/v1",
	.base_url_env = (const char *const[]){"OPENAI_BASE_URL", NULL},
	.key_env = (const char *const[]){"OPENAI_API_KEY", NULL},
	.key_required = true,
	.spoken_by_others = true,
	.path = "/chat/completions",
	.probe_path = "/models",
	.key_header = "Authorization: Bearer %s",
	.framing = FRAMING_SSE,
	.base_url = adapter_base_url,
	.encode = encode,
	.event = event,
	.whole = whole,
};

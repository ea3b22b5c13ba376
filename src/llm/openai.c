/*
 * OpenAI's Chat Completions, and what the many servers that speak it too make
 * of it: vLLM, llama.cpp, LM Studio, OpenRouter, LiteLLM, DeepSeek, Gemini.
 */
#include <inttypes.h>

#include "base/money.h"
#include "base/number.h"
#include "llm/adapter.h"

/* The members that are read of an answer. */
enum {
	MODEL,
	OBJECT,
	ERROR,
	USAGE,
	PROMPT_TOKENS,
	COMPLETION_TOKENS,
	PROMPT_DETAILS,
	CACHED_TOKENS,
	CACHE_WRITE_TOKENS,
	CACHE_HIT_TOKENS,
	COMPLETION_DETAILS,
	REASONING_TOKENS,
	COST,
	IS_BYOK,
	COST_DETAILS,
	UPSTREAM_COST,
	CHOICES,
	CHOICE_ERROR,
	FINISH_REASON,
	MESSAGE, /* or a delta: both have the same members */
	CONTENT,
	REASONING_CONTENT,
	REASONING,
	REFUSAL,
	TOOL_CALLS,
	X_GROQ,
	OBFUSCATION, /* noise, so that nobody sees how long a text is */
	VIEWS,
};

static const struct json_scan_field message_fields[] = {
	{"content", CONTENT},       {"reasoning_content", REASONING_CONTENT},
	{"reasoning", REASONING},   {"refusal", REFUSAL},
	{"tool_calls", TOOL_CALLS}, {0},
};
static const struct json_scan_field delta_choice_fields[] = {
	{"delta", MESSAGE, .inside = message_fields},
	{"finish_reason", FINISH_REASON},
	{"error", CHOICE_ERROR},
	{0},
};
static const struct json_scan_field whole_choice_fields[] = {
	{"message", MESSAGE, .inside = message_fields},
	{"finish_reason", FINISH_REASON},
	{"error", CHOICE_ERROR},
	{0},
};
static const struct json_scan_field usage_fields[] = {
	{"prompt_tokens", PROMPT_TOKENS},
	{"completion_tokens", COMPLETION_TOKENS},
	{"prompt_tokens_details", PROMPT_DETAILS,
	 .inside = (const struct json_scan_field[]){{"cached_tokens", CACHED_TOKENS},
						    {"cache_write_tokens", CACHE_WRITE_TOKENS},
						    {0}}},
	{"completion_tokens_details", COMPLETION_DETAILS,
	 .inside = (const struct json_scan_field[]){{"reasoning_tokens", REASONING_TOKENS}, {0}}},
	{"prompt_cache_hit_tokens", CACHE_HIT_TOKENS}, /* DeepSeek */
	{"cost", COST},
	{"is_byok", IS_BYOK},
	{"cost_details", COST_DETAILS,
	 .inside = (const struct json_scan_field[]){{"upstream_inference_cost", UPSTREAM_COST},
						    {0}}},
	{0},
};

/* The last event of a stream of Groq's. */
static const struct json_scan_field groq_fields[] = {{"usage", USAGE, .inside = usage_fields}, {0}};

#define BODY_FIELDS(choice_fields)                                                                 \
	{                                                                                          \
		{"choices", CHOICES, .first = choice_fields}, {"model", MODEL},                    \
			{"usage", USAGE, .inside = usage_fields},                                  \
			{"x_groq", X_GROQ, .inside = groq_fields}, {"object", OBJECT},             \
			{"error", ERROR}, {"obfuscation", OBFUSCATION}, {0},                       \
	}
static const struct json_scan_field event_fields[] = BODY_FIELDS(delta_choice_fields);
static const struct json_scan_field whole_fields[] = BODY_FIELDS(whole_choice_fields);

#define COST_MAX 10000.0 /* dollars for one call that anybody would ask */

static void encode(const struct llm_request *request, unsigned quirks, bool stream,
		   struct body *out)
{
	bool old = (quirks & QUIRK_OLD_MAX_TOKENS) && !(quirks & QUIRK_NEW_MAX_TOKENS);

	body_add(out, "{");
	adapter_put_model(&adapter_openai, request, out);
	body_add(out, ",");
	adapter_put_messages(request, quirks, out);
	body_printf(out, ",\"%s\":%" PRId64, old ? "max_tokens" : "max_completion_tokens",
		    request->max_tokens);
	adapter_put_sampling(request, quirks, "stop", out);
	adapter_put_schema(request, quirks,
			   ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
			   "{\"name\":\"answer\",\"schema\":",
			   "}}", out);
	body_printf(out, ",\"stream\":%s", stream ? "true" : "false");
	if (stream && !(quirks & QUIRK_NO_STREAM_OPTIONS))
		body_add(out, ",\"stream_options\":{\"include_usage\":true}");
	body_add(out, "}");
}

static double number_at(const struct json_view *view)
{
	double number = 0;

	json_view_number(view, &number);
	return number;
}

static bool is_there(const struct json_view *view)
{
	return view->kind != JSON_VIEW_NONE && view->kind != JSON_VIEW_NULL;
}

/* OpenRouter's "cost" is only its own fee where the customer brought a key of the back end. */
static void take_cost(struct reply *reply, const struct json_view *views)
{
	double dollars = -1;

	reply->cost_reported = -1;
	if (!is_there(&views[COST]))
		return;
	if (json_view_number(&views[COST], &dollars) && json_view_is_true(&views[IS_BYOK]))
		dollars += number_at(&views[UPSTREAM_COST]);
	if (dollars >= 0 && dollars <= COST_MAX)
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

static void take_usage(struct reply *reply, const struct json_view *views)
{
	struct llm_usage seen = {0};
	bool whole;

	if (views[USAGE].kind != JSON_VIEW_OBJECT)
		return;
	reply->usage_absurd = false;
	whole = reply_count(reply, &views[PROMPT_TOKENS], &seen.input);
	whole = reply_count(reply, &views[COMPLETION_TOKENS], &seen.output) && whole;
	reply_count(reply,
		    &views[is_there(&views[CACHED_TOKENS]) ? CACHED_TOKENS : CACHE_HIT_TOKENS],
		    &seen.cache_read);
	reply_count(reply, &views[CACHE_WRITE_TOKENS], &seen.cache_write);
	reply_count(reply, &views[REASONING_TOKENS], &seen.reasoning);
	check_cached(reply, &seen);
	reply->usage_seen = whole && !reply->usage_absurd;
	take_cost(reply, views);
	seen.cache_write = int64_min(seen.cache_write, seen.input - seen.cache_read);
	seen.reasoning = int64_min(seen.reasoning, seen.output);
	reply->usage = seen;
}

enum { PART_TYPE, PART_TEXT, PART_VIEWS };

static bool take_part(struct reply *reply, const struct json_view *views, struct rlmd_error *err)
{
	return !json_view_equal(&views[PART_TYPE], "text") ||
	       reply_take_text(reply, &views[PART_TEXT], err);
}

/* A string, or the text parts of a list, as some servers answer. */
static bool take_content(struct reply *reply, const struct json_view *content,
			 struct rlmd_error *err)
{
	static const struct json_scan_field fields[] = {
		{"type", PART_TYPE}, {"text", PART_TEXT}, {0}};
	struct json_view views[PART_VIEWS];

	return reply_scan_each(reply, content, fields, views, PART_VIEWS, take_part, err) &&
	       reply_take_text(reply, content, err);
}

static const struct json_view *thinking_of(const struct json_view *views)
{
	return &views[json_view_has_text(&views[REASONING_CONTENT]) ? REASONING_CONTENT
								    : REASONING];
}

static bool take_message(struct reply *reply, const struct json_view *views, struct rlmd_error *err)
{
	if (json_view_has_text(&views[REFUSAL]))
		reply_refuse(reply, &views[REFUSAL]);
	return take_content(reply, &views[CONTENT], err) &&
	       reply_take_calls(reply, &views[TOOL_CALLS], err) &&
	       reply_take_thinking(reply, thinking_of(views), err);
}

static void take_finish(struct reply *reply, const struct json_view *reason)
{
	static const struct json_view nothing;

	if (!json_view_has_text(reason))
		return;
	reply->complete = true;
	if (json_view_equal(reason, "length"))
		reply->finish = LLM_FINISH_LENGTH;
	else if (json_view_equal(reason, "content_filter"))
		reply_refuse(reply, *reply->refusal ? &nothing : reason);
}

static bool take_body(struct reply *reply, const struct json_view *views, struct rlmd_error *err)
{
	reply_take_model(reply, &views[MODEL]);
	take_usage(reply, views);
	if (!take_message(reply, views, err))
		return false;
	take_finish(reply, &views[FINISH_REASON]);
	return true;
}

static bool is_error(const struct json_view *views)
{
	return is_there(&views[ERROR]) || is_there(&views[CHOICE_ERROR]) ||
	       json_view_equal(&views[OBJECT], "error");
}

/* Whether an event gave no more than a piece of text or of thinking. */
static bool gave_no_more(const struct json_view *views)
{
	return !json_view_has_text(&views[REFUSAL]) && !json_view_has_text(&views[FINISH_REASON]) &&
	       views[TOOL_CALLS].kind != JSON_VIEW_ARRAY && views[USAGE].kind != JSON_VIEW_OBJECT &&
	       !(json_view_has_text(&views[REASONING_CONTENT]) &&
		 json_view_has_text(&views[REASONING]));
}

static bool event(struct reply *reply, const struct adapter_event *event, struct rlmd_error *err)
{
	struct rlmd_text data = event->data;
	struct json_view views[VIEWS];

	if (reply->finished || !data.size)
		return true;
	if (text_equal(data, "[DONE]")) {
		reply->finished = reply->complete = true;
		return true;
	}
	if (!reply_scan(reply, data, event_fields, views, VIEWS, err))
		return false;
	if (is_error(views))
		return reply_error(data, err);
	reply_expect(reply, event->bytes, gave_no_more(views), &views[CONTENT], thinking_of(views),
		     &views[OBFUSCATION]);
	return take_body(reply, views, err);
}

static bool whole(struct reply *reply, struct rlmd_text data, struct rlmd_error *err)
{
	struct json_view views[VIEWS];

	if (!reply_scan(reply, data, whole_fields, views, VIEWS, err))
		return false;
	if (is_error(views))
		return reply_error(data, err);
	if (views[MESSAGE].kind != JSON_VIEW_OBJECT)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "the answer has no message");
	reply->finished = reply->complete = true;
	return take_body(reply, views, err);
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

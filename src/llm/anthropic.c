/*
 * Anthropic's Messages. Its input_tokens leave out what went through the
 * cache, unlike everybody else's.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "llm/adapter.h"

#define CACHE_CONTROL "\"cache_control\":{\"type\":\"ephemeral\"}"

/* Writing to the cache costs more than not; only a conversation that goes on earns it back. */
static bool cached(const struct llm_request *request, unsigned quirks)
{
	return (request->kind == LLM_TURN || request->kind == LLM_FORCED) &&
	       !(quirks & QUIRK_NO_CACHE_CONTROL);
}

/* A breakpoint of its own, because sibling runs share the system prompt and nothing after it. */
static void put_system(struct rlmd_text text, bool cache, struct body *out)
{
	body_add(out, ",\"system\":[{\"type\":\"text\",\"text\":");
	body_quote(out, text);
	body_printf(out, "%s}]", cache ? "," CACHE_CONTROL : "");
}

/* The API wants a user to speak first, and refuses texts that are nothing but space. */
static void put_messages(const struct llm_message *messages, size_t count, struct body *out)
{
	body_add(out, ",\"messages\":[");
	for (size_t i = 0; i < count; i++) {
		bool assistant = i && messages[i].role == LLM_ASSISTANT;
		struct rlmd_text text = messages[i].text;

		if (!text_trim(text).size)
			text = text_of("(empty)");
		if (i)
			body_add(out, ",");
		adapter_put_message(assistant ? "assistant" : "user", text, out);
	}
	body_add(out, "]");
}

static void encode(const struct llm_request *request, unsigned quirks, bool stream,
		   struct body *out)
{
	const struct llm_message *messages = request->messages;
	size_t count = request->message_count;
	bool cache = cached(request, quirks);

	body_add(out, "{");
	adapter_put_model(&adapter_anthropic, request, out);
	if (count > 1 && messages->role == LLM_SYSTEM) {
		if (text_trim(messages->text).size)
			put_system(messages->text, cache, out);
		messages++;
		count--;
	}
	put_messages(messages, count, out);
	body_printf(out, ",\"max_tokens\":%" PRId64, request->max_tokens);
	adapter_put_sampling(request, quirks, "stop_sequences", out);
	adapter_put_schema(
		request, quirks,
		",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":", "}}", out);
	body_printf(out, ",\"stream\":%s%s}", stream ? "true" : "false",
		    cache ? "," CACHE_CONTROL : "");
}

/* The members that are read of an answer: of an event, of the message in the first event, or of a
 * whole answer. */
enum {
	TYPE,
	MESSAGE,
	MODEL,
	CONTENT,
	BLOCK, /* or a delta: "text" and "thinking" are named alike in both */
	TEXT,
	THINKING,
	STOP_REASON,
	STOP_DETAILS,
	EXPLANATION,
	CATEGORY,
	USAGE,
	INPUT_TOKENS,
	CACHE_READ,
	CACHE_CREATION,
	CACHE_SPLIT,
	CACHE_HOUR,
	OUTPUT_TOKENS,
	OUTPUT_DETAILS,
	THINKING_TOKENS,
	VIEWS,
};

static const struct json_scan_field usage_fields[] = {
	{"input_tokens", INPUT_TOKENS},
	{"cache_read_input_tokens", CACHE_READ},
	{"cache_creation_input_tokens", CACHE_CREATION},
	{"cache_creation", CACHE_SPLIT,
	 .inside = (const struct json_scan_field[]){{"ephemeral_1h_input_tokens", CACHE_HOUR},
						    {0}}},
	{"output_tokens", OUTPUT_TOKENS},
	{"output_tokens_details", OUTPUT_DETAILS,
	 .inside = (const struct json_scan_field[]){{"thinking_tokens", THINKING_TOKENS}, {0}}},
	{0},
};
static const struct json_scan_field stop_fields[] = {
	{"explanation", EXPLANATION}, {"category", CATEGORY}, {0}};
static const struct json_scan_field block_fields[] = {{"text", TEXT}, {"thinking", THINKING}, {0}};

static const struct json_scan_field whole_fields[] = {
	{"type", TYPE},
	{"model", MODEL},
	{"content", CONTENT},
	{"stop_reason", STOP_REASON},
	{"stop_details", STOP_DETAILS, .inside = stop_fields},
	{"usage", USAGE, .inside = usage_fields},
	{0},
};

/* Each kind of event has a table of its own, for the same names stand in several places. */
static const struct json_scan_field start_fields[] = {
	{"message", MESSAGE,
	 .inside = (const struct json_scan_field[]){{"model", MODEL},
						    {"usage", USAGE, .inside = usage_fields},
						    {0}}},
	{0},
};
static const struct json_scan_field block_start_fields[] = {
	{"content_block", BLOCK, .inside = block_fields}, {0}};
static const struct json_scan_field block_delta_fields[] = {
	{"type", TYPE}, {"delta", BLOCK, .inside = block_fields}, {0}};
static const struct json_scan_field delta_fields[] = {
	{"delta", BLOCK,
	 .inside = (const struct json_scan_field[]){{"stop_reason", STOP_REASON},
						    {"stop_details", STOP_DETAILS,
						     .inside = stop_fields},
						    {0}}},
	{"usage", USAGE, .inside = usage_fields},
	{0},
};

static void take_input(struct reply *reply, const struct json_view *views)
{
	int64_t fresh, read, written, hour;

	reply_count(reply, &views[INPUT_TOKENS], &fresh);
	reply_count(reply, &views[CACHE_READ], &read);
	reply_count(reply, &views[CACHE_CREATION], &written);
	reply_count(reply, &views[CACHE_HOUR], &hour);
	if (hour > written)
		hour = written;
	reply->usage.input = fresh + read + written;
	reply->usage.cache_read = read;
	reply->usage.cache_write = written - hour;
	reply->usage.cache_write_1h = hour;
}

static bool take_output(struct reply *reply, const struct json_view *views)
{
	int64_t output, thinking;
	bool seen = reply_count(reply, &views[OUTPUT_TOKENS], &output);

	reply_count(reply, &views[THINKING_TOKENS], &thinking);
	reply->usage.output = output;
	reply->usage.reasoning = thinking < output ? thinking : output;
	return seen;
}

/* The counts are cumulative: the last word on each of them holds. */
static void take_usage(struct reply *reply, const struct json_view *views)
{
	if (views[USAGE].kind != JSON_VIEW_OBJECT)
		return;
	if (views[INPUT_TOKENS].kind != JSON_VIEW_NONE) {
		reply->usage_absurd = false;
		take_input(reply, views);
	}
	reply->usage_seen = take_output(reply, views) && reply->usage.input > 0 &&
			    !reply->usage_absurd;
}

static void take_stop(struct reply *reply, const struct json_view *views)
{
	const struct json_view *reason = &views[STOP_REASON], *why = &views[EXPLANATION];

	if (!json_view_has_text(reason))
		return;
	reply->complete = true;
	if (json_view_equal(reason, "max_tokens") ||
	    json_view_equal(reason, "model_context_window_exceeded"))
		reply->finish = LLM_FINISH_LENGTH;
	else if (json_view_equal(reason, "refusal"))
		reply_refuse(reply, json_view_has_text(why) ? why : &views[CATEGORY]);
}

static bool take_block(struct reply *reply, const struct json_view *views, struct rlmd_error *err)
{
	return reply_take_text(reply, &views[TEXT], err) &&
	       reply_take_thinking(reply, &views[THINKING], err);
}

static void take_start(struct reply *reply, const struct json_view *views)
{
	reply_take_model(reply, &views[MODEL]);
	take_usage(reply, views);
	/* Of the output it counts only what is there already. */
	reply->usage.output = reply->usage.reasoning = 0;
	reply->usage_seen = false;
}

/* An event that is no delta of a block, of which there are few. */
static bool take_other(struct reply *reply, const struct json_view *type, struct rlmd_text data,
		       struct rlmd_error *err)
{
	struct json_view views[VIEWS];

	if (json_view_equal(type, "message_start")) {
		reply_scan(reply, data, start_fields, views, VIEWS, NULL);
		take_start(reply, views);
	} else if (json_view_equal(type, "content_block_start")) {
		reply_scan(reply, data, block_start_fields, views, VIEWS, NULL);
		return take_block(reply, views, err);
	} else if (json_view_equal(type, "message_delta")) {
		reply_scan(reply, data, delta_fields, views, VIEWS, NULL);
		take_stop(reply, views);
		take_usage(reply, views);
	} else if (json_view_equal(type, "message_stop")) {
		reply->finished = reply->complete = true;
	}
	return true;
}

static bool event(struct reply *reply, const struct adapter_event *event, struct rlmd_error *err)
{
	static const struct json_view nothing;
	struct rlmd_text data = event->data; /* which say the event's name, too */
	struct json_view views[VIEWS];
	bool ok;

	if (reply->finished || !data.size)
		return true;
	if (!reply_scan(reply, data, block_delta_fields, views, VIEWS, err))
		return false;
	ok = json_view_equal(&views[TYPE], "content_block_delta");
	reply_expect(reply, event->bytes, ok, &views[TEXT], &views[THINKING], &nothing);
	if (ok)
		return take_block(reply, views, err);
	if (json_view_equal(&views[TYPE], "error"))
		return reply_error(data, err);
	return take_other(reply, &views[TYPE], data, err);
}

static bool whole(struct reply *reply, struct rlmd_text data, struct rlmd_error *err)
{
	struct json_view views[VIEWS], block[VIEWS];

	if (!reply_scan(reply, data, whole_fields, views, VIEWS, err))
		return false;
	if (json_view_equal(&views[TYPE], "error"))
		return reply_error(data, err);
	if (views[CONTENT].kind != JSON_VIEW_ARRAY)
		return error_set(err, RLMD_ERROR_BAD_REPLY, "the answer has no content");
	reply_take_model(reply, &views[MODEL]);
	take_stop(reply, views);
	take_usage(reply, views);
	if (!reply_scan_each(reply, &views[CONTENT], block_fields, block, VIEWS, take_block, err))
		return false;
	reply->finished = reply->complete = true;
	return true;
}

/* Both "https://host" and "https://host/v1" are written in the wild. */
static char *base_url(const char *given, struct rlmd_error *err)
{
	char *url = adapter_base_url(given, err);
	size_t size = url ? strlen(url) : 0;

	if (size > 3 && !strcmp(url + size - 3, "/v1"))
		url[size - 3] = '\0';
	return url;
}

const struct adapter adapter_anthropic = {
	.name = "anthropic",
	.default_model = "claude-sonnet-5",
	.default_base_url = "https://api.anthropic.com",
	.base_url_env = (const char *const[]){"ANTHROPIC_BASE_URL", NULL},
	.key_env = (const char *const[]){"ANTHROPIC_API_KEY", NULL},
	.key_required = true,
	.path = "/v1/messages",
	.probe_path = "/v1/models",
	.key_header = "x-api-key: %s",
	.headers = (const char *const[]){"anthropic-version: 2023-06-01", NULL},
	.framing = FRAMING_SSE,
	.base_url = base_url,
	.encode = encode,
	.event = event,
	.whole = whole,
};

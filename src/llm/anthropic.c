/*
 * Anthropic's Messages. Its input_tokens leave out what went through the
 * cache, unlike everybody else's.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/json_quote.h"
#include "llm/adapter.h"

#define CACHE_CONTROL "\"cache_control\":{\"type\":\"ephemeral\"}"

/* Writing to the cache costs more than not; only a conversation that goes on earns it back. */
static bool cached(const struct llm_request *request, unsigned quirks)
{
	return (request->kind == LLM_TURN || request->kind == LLM_FORCED) &&
	       !(quirks & QUIRK_NO_CACHE_CONTROL);
}

/* A breakpoint of its own, because sibling runs share the system prompt and nothing after it. */
static void put_system(struct rlmd_text text, bool cache, struct evbuffer *out)
{
	evbuffer_add_printf(out, ",\"system\":[{\"type\":\"text\",\"text\":");
	json_quote(text, out);
	evbuffer_add_printf(out, "%s}]", cache ? "," CACHE_CONTROL : "");
}

/* The API wants a user to speak first, and refuses texts that are nothing but space. */
static void put_messages(const struct llm_message *messages, size_t count, struct evbuffer *out)
{
	evbuffer_add_printf(out, ",\"messages\":[");
	for (size_t i = 0; i < count; i++) {
		bool assistant = i && messages[i].role == LLM_ASSISTANT;
		struct rlmd_text text = messages[i].text;

		if (!text_trim(text).size)
			text = text_of("(empty)");
		if (i)
			evbuffer_add(out, ",", 1);
		adapter_put_message(assistant ? "assistant" : "user", text, out);
	}
	evbuffer_add(out, "]", 1);
}

static void encode(const struct llm_request *request, unsigned quirks, bool stream,
		   struct evbuffer *out)
{
	const struct llm_message *messages = request->messages;
	size_t count = request->message_count;
	bool cache = cached(request, quirks);

	evbuffer_add(out, "{", 1);
	adapter_put_model(&adapter_anthropic, request, out);
	if (count > 1 && messages->role == LLM_SYSTEM) {
		if (text_trim(messages->text).size)
			put_system(messages->text, cache, out);
		messages++;
		count--;
	}
	put_messages(messages, count, out);
	evbuffer_add_printf(out, ",\"max_tokens\":%" PRId64, request->max_tokens);
	adapter_put_sampling(request, quirks, "stop_sequences", out);
	evbuffer_add_printf(out, ",\"stream\":%s%s}", stream ? "true" : "false",
			    cache ? "," CACHE_CONTROL : "");
}

static void take_input(struct reply *reply, const json_t *usage)
{
	const json_t *split = json_object_get(usage, "cache_creation");
	int64_t fresh, read, written, hour;

	reply_count(reply, usage, "input_tokens", &fresh);
	reply_count(reply, usage, "cache_read_input_tokens", &read);
	reply_count(reply, usage, "cache_creation_input_tokens", &written);
	reply_count(reply, split, "ephemeral_1h_input_tokens", &hour);
	if (hour > written)
		hour = written;
	reply->usage.input = fresh + read + written;
	reply->usage.cache_read = read;
	reply->usage.cache_write = written - hour;
	reply->usage.cache_write_1h = hour;
}

static bool take_output(struct reply *reply, const json_t *usage)
{
	const json_t *details = json_object_get(usage, "output_tokens_details");
	int64_t output, thinking;
	bool seen = reply_count(reply, usage, "output_tokens", &output);

	reply_count(reply, details, "thinking_tokens", &thinking);
	reply->usage.output = output;
	reply->usage.reasoning = thinking < output ? thinking : output;
	return seen;
}

/* The counts are cumulative: the last word on each of them holds. */
static void take_usage(struct reply *reply, const json_t *usage)
{
	if (!json_is_object(usage))
		return;
	if (json_object_get(usage, "input_tokens")) {
		reply->usage_absurd = false;
		take_input(reply, usage);
	}
	reply->usage_seen = take_output(reply, usage) && reply->usage.input > 0 &&
			    !reply->usage_absurd;
}

static void take_stop(struct reply *reply, const json_t *object)
{
	struct rlmd_text reason = json_get_text(object, "stop_reason");
	const json_t *details = json_object_get(object, "stop_details");
	struct rlmd_text why = json_get_text(details, "explanation");

	if (!reason.size)
		return;
	reply->complete = true;
	if (text_equal(reason, "max_tokens") || text_equal(reason, "model_context_window_exceeded"))
		reply->finish = LLM_FINISH_LENGTH;
	else if (text_equal(reason, "refusal"))
		reply_refuse(reply, why.size ? why : json_get_text(details, "category"));
}

/* A content block or a delta: "text" and "thinking" are named alike in both. */
static bool take_block(struct reply *reply, const json_t *block, struct rlmd_error *err)
{
	return reply_add_text(reply, json_get_text(block, "text"), err) &&
	       reply_add_thinking(reply, json_get_text(block, "thinking"), err);
}

static bool take_event(struct reply *reply, const json_t *body, struct rlmd_error *err)
{
	struct rlmd_text type = json_get_text(body, "type");
	const json_t *message = json_object_get(body, "message");

	if (text_equal(type, "message_start")) {
		reply_model(reply, message);
		take_usage(reply, json_object_get(message, "usage"));
		/* Of the output it counts only what is there already. */
		reply->usage.output = reply->usage.reasoning = 0;
		reply->usage_seen = false;
	} else if (text_equal(type, "content_block_start")) {
		return take_block(reply, json_object_get(body, "content_block"), err);
	} else if (text_equal(type, "content_block_delta")) {
		return take_block(reply, json_object_get(body, "delta"), err);
	} else if (text_equal(type, "message_delta")) {
		take_stop(reply, json_object_get(body, "delta"));
		take_usage(reply, json_object_get(body, "usage"));
	} else if (text_equal(type, "message_stop")) {
		reply->finished = reply->complete = true;
	}
	return true;
}

static bool event(struct reply *reply, struct rlmd_text name, struct rlmd_text data,
		  struct rlmd_error *err)
{
	json_auto_t *body = NULL;

	(void)name; /* the data say it too */
	if (reply->finished || !data.size)
		return true;
	body = reply_json(data, err);
	if (!body)
		return false;
	if (text_equal(json_get_text(body, "type"), "error"))
		return reply_error(data, err);
	return take_event(reply, body, err);
}

static bool whole(struct reply *reply, struct rlmd_text data, struct rlmd_error *err)
{
	json_auto_t *body = reply_json(data, err);
	const json_t *content = json_object_get(body, "content");
	const json_t *block;
	size_t i;

	if (!body)
		return false;
	if (text_equal(json_get_text(body, "type"), "error"))
		return reply_error(data, err);
	if (!json_is_array(content))
		return error_set(err, RLMD_ERROR_BAD_REPLY, "the answer has no content");
	reply_model(reply, body);
	take_stop(reply, body);
	take_usage(reply, json_object_get(body, "usage"));
	json_array_foreach (content, i, block)
		if (!take_block(reply, block, err))
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

/*
 * Ollama's own /api/chat. Its OpenAI-compatible path would do but for one
 * thing: there the window cannot be set, and a prompt longer than a default of
 * 4096 tokens is cut in silence.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "llm/adapter.h"

enum {
	WINDOW_MIN = 4096,
	WINDOW_MAX = 131072,
	MESSAGE_TOKENS = 8, /* what a template puts around each message */
};

/* In powers of two, because the server loads the model anew when the size changes. */
static int64_t window_for(const struct llm_request *request)
{
	int64_t tokens = 0, window = WINDOW_MIN;

	for (size_t i = 0; i < request->message_count; i++)
		tokens += adapter_message_tokens(&request->messages[i]) + MESSAGE_TOKENS;
	tokens = tokens * 13 / 10;
	while (window < WINDOW_MAX && window - request->max_tokens < tokens)
		window *= 2;
	return window;
}

static void encode(const struct llm_request *request, unsigned quirks, bool stream,
		   struct body *out)
{
	body_add(out, "{");
	adapter_put_model(&adapter_ollama, request, out);
	body_add(out, ",");
	adapter_put_messages(request, quirks, out);
	body_printf(out, ",\"stream\":%s,\"truncate\":false,\"shift\":false",
		    stream ? "true" : "false");
	adapter_put_schema(request, quirks, ",\"format\":", "", out);
	body_printf(out, ",\"options\":{\"num_ctx\":%" PRId64 ",\"num_predict\":%" PRId64,
		    window_for(request), request->max_tokens);
	adapter_put_sampling(request, quirks, "stop", out);
	body_add(out, "}}");
}

/* The members that are read of a line, or of a whole answer, which is one. */
enum {
	MODEL,
	CREATED_AT,
	ERROR,
	MESSAGE,
	CONTENT,
	THINKING,
	TOOL_CALLS,
	DONE,
	DONE_REASON,
	PROMPT_EVAL_COUNT,
	EVAL_COUNT,
	VIEWS,
};

static const struct json_scan_field message_fields[] = {
	{"content", CONTENT}, {"thinking", THINKING}, {"tool_calls", TOOL_CALLS}, {0}};
static const struct json_scan_field line_fields[] = {
	{"model", MODEL},
	{"created_at", CREATED_AT},
	{"message", MESSAGE, .inside = message_fields},
	{"done", DONE},
	{"error", ERROR},
	{"done_reason", DONE_REASON},
	{"prompt_eval_count", PROMPT_EVAL_COUNT},
	{"eval_count", EVAL_COUNT},
	{0},
};

static void take_end(struct reply *reply, const struct json_view *views)
{
	struct llm_usage *usage = &reply->usage;
	bool input, output;

	reply->finished = reply->complete = true;
	if (json_view_equal(&views[DONE_REASON], "length"))
		reply->finish = LLM_FINISH_LENGTH;
	/* Older servers leave the prompt out when all of it was cached. */
	input = reply_count(reply, &views[PROMPT_EVAL_COUNT], &usage->input);
	output = reply_count(reply, &views[EVAL_COUNT], &usage->output);
	reply->usage_seen = input && output;
}

static bool event(struct reply *reply, const struct adapter_event *event, struct rlmd_error *err)
{
	struct json_view views[VIEWS];

	if (reply->finished)
		return true;
	if (!reply_scan(reply, event->data, line_fields, views, VIEWS, err))
		return false;
	if (views[ERROR].kind != JSON_VIEW_NONE)
		return reply_error(event->data, err);
	reply_expect(reply, event->bytes,
		     !json_view_is_true(&views[DONE]) && views[TOOL_CALLS].kind != JSON_VIEW_ARRAY,
		     &views[CONTENT], &views[THINKING], &views[CREATED_AT]);
	if (!reply_take_text(reply, &views[CONTENT], err) ||
	    !reply_take_calls(reply, &views[TOOL_CALLS], err) ||
	    !reply_take_thinking(reply, &views[THINKING], err))
		return false;
	reply_take_model(reply, &views[MODEL]);
	if (json_view_is_true(&views[DONE]))
		take_end(reply, views);
	return true;
}

static bool whole(struct reply *reply, struct rlmd_text data, struct rlmd_error *err)
{
	if (!event(reply, &(struct adapter_event){.data = data}, err))
		return false;
	return reply->finished || error_set(err, RLMD_ERROR_BAD_REPLY, "the answer is not done");
}

/* OLLAMA_HOST as the server itself reads it: everything may be missing but the host's address. */
struct host {
	const char *scheme;
	struct rlmd_text name, port;
	const char *default_port;
};

static void split_port(struct rlmd_text authority, struct host *host)
{
	const char *end = authority.bytes + authority.size;
	const char *colon = memrchr(authority.bytes, ':', authority.size);
	const char *bracket = memrchr(authority.bytes, ']', authority.size);
	bool bare_v6 = colon && !bracket && colon != memchr(authority.bytes, ':', authority.size);

	host->name = authority;
	if (!colon || bare_v6 || (bracket && colon < bracket))
		return;
	host->name.size = (size_t)(colon - authority.bytes);
	host->port = text_from(colon + 1, (size_t)(end - colon - 1));
}

/* A server's "all addresses" is no address for a client. */
static char *client_name(struct rlmd_text name)
{
	auto_free char *plain = NULL;

	if (name.size >= 2 && name.bytes[0] == '[' && name.bytes[name.size - 1] == ']')
		name = text_from(name.bytes + 1, name.size - 2);
	plain = text_copy(name);
	if (!*plain || !strcmp(plain, "0.0.0.0"))
		return xstrdup("127.0.0.1");
	if (!strcmp(plain, "::"))
		return xstrdup("[::1]");
	return xasprintf(strchr(plain, ':') ? "[%s]" : "%s", plain);
}

static bool port_is_valid(const char *port)
{
	size_t size = strspn(port, "0123456789");
	long number = strtol(port, NULL, 10);

	return size && size <= 5 && !port[size] && number > 0 && number <= 65535;
}

static struct rlmd_text split_scheme(struct rlmd_text given, struct host *host)
{
	const char *scheme_end = text_find(given, "://");

	*host = (struct host){.scheme = "http", .default_port = "11434"};
	if (!scheme_end) {
		if (text_equal(given, "ollama.com"))
			*host = (struct host){.scheme = "https", .default_port = "443"};
		return given;
	}
	if (text_starts_caseless(given, "https://"))
		*host = (struct host){.scheme = "https", .default_port = "443"};
	else if (text_starts_caseless(given, "http://"))
		host->default_port = "80";
	else
		host->scheme = NULL;
	return text_from(scheme_end + 3, (size_t)(given.bytes + given.size - scheme_end - 3));
}

static char *base_url(const char *given, struct rlmd_error *err)
{
	struct host host;
	struct rlmd_text rest = split_scheme(text_trim(text_of(given)), &host);
	const char *slash = rest.size ? memchr(rest.bytes, '/', rest.size) : NULL;
	struct rlmd_text path = slash ? text_from(slash, (size_t)(rest.bytes + rest.size - slash))
				      : text_of("");
	struct rlmd_text authority = text_from(rest.bytes, rest.size - path.size);
	auto_free char *name = NULL, *port = NULL, *url = NULL;

	if (!host.scheme)
		return adapter_base_url(given, err); /* which says what is wrong with it */
	if (authority.size && memchr(authority.bytes, '@', authority.size))
		return adapter_base_url("http://@", err);
	split_port(authority, &host);
	name = client_name(host.name);
	port = host.port.size ? text_copy(host.port) : xstrdup(host.default_port);
	if (!port_is_valid(port)) {
		error_set(err, RLMD_ERROR_USAGE, "'%.100s' is no port", port);
		return NULL;
	}
	url = xasprintf("%s://%s:%s%.*s", host.scheme, name, port, (int)path.size, path.bytes);
	return adapter_base_url(url, err);
}

const struct adapter adapter_ollama = {
	.name = "ollama",
	.default_model = "llama3.2",
	.default_base_url = "http://127.0.0.1:11434",
	.base_url_env = (const char *const[]){"OLLAMA_HOST", NULL},
	.key_env = (const char *const[]){"OLLAMA_API_KEY", NULL},
	.local = true,
	.path = "/api/chat",
	.probe_path = "/api/tags",
	.key_header = "Authorization: Bearer %s",
	.framing = FRAMING_NDJSON,
	.base_url = base_url,
	.encode = encode,
	.event = event,
	.whole = whole,
};

#include "trace/otlp.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"

enum { TRACE_ID = 32, SPAN_ID = 16 }; /* hexadecimal digits */
enum { INTERNAL = 1, CLIENT = 3 };    /* kinds of spans */
enum { ERROR = 2 };                   /* of statuses */

/* --- attributes ------------------------------------------------------------------------- */

static void add(json_t *list, const char *key, const char *type, json_t *value)
{
	if (value)
		json_append(list, json_make("{s:s, s:{s:o}}", "key", key, "value", type, value));
}

static void add_text(json_t *list, const char *key, struct rlmd_text text)
{
	if (text.size)
		add(list, key, "stringValue", json_from_text(text));
}

static void add_string(json_t *list, const char *key, const char *text)
{
	if (text)
		add_text(list, key, text_of(text));
}

/* 64 bits are a string, in the JSON of protobuf. */
static void add_integer(json_t *list, const char *key, const json_t *value)
{
	char digits[24];

	if (!json_is_integer(value))
		return;
	snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	add(list, key, "intValue", json_make_string(digits));
}

static void add_number(json_t *list, const char *key, const json_t *value)
{
	if (json_is_number(value))
		add(list, key, "doubleValue", json_make_real(json_number_value(value)));
}

/* A message as the conventions have it, as JSON in a string. */
static void add_message(json_t *list, const char *key, const char *role, struct rlmd_text words)
{
	json_auto_t *message = NULL;
	auto_free char *text = NULL;

	if (!words.size)
		return;
	message = json_make("[{s:s, s:[{s:s, s:o}]}]", "role", role, "parts", "type", "text",
			    "content", json_from_text(words));
	text = json_to_string(message);
	add_string(list, key, text);
}

static char *decoded(const char *from, size_t size)
{
	char *text = xcalloc(size + 1, 1), *to = text, *end;

	for (size_t i = 0; i < size; i++) {
		char digits[3] = {0};

		if (from[i] == '%' && i + 2 < size && isxdigit((unsigned char)from[i + 1]) &&
		    isxdigit((unsigned char)from[i + 2])) {
			memcpy(digits, from + i + 1, 2);
			*to++ = (char)strtol(digits, &end, 16);
			i += 2;
		} else {
			*to++ = from[i];
		}
	}
	return text;
}

bool otlp_take_pair(const char **list, char **ret_name, char **ret_value)
{
	const char *at = *list + strspn(*list, " \t,"), *end = at + strcspn(at, ",");
	const char *equals = memchr(at, '=', (size_t)(end - at)), *tail = end;

	*ret_name = *ret_value = NULL;
	*list = end;
	if (!*at)
		return false;
	if (!equals || equals == at)
		return true;
	while (tail > equals + 1 && strchr(" \t", tail[-1]))
		tail--;
	*ret_name = xstrndup(at, (size_t)(equals - at));
	(*ret_name)[strcspn(*ret_name, " \t")] = '\0';
	equals += strspn(equals + 1, " \t");
	*ret_value = decoded(equals + 1, tail > equals ? (size_t)(tail - equals - 1) : 0);
	return true;
}

static json_t *resource(const struct spans *spans, const struct rlmd_otlp_options *options)
{
	const char *version = strchr(spans->program, ' '), *list = options->resource;
	json_t *attributes = json_make_array();
	char *name, *value;

	add_string(attributes, "service.name", options->service ? options->service : "rlmd");
	add_string(attributes, "service.version", version ? version + 1 : "");
	while (list && otlp_take_pair(&list, &name, &value)) {
		if (name && strcmp(name, "service.name") != 0)
			add_string(attributes, name, value);
		free(name);
		free(value);
	}
	return json_make("{s:o}", "attributes", attributes);
}

/* --- ids -------------------------------------------------------------------------------- */

static void digits_of(const char *text, size_t count, char *ret)
{
	unsigned char digest[DIGEST_BYTES];

	digest_bytes(text_of(text), digest);
	for (size_t i = 0; i < count / 2; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static void id_of(enum span_kind kind, const char *run, size_t number, char ret[SPAN_ID + 1])
{
	auto_free char *text = xasprintf("%s/%d/%zu", run, (int)kind, number);

	digits_of(text, SPAN_ID, ret);
}

static bool is_hex(const char *text, size_t count)
{
	return strspn(text, "0123456789abcdef") >= count && strspn(text, "0") < count;
}

/* 00-TRACE-SPAN-FLAGS */
static bool read_traceparent(const char *text, char trace[TRACE_ID + 1], char span[SPAN_ID + 1])
{
	if (!text || strlen(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
	    !strncmp(text, "ff", 2) || !is_hex(text + 3, TRACE_ID) || !is_hex(text + 36, SPAN_ID))
		return false;
	snprintf(trace, TRACE_ID + 1, "%s", text + 3);
	snprintf(span, SPAN_ID + 1, "%s", text + 36);
	return true;
}

/* The root's id, which has as many digits. */
static void trace_id(const struct spans *spans, char ret[TRACE_ID + 1])
{
	const char *root = spans->count ? spans->items[0].run : "";
	size_t size = 0;

	for (const char *at = root; *at && size < TRACE_ID; at++)
		if (*at != '-')
			ret[size++] = *at;
	ret[size] = '\0';
	if (size < TRACE_ID || !is_hex(ret, TRACE_ID))
		digits_of(root, TRACE_ID, ret);
}

/* --- spans ------------------------------------------------------------------------------ */

static void describe_run(const struct span *span, bool content, json_t *list)
{
	const json_t *usage = json_object_get(span->last, "usage");

	add_string(list, "gen_ai.operation.name", "invoke_agent");
	add_string(list, "gen_ai.agent.name", "rlmd");
	add_string(list, "gen_ai.conversation.id", span->run);
	add_string(list, "gen_ai.request.model", json_get_string(span->event, "model"));
	add_integer(list, "gen_ai.usage.input_tokens", json_object_get(usage, "inputTokens"));
	add_integer(list, "gen_ai.usage.output_tokens", json_object_get(usage, "outputTokens"));
	add_number(list, "rlmd.cost_usd", json_object_get(usage, "cost"));
	add_integer(list, "rlmd.depth", json_object_get(span->event, "depth"));
	add_string(list, "rlmd.answer_source", json_get_string(span->last, "answerSource"));
	add_string(list, "rlmd.stop_reason", json_get_string(span->last, "stopReason"));
	if (!content)
		return;
	add_message(list, "gen_ai.input.messages", "user", json_get_text(span->event, "task"));
	add_message(list, "gen_ai.output.messages", "assistant",
		    json_get_text(span->last, "finalAnswer"));
}

static void describe_call(const struct span *span, bool content, json_t *list)
{
	const json_t *event = span->event;
	bool turn = span->kind == SPAN_TURN;
	const json_t *prompt = json_object_get(event, "prompt");
	const json_t *response = json_object_get(event, "response");

	add_string(list, "gen_ai.operation.name", "chat");
	add_string(list, "gen_ai.provider.name", json_get_string(event, "provider"));
	add_string(list, "gen_ai.request.model", json_get_string(event, "model"));
	add_integer(list, "gen_ai.usage.input_tokens",
		    turn ? json_object_get(prompt, "tokens")
			 : json_object_get(event, "inputTokens"));
	add_integer(list, "gen_ai.usage.output_tokens",
		    turn ? json_object_get(response, "tokens")
			 : json_object_get(event, "outputTokens"));
	add_integer(list, "gen_ai.usage.cache_read.input_tokens",
		    json_object_get(event, "cachedTokens"));
	add_number(list, "rlmd.cost_usd",
		   turn ? json_object_get(response, "cost") : json_object_get(event, "cost"));
	add_string(list, "rlmd.kind", turn ? "turn" : json_get_string(event, "kind"));
	add_integer(list, "rlmd.index", json_object_get(event, "index"));
	add_integer(list, "rlmd.queued_ms", json_object_get(event, "queuedMs"));
	if (json_get_bool(event, "cached", false))
		add(list, "rlmd.cached", "boolValue", json_true());
	if (!content)
		return;
	add_message(list, "gen_ai.input.messages", "user",
		    turn ? json_get_text(prompt, "content") : json_text(prompt));
	add_message(list, "gen_ai.output.messages", "assistant",
		    turn ? json_get_text(response, "content") : json_text(response));
}

static void describe_tool(const struct span *span, bool content, json_t *list)
{
	bool block = span->kind == SPAN_BLOCK;
	const json_t *event = span->event;
	auto_evbuffer struct evbuffer *printed = buffer_new();

	add_string(list, "gen_ai.operation.name", "execute_tool");
	add_string(list, "gen_ai.tool.name", block ? "python" : json_get_string(event, "name"));
	add_string(list, "gen_ai.tool.type", "function");
	if (!content)
		return;
	add_text(list, "gen_ai.tool.call.arguments",
		 json_get_text(event, block ? "code" : "arguments"));
	if (!block)
		add_text(list, "gen_ai.tool.call.result", json_get_text(event, "answer"));
	for (size_t i = 0; block && i < 3; i++) {
		static const char *const members[] = {"stdout", "stderr", "error"};
		struct rlmd_text text = json_get_text(event, members[i]);

		buffer_add(printed, text.bytes, text.size);
	}
	add_text(list, "gen_ai.tool.call.result", text_in(printed));
}

static char *name_of(const struct span *span)
{
	auto_free char *name = spans_name(span);

	if (span->kind == SPAN_TURN || span->kind == SPAN_CALL)
		return take_pointer(&name);
	if (span->kind == SPAN_RUN)
		return xstrdup("invoke_agent rlmd");
	return xasprintf("execute_tool %s", name);
}

static void put_times(const struct spans *spans, const struct span *span, json_t *object)
{
	char begin[32], end[32];

	snprintf(begin, sizeof begin, "%" PRId64 "000000", spans->started + span->start);
	snprintf(end, sizeof end, "%" PRId64 "000000", spans->started + span->end);
	json_put(object, "startTimeUnixNano", json_make_string(begin));
	json_put(object, "endTimeUnixNano", json_make_string(end));
}

static json_t *attributes_of(const struct spans *spans, const struct span *span, bool content,
			     const char *error)
{
	const char *const *more = span == spans->items ? spans->attributes : NULL;
	json_t *list = json_make_array();

	if (span->kind == SPAN_RUN)
		describe_run(span, content, list);
	else if (span->kind == SPAN_TURN || span->kind == SPAN_CALL)
		describe_call(span, content, list);
	else
		describe_tool(span, content, list);
	add_string(list, "error.type", error);
	for (; more && *more; more += 2)
		add_string(list, more[0], more[1]);
	return list;
}

static void put_parent(const struct span *span, const char *above, json_t *object)
{
	char id[SPAN_ID + 1];

	if (span->kind == SPAN_RUN && !span->parent) {
		if (*above)
			json_put(object, "parentSpanId", json_make_string(above));
		return;
	}
	id_of(SPAN_RUN, span->kind == SPAN_RUN ? span->parent : span->run, 1, id);
	json_put(object, "parentSpanId", json_make_string(id));
}

static json_t *span_object(const struct spans *spans, const struct span *span,
			   const struct rlmd_otlp_options *options)
{
	char trace[TRACE_ID + 1], above[SPAN_ID + 1] = "", id[SPAN_ID + 1];
	bool calls = span->kind == SPAN_TURN || span->kind == SPAN_CALL;
	const char *error = spans_error(span);
	auto_free char *name = name_of(span);
	json_t *object;

	if (!read_traceparent(options->traceparent, trace, above))
		trace_id(spans, trace);
	id_of(span->kind, span->run, span->number, id);
	object = json_make("{s:s, s:s, s:s, s:i, s:o}", "traceId", trace, "spanId", id, "name",
			   name, "kind", calls ? CLIENT : INTERNAL, "attributes",
			   attributes_of(spans, span, options->content, error));
	put_parent(span, above, object);
	put_times(spans, span, object);
	json_put(object, "status", error ? json_make("{s:i}", "code", ERROR) : json_make_object());
	return object;
}

size_t otlp_write(const struct spans *spans, const struct rlmd_otlp_options *options, size_t first,
		  size_t most, struct evbuffer *out)
{
	auto_evbuffer struct evbuffer *list = buffer_new();
	json_auto_t *about = resource(spans, options);
	const char *version = strchr(spans->program, ' ');
	auto_free char *described = json_to_string(about);
	size_t at = first;

	while (at < spans->count && (at == first || evbuffer_get_length(list) < most)) {
		json_auto_t *object = span_object(spans, &spans->items[at], options);

		if (at++ > first)
			buffer_add(list, ",", 1);
		json_write(object, false, list);
	}
	buffer_add_printf(
		out,
		"{\"resourceSpans\":[{\"resource\":%s,\"scopeSpans\":[{\"scope\":{\"name\":"
		"\"rlmd\",\"version\":\"%s\"},\"spans\":[",
		described, version ? version + 1 : "");
	buffer_add_buffer(out, list);
	buffer_add_printf(out, "]}]}]}");
	return at;
}

bool otlp_take_options(const struct rlmd_otlp_options *given, struct rlmd_otlp_options *ret,
		       struct rlmd_error *err)
{
	*ret = (struct rlmd_otlp_options){0};
	return !given ||
	       abi_copy_in(ret, sizeof *ret, given, sizeof *ret, "rlmd_otlp_options", err);
}

char *rlmd_trace_otlp(struct rlmd_text lines, const char *name,
		      const struct rlmd_otlp_options *given, struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *out = buffer_new();
	struct rlmd_otlp_options options;
	struct spans spans;
	bool ok;

	if (!otlp_take_options(given, &options, err))
		return NULL;
	ok = spans_read(lines, name, &spans, err);
	if (ok) {
		otlp_write(&spans, &options, 0, SIZE_MAX, out);
		buffer_add(out, "\n", 1);
	}
	spans_done(&spans);
	return ok ? text_drain(out, NULL) : NULL;
}

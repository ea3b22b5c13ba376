#include "llm/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static const struct adapter *const adapters[] = {
#define ADAPTER(name) &adapter_##name,
#include "llm/adapters.def"
#undef ADAPTER
};

enum { ADAPTER_COUNT = sizeof adapters / sizeof *adapters };

const struct adapter *adapter_find(const char *name)
{
	for (size_t i = 0; i < ADAPTER_COUNT; i++)
		if (!strcmp(adapters[i]->name, name))
			return adapters[i];
	return NULL;
}

const struct adapter *adapter_at(size_t index)
{
	return index < ADAPTER_COUNT ? adapters[index] : NULL;
}

static bool any_is_set(const char *const *names)
{
	for (; names && *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return true;
	}
	return false;
}

static bool begins_model(const struct adapter *adapter, const char *model)
{
	size_t size = strlen(adapter->name);

	return model && !strncmp(model, adapter->name, size) && model[size] == '/' &&
	       (!adapter->key_required || any_is_set(adapter->key_env));
}

const char *adapter_default_name(const char *model)
{
	const struct adapter *chosen = NULL;

	for (size_t i = 0; i < ADAPTER_COUNT; i++)
		if (begins_model(adapters[i], model))
			return adapters[i]->name;
	for (size_t i = 0; i < ADAPTER_COUNT; i++) {
		const struct adapter *adapter = adapters[i];

		if (!any_is_set(adapter->key_required ? adapter->key_env : adapter->base_url_env))
			continue;
		if (chosen)
			return adapter_ollama.name;
		chosen = adapter;
	}
	return chosen ? chosen->name : adapter_ollama.name;
}

const char *adapter_names(char out[static ADAPTER_NAMES_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < ADAPTER_COUNT; i++)
		used += (size_t)snprintf(out + used, ADAPTER_NAMES_MAX - used, "%s%s",
					 i ? ", " : "", adapters[i]->name);
	return out;
}

int64_t adapter_message_tokens(const struct llm_message *message)
{
	return message->scan ? text_scan_tokens(message->scan) : text_tokens(message->text);
}

void adapter_put_model(const struct adapter *adapter, const struct llm_request *request,
		       struct body *out)
{
	bool given = request->model && *request->model;

	body_add(out, "\"model\":");
	body_quote(out, text_of(given ? request->model : adapter->default_model));
}

void adapter_put_message(const char *role, struct rlmd_text text, struct body *out)
{
	body_printf(out, "{\"role\":\"%s\",\"content\":", role);
	body_quote(out, text);
	body_add(out, "}");
}

static bool has_system(const struct llm_request *request)
{
	return request->message_count > 1 && request->messages[0].role == LLM_SYSTEM &&
	       request->messages[1].role == LLM_USER;
}

void adapter_put_messages(const struct llm_request *request, unsigned quirks, struct body *out)
{
	static const char *const roles[] = {
		[LLM_SYSTEM] = "system",
		[LLM_USER] = "user",
		[LLM_ASSISTANT] = "assistant",
	};
	const struct llm_message *messages = request->messages;
	size_t i = 0;

	body_add(out, "\"messages\":[");
	if (quirks & QUIRK_NO_SYSTEM && has_system(request)) {
		body_add(out, "{\"role\":\"user\",\"content\":");
		body_quote_both(out, messages[0].text, messages[1].text);
		body_add(out, "}");
		i = 2;
	}
	for (; i < request->message_count; i++) {
		if (i)
			body_add(out, ",");
		adapter_put_message(roles[messages[i].role], messages[i].text, out);
	}
	body_add(out, "]");
}

void adapter_put_sampling(const struct llm_request *request, unsigned quirks, const char *stop,
			  struct body *out)
{
	const struct llm_sampling *sampling = &request->sampling;
	size_t stops = quirks & QUIRK_NO_STOP ? 0 : sampling->stop_count;

	if (sampling->with_temperature && !(quirks & QUIRK_NO_TEMPERATURE))
		body_printf(out, ",\"temperature\":%g", sampling->temperature);
	for (size_t i = 0; i < stops; i++) {
		if (i)
			body_add(out, ",");
		else
			body_printf(out, ",\"%s\":[", stop);
		body_quote(out, text_of(sampling->stops[i]));
	}
	if (stops)
		body_add(out, "]");
}

/* Providers take nothing but an object for a schema. */
static bool has_schema(const struct llm_request *request)
{
	return text_starts(text_trim(request->schema), "{");
}

void adapter_put_schema(const struct llm_request *request, unsigned quirks, const char *before,
			const char *after, struct body *out)
{
	if (!has_schema(request) || quirks & QUIRK_NO_SCHEMA)
		return;
	body_printf(out, "%s%.*s%s", before, (int)request->schema.size, request->schema.bytes,
		    after);
}

bool adapter_can_adapt(const struct llm_request *request, unsigned quirk)
{
	if (quirk == QUIRK_NO_TEMPERATURE)
		return request->sampling.with_temperature;
	if (quirk == QUIRK_NO_STOP)
		return request->sampling.stop_count;
	if (quirk == QUIRK_NO_SCHEMA)
		return has_schema(request);
	if (quirk == QUIRK_NO_SYSTEM)
		return has_system(request);
	return true;
}

/* Host and port of a URL of any scheme, or of none. */
static struct rlmd_text authority_of(struct rlmd_text url)
{
	const char *scheme_end = text_find(url, "://");
	const char *start = scheme_end ? scheme_end + 3 : url.bytes;
	size_t size = url.size - (size_t)(start - url.bytes);
	const char *slash = size ? memchr(start, '/', size) : NULL;

	return text_from(start, slash ? (size_t)(slash - start) : size);
}

static bool is_http(struct rlmd_text url)
{
	return text_starts_caseless(url, "http://") || text_starts_caseless(url, "https://");
}

static bool is_clean(struct rlmd_text url)
{
	static const char unfit[] = "\"<>\\^`{|}?#";

	for (size_t i = 0; i < url.size; i++)
		if (url.bytes[i] <= ' ' || url.bytes[i] > '~' || strchr(unfit, url.bytes[i]))
			return false;
	return true;
}

static struct rlmd_text without_slashes(struct rlmd_text url)
{
	while (url.bytes[url.size - 1] == '/')
		url.size--;
	return url;
}

char *adapter_base_url(const char *given, struct rlmd_error *err)
{
	struct rlmd_text url = text_trim(text_of(given));
	struct rlmd_text authority = authority_of(url);

	/* First of all, so that no other message repeats a password. */
	if (authority.size && memchr(authority.bytes, '@', authority.size))
		error_set(err, RLMD_ERROR_USAGE,
			  "a base URL must not hold a user name or password");
	else if (!is_clean(url))
		error_set(err, RLMD_ERROR_USAGE,
			  "'%.100s' has a character that no base URL may have", given);
	else if (!is_http(url))
		error_set(err, RLMD_ERROR_USAGE, "'%.100s' does not begin with http:// or https://",
			  given);
	else if (!authority.size || *authority.bytes == ':')
		error_set(err, RLMD_ERROR_USAGE, "'%.100s' names no host", given);
	else
		return text_copy(without_slashes(url));
	return NULL;
}

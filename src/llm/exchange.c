#include "llm/exchange.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/money.h"
#include "base/text.h"
#include "llm/key.h"
#include "net/body.h"

static const char *const role_names[] = {
	[LLM_SYSTEM] = "system", [LLM_USER] = "user", [LLM_ASSISTANT] = "assistant"};

static const struct {
	const char *name;
	size_t offset;
} counts[] = {
	{"input", offsetof(struct llm_usage, input)},
	{"output", offsetof(struct llm_usage, output)},
	{"cache_read", offsetof(struct llm_usage, cache_read)},
	{"cache_write", offsetof(struct llm_usage, cache_write)},
	{"cache_write_1h", offsetof(struct llm_usage, cache_write_1h)},
	{"reasoning", offsetof(struct llm_usage, reasoning)},
};

enum {
	COUNTS = sizeof counts / sizeof *counts,
	ENTRY_DEPTH = 16,
	HASHED = 16 << 10,  /* bytes at once */
	WRITTEN = 64 << 10, /* likewise */
	POSITION_SIZE = 13, /* twelve digits and a NUL */
};

/* Of tokens: the sum of a call's attempts may be more than any of them may come to. */
#define SUM_MAX (1000 * (int64_t)LLM_COUNT_MAX)

void exchange_done(struct exchange *exchange)
{
	free(exchange->text);
	free(exchange->thinking);
	free(exchange->model);
	free(exchange->asked);
	memset(exchange, 0, sizeof *exchange);
}

/* --- identity ---------------------------------------------------------------------------- */

static json_t *stops_json(const struct llm_sampling *sampling)
{
	json_t *stops = sampling->stop_count ? json_make_array() : NULL;

	for (size_t i = 0; i < sampling->stop_count; i++)
		json_append(stops, json_from_text(text_of(sampling->stops[i])));
	return stops;
}

void exchange_hex(const unsigned char hash[static 32], char out[static EXCHANGE_ID_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 32; i++) {
		out[2 * i] = digits[hash[i] >> 4];
		out[2 * i + 1] = digits[hash[i] & 15];
	}
	out[EXCHANGE_ID_SIZE - 1] = '\0';
}

void exchange_hash(struct rlmd_text text, char out[static EXCHANGE_ID_SIZE])
{
	unsigned char hash[EVP_MAX_MD_SIZE];

	if (!EVP_Digest(text.bytes ? text.bytes : "", text.size, hash, NULL, EVP_sha256(), NULL))
		alloc_failed();
	exchange_hex(hash, out);
}

static void put_json(json_t *value, const char *before, struct body *out)
{
	auto_evbuffer struct evbuffer *bytes = buffer_new();

	json_write(value, true, bytes);
	buffer_add(bytes, "", 1);
	body_add(out, before);
	body_add(out, text_in(bytes).bytes);
	json_decref(value);
}

/* As json_write() would write it of exchange_request(), with keys in their order. */
static void put_timeless(const struct llm_request *request, struct body *out)
{
	const struct llm_sampling *sampling = &request->sampling;

	body_printf(out, "{\"max_tokens\":%" PRId64 ",\"messages\":[",
		    request->asked_tokens ? request->asked_tokens : request->max_tokens);
	for (size_t i = 0; i < request->message_count; i++) {
		const struct llm_message *message = &request->messages[i];

		body_add(out, i ? ",{\"content\":" : "{\"content\":");
		body_quote(out, message->timeless.size ? message->timeless : message->text);
		body_printf(out, ",\"role\":\"%s\"}", role_names[message->role]);
	}
	body_add(out, "],\"model\":");
	body_quote(out, text_of(request->named ? request->named : request->model));
	if (request->schema.size) {
		body_add(out, ",\"schema\":");
		body_quote(out, request->schema);
	}
	if (sampling->stop_count)
		put_json(stops_json(sampling), ",\"stop\":", out);
	if (sampling->with_temperature)
		put_json(json_make_real(sampling->temperature), ",\"temperature\":", out);
	body_add(out, "}");
}

/* Hashed while it is quoted: a prompt of megabytes is neither copied nor made a tree of. */
void exchange_id(const struct llm_request *request, char out[static EXCHANGE_ID_SIZE])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *context = xpresent(EVP_MD_CTX_new());
	struct body *body = body_new();
	char piece[HASHED];
	size_t size;

	put_timeless(request, body);
	if (!EVP_DigestInit_ex(context, EVP_sha256(), NULL))
		alloc_failed();
	while ((size = body_read(body, piece, sizeof piece)))
		if (!EVP_DigestUpdate(context, piece, size))
			alloc_failed();
	if (!EVP_DigestFinal_ex(context, hash, NULL))
		alloc_failed();
	exchange_hex(hash, out);
	EVP_MD_CTX_free(context);
	body_free(body);
}

char *exchange_name(const struct llm_request *request)
{
	char id[EXCHANGE_ID_SIZE], position[EXCHANGE_ID_SIZE];

	exchange_id(request, id);
	exchange_hash(text_of(request->position), position);
	return xasprintf("%s-%.*s", id, POSITION_SIZE - 1, position);
}

/* --- reading ----------------------------------------------------------------------------- */

bool exchange_fields(const json_t *object, const char *const *fields, struct rlmd_error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		size_t i = 0;

		while (fields[i] && strcmp(fields[i], key))
			i++;
		if (!fields[i])
			return error_set(err, RLMD_ERROR_INPUT, "unknown field \"%s\"", key);
	}
	return true;
}

/* A string, or an array of strings that are lines. */
static bool read_lines(const json_t *value, const char *field, char **ret, size_t *ret_size,
		       struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *text = NULL;
	json_t *line;
	size_t i;

	if (!value)
		return true;
	if (json_is_string(value)) {
		*ret = text_copy(json_text(value));
		*ret_size = json_string_length(value);
		return true;
	}
	if (!json_is_array(value))
		return error_set(err, RLMD_ERROR_INPUT, "\"%s\" is no string or array of strings",
				 field);
	text = buffer_new();
	json_array_foreach (value, i, line) {
		if (!json_is_string(line))
			return error_set(err, RLMD_ERROR_INPUT, "\"%s\": line %zu is no string",
					 field, i + 1);
		buffer_add(text, "\n", i > 0);
		buffer_add(text, json_string_value(line), json_string_length(line));
	}
	*ret = text_drain(text, ret_size);
	return true;
}

static bool read_usage(const json_t *usage, struct llm_usage *ret, struct rlmd_error *err)
{
	if (!json_is_object(usage))
		return error_set(err, RLMD_ERROR_INPUT, "\"usage\" is no object");
	for (size_t i = 0; i < COUNTS; i++) {
		int64_t value = json_get_integer(usage, counts[i].name, 0);

		if (value < 0 || value > SUM_MAX ||
		    (json_object_get(usage, counts[i].name) &&
		     !json_is_integer(json_object_get(usage, counts[i].name))))
			return error_set(err, RLMD_ERROR_INPUT,
					 "\"usage\".\"%s\" is no whole number from 0 to %" PRId64,
					 counts[i].name, SUM_MAX);
		memcpy((char *)ret + counts[i].offset, &value, sizeof value);
	}
	ret->estimated = json_get_bool(usage, "estimated", false);
	return true;
}

static bool read_finish(const json_t *value, enum llm_finish *ret, struct rlmd_error *err)
{
	if (!value || text_equal(json_text(value), "stop"))
		*ret = LLM_FINISH_STOP;
	else if (text_equal(json_text(value), "length"))
		*ret = LLM_FINISH_LENGTH;
	else
		return error_set(err, RLMD_ERROR_INPUT, "\"finish\" is not \"stop\" or \"length\"");
	return true;
}

static bool read_numbers(const json_t *response, struct exchange *ret, struct rlmd_error *err)
{
	const json_t *cost = json_object_get(response, "cost");
	const json_t *delay = json_object_get(response, "delay");

	if (cost && !json_is_null(cost) && (!json_is_number(cost) || json_number_value(cost) < 0))
		return error_set(err, RLMD_ERROR_INPUT, "\"cost\" is no number of dollars");
	if (delay && (!json_is_integer(delay) || json_integer_value(delay) < 0))
		return error_set(err, RLMD_ERROR_INPUT,
				 "\"delay\" is no whole number of milliseconds");
	if (json_is_number(cost))
		ret->cost = money_from_dollars(json_number_value(cost));
	ret->delay_ms = json_is_integer(delay) ? json_integer_value(delay) : 0;
	return true;
}

static bool read_response(const json_t *response, struct exchange *ret, struct rlmd_error *err)
{
	static const char *const fields[] = {"text",  "thinking", "finish", "usage",  "cost",
					     "delay", "model",    "cached", "billed", NULL};
	const json_t *usage = json_object_get(response, "usage");
	struct rlmd_text model = json_get_text(response, "model");

	if (!json_is_object(response))
		return error_set(err, RLMD_ERROR_INPUT, "\"response\" is no object");
	if (!exchange_fields(response, fields, err))
		return false;
	if (model.size)
		ret->model = text_copy(model);
	ret->usage_given = usage;
	ret->cached = json_get_bool(response, "cached", false);
	ret->billed = (int)json_get_integer(response, "billed", !ret->cached);
	return read_lines(json_object_get(response, "text"), "text", &ret->text, &ret->text_size,
			  err) &&
	       read_lines(json_object_get(response, "thinking"), "thinking", &ret->thinking,
			  &ret->thinking_size, err) &&
	       read_finish(json_object_get(response, "finish"), &ret->finish, err) &&
	       read_numbers(response, ret, err) && (!usage || read_usage(usage, &ret->usage, err));
}

static bool read_error(const json_t *value, struct rlmd_error *ret, struct rlmd_error *err)
{
	struct rlmd_text kind = json_get_text(value, "kind");
	auto_free char *message = text_copy(json_get_text(value, "message"));
	enum rlmd_error_kind known = error_named(kind);

	if (known) {
		error_set(ret, known, "%s", *message ? message : rlmd_error_meaning(known));
		ret->http_status = (int)json_get_integer(value, "http_status", 0);
		return true;
	}
	return error_set(err, RLMD_ERROR_INPUT, "\"error\".\"kind\" is missing or unknown");
}

bool exchange_read(const json_t *entry, struct exchange *ret, struct rlmd_error *err)
{
	const json_t *response = json_object_get(entry, "response");
	const json_t *error = json_object_get(entry, "error");
	const json_t *messages = json_object_get(json_object_get(entry, "request"), "messages");
	const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
	struct rlmd_text asked = json_get_text(last, "content");
	struct exchange exchange = {
		.cost = response ? -1 : 0,
		.billed = 1,
		.order = json_get_integer(entry, "order", -1),
		.cancelled = json_get_bool(entry, "cancelled", false),
		.lowered = json_get_integer(entry, "lowered", 0),
		.numbered = json_object_get(entry, "index"),
		.number = (int)json_get_integer(entry, "index", 0),
		.asked = asked.size ? text_copy(asked) : NULL,
		.asked_size = asked.size,
	};

	if ((!response && !error &&
	     !error_set(err, RLMD_ERROR_INPUT, "neither \"response\" nor \"error\"")) ||
	    (response && !read_response(response, &exchange, err)) ||
	    (error && !read_error(error, &exchange.error, err))) {
		exchange_done(&exchange);
		return false;
	}
	*ret = exchange;
	return true;
}

struct llm_response exchange_response(const struct exchange *exchange,
				      const struct llm_request *request)
{
	return (struct llm_response){
		.text = text_from(exchange->text, exchange->text_size),
		.thinking = text_from(exchange->thinking, exchange->thinking_size),
		.finish = exchange->finish,
		.usage = exchange->usage,
		.attempts = 1,
		.billed = exchange->billed,
		.cached = exchange->cached,
		.lowered = exchange->lowered,
		.model = exchange->model ? exchange->model : request->model,
		.number = exchange->numbered ? &exchange->number : NULL,
		.asked = text_from(exchange->asked, exchange->asked_size),
	};
}

/* --- writing ----------------------------------------------------------------------------- */

static json_t *asked_json(const struct llm_request *request)
{
	const struct llm_sampling *sampling = &request->sampling;

	return json_make("{s:I, s:o*, s:o*, s:o*}", "max_tokens", (json_int_t)request->max_tokens,
			 "temperature",
			 sampling->with_temperature ? json_make_real(sampling->temperature) : NULL,
			 "stop", stops_json(sampling), "schema",
			 request->schema.size ? json_from_text(request->schema) : NULL);
}

static json_t *facts_json(const struct llm_response *response)
{
	json_t *usage = json_make("{s:b}", "estimated", response->usage.estimated);

	for (size_t i = 0; i < COUNTS; i++) {
		int64_t value;

		memcpy(&value, (const char *)&response->usage + counts[i].offset, sizeof value);
		json_put(usage, counts[i].name, json_make_integer(value));
	}
	return json_make("{s:s, s:o, s:o, s:o, s:o*, s:o*}", "finish",
			 response->finish == LLM_FINISH_LENGTH ? "length" : "stop", "usage", usage,
			 "cost",
			 response->cost_known ? json_make_real(money_to_dollars(response->cost))
					      : json_null(),
			 "model", json_from_text(text_of(response->model)), "cached",
			 response->cached ? json_true() : NULL, "billed",
			 response->billed > 1 ? json_make_integer(response->billed) : NULL);
}

static void add_error(json_t *entry, const struct rlmd_error *err)
{
	if (err)
		json_put(entry, "error",
			 json_make("{s:s, s:o, s:i}", "kind", rlmd_error_name(err->kind), "message",
				   json_from_text(text_of(err->text)), "http_status",
				   err->http_status));
}

static json_t *response_json(const struct llm_response *response)
{
	json_t *facts = facts_json(response);
	json_t *all = json_make("{s:o, s:o}", "text", json_from_text(response->text), "thinking",
				json_from_text(response->thinking));

	json_update(all, facts);
	json_decref(facts);
	return all;
}

json_t *exchange_answer(const struct llm_response *response, const struct rlmd_error *err)
{
	json_t *entry = json_make("{s:o}", "response", response_json(response));

	if (response->lowered)
		json_put(entry, "lowered", json_make_integer(response->lowered));
	add_error(entry, err);
	return entry;
}

/* The members of an object, without its braces; takes the reference. */
static void put_members(struct body *out, json_t *object)
{
	auto_free char *json = json_to_string(object);

	json[strlen(json) - 1] = '\0';
	body_add(out, json + 1);
	json_decref(object);
}

static void put_text(struct body *out, const char *before, struct rlmd_text text)
{
	body_add(out, before);
	body_quote(out, text);
}

/* Members that were not asked for are left out, or older recordings would not be found. */
static void put_request(struct body *out, const struct llm_request *request)
{
	put_text(out, "{\"request\":{\"model\":",
		 text_of(request->named ? request->named : request->model));
	for (size_t i = 0; i < request->message_count; i++) {
		const struct llm_message *message = &request->messages[i];
		bool ends = !i || i + 1 == request->message_count;

		body_printf(out, "%s{\"role\":\"%s\"", i ? "," : ",\"messages\":[",
			    role_names[message->role]);
		put_text(out, ",\"content\":", message->text);
		/* Of those in between an earlier request has it. */
		if (message->timeless.size && ends)
			put_text(out, ",\"timeless\":", message->timeless);
		body_add(out, "}");
	}
	body_add(out, request->message_count ? "]," : ",\"messages\":[],");
	put_members(out, asked_json(request));
	body_add(out, "},");
	put_members(out, json_make("{s:{s:s, s:i, s:i}, s:i}", "match", "kind",
				   request_kind_name(request->kind), "depth", request->depth,
				   "turn", request->turn, "index", request->number));
}

json_t *exchange_request(const struct llm_request *request)
{
	auto_evbuffer struct evbuffer *bytes = buffer_new();
	struct body *entry = body_new();
	char piece[HASHED];
	json_auto_t *whole = NULL;
	size_t size;

	put_request(entry, request);
	body_add(entry, "}");
	while ((size = body_read(entry, piece, sizeof piece)))
		buffer_add(bytes, piece, size);
	body_free(entry);
	whole = json_read(text_in(bytes), ENTRY_DEPTH, NULL);
	return json_incref(json_object_get(whole, "request"));
}

struct body *exchange_entry(const struct llm_request *request, const struct llm_response *response,
			    const struct rlmd_error *err)
{
	struct body *out = body_new();

	put_request(out, request);
	put_text(out, ",\"response\":{\"text\":", response->text);
	put_text(out, ",\"thinking\":", response->thinking);
	body_add(out, ",");
	put_members(out, facts_json(response));
	body_add(out, "},");
	if (err) {
		json_t *error = json_make_object();

		add_error(error, err);
		put_members(out, error);
		body_add(out, ",");
	}
	return out;
}

struct body *exchange_facts(const struct llm_response *response)
{
	struct body *out = body_new();

	put_text(out, "{\"response\":{\"thinking\":", response->thinking);
	body_add(out, ",");
	put_members(out, facts_json(response));
	body_add(out, "}}\n");
	return out;
}

/* The next bytes of the entry, or of what stands behind it; 0 at the end. */
static size_t next_bytes(struct exchange_file *file, char *out)
{
	size_t size = body_read(file->entry, out, WRITTEN);

	if (size)
		return size;
	size = file->rest.size < WRITTEN ? file->rest.size : WRITTEN;
	if (size)
		memcpy(out, file->rest.bytes, size);
	file->rest = text_slice(file->rest, size, file->rest.size);
	return size;
}

/* One piece. False: it failed, or there is no more. */
static bool write_piece(struct exchange_file *file, bool *ret_more, struct rlmd_error *err)
{
	size_t longest = key_list_longest(file->keys), more, size, done; /* a key may be new */

	file->room = xreallocarray(file->room, WRITTEN + longest, 1);
	more = next_bytes(file, file->room + file->open);
	size = key_list_redact_inside(file->keys, file->room, file->open + more);
	done = more && size > longest ? size - longest : more ? 0 : size;
	*ret_more = more;
	if (!file_write_fd(file->fd, text_from(file->room, done), err))
		return false;
	if (file->piece)
		file->piece(file, text_from(file->room, done));
	file->open = size - done;
	memmove(file->room, file->room + done, file->open);
	return true;
}

enum exchange_progress exchange_write(struct exchange_file *file, size_t bytes,
				      struct rlmd_error *err)
{
	bool more = true, ok = true;

	for (size_t written = 0; ok && more && written < bytes; written += WRITTEN)
		ok = write_piece(file, &more, err);
	if (ok && more)
		return EXCHANGE_MORE;
	if (ok && file->commit(file, err))
		return EXCHANGE_WHOLE;
	error_context(err, "%s", file->path);
	return EXCHANGE_FAILED;
}

void exchange_file_free(struct exchange_file *file)
{
	if (!file)
		return;
	free(file->room);
	body_free(file->entry);
	file->free(file);
}

/* tests/llm/adapting.h - what the tests of all adapters do with one; after cmocka.h. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_quote.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "effort.h"
#include "llm/adapter.h"
#include "llm/stream.h"

/* The end of an answer. */
struct outcome {
	bool ok;
	struct rlmd_error error;
	struct reply reply; /* its buffers are gone */
	struct llm_usage usage;
	char *text, *thinking; /* owned */
};

static inline void outcome_take(struct outcome *outcome, struct reply *reply)
{
	outcome->usage = reply_usage(reply, 0);
	outcome->text = text_copy(bytes_text(&reply->text.bytes));
	outcome->thinking = text_copy(bytes_text(&reply->thinking.bytes));
	reply_done(reply);
	outcome->reply = *reply;
}

static inline void outcome_free(struct outcome *outcome)
{
	free(outcome->text);
	free(outcome->thinking);
}

struct hearing {
	const struct adapter *adapter;
	struct reply *reply;
};

static inline bool hear(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct hearing *hearing = owner;

	return hearing->adapter->event(hearing->reply, event, err);
}

static inline bool hear_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken,
			      struct rlmd_error *err)
{
	struct hearing *hearing = owner;

	return reply_take_expected(hearing->reply, bytes, ret_taken, err);
}

/* A stream that comes in two pieces, copied so that a sanitizer sees every byte read beyond. */
static inline struct outcome stream_split(const struct adapter *adapter, struct rlmd_text bytes,
					  size_t split)
{
	struct outcome outcome = {0};
	struct reply reply;
	struct hearing hearing = {adapter, &reply};
	struct stream *stream = stream_new(adapter->framing, hear, hear_ahead, &hearing);
	char *head = xstrndup(bytes.bytes, split);
	char *tail = xstrndup(bytes.bytes + split, bytes.size - split);

	reply_init(&reply);
	outcome.ok = stream_feed(stream, text_from(head, split), &outcome.error) &&
		     stream_feed(stream, text_from(tail, bytes.size - split), &outcome.error) &&
		     stream_end(stream, &outcome.error);
	outcome_take(&outcome, &reply);
	stream_free(stream);
	free(head);
	free(tail);
	return outcome;
}

static inline struct outcome stream_of(const struct adapter *adapter, const char *bytes)
{
	return stream_split(adapter, text_of(bytes), 0);
}

/* Checked a byte at a time while it comes, and then taken likewise. */
static inline struct outcome whole_in_steps(const struct adapter *adapter, struct rlmd_text body)
{
	struct outcome outcome = {0};
	struct json_ahead ahead = {0};
	struct reply reply;

	for (size_t come = 1; come <= body.size; come++)
		json_ahead_feed(&ahead, text_slice(body, 0, come));
	reply_init(&reply);
	reply.ahead = body.size ? &ahead : NULL;
	reply.at_once = 1;
	outcome.ok = adapter->whole(&reply, body, &outcome.error);
	while (outcome.ok && reply_waits(&reply))
		outcome.ok = reply_go_on(&reply, 1, &outcome.error);
	outcome_take(&outcome, &reply);
	json_ahead_done(&ahead);
	return outcome;
}

static inline void assert_same(const struct outcome *a, const struct outcome *b);

static inline struct outcome whole_of(const struct adapter *adapter, const char *body)
{
	struct outcome outcome = {0}, in_steps = whole_in_steps(adapter, text_of(body));
	struct reply reply;

	reply_init(&reply);
	outcome.ok = adapter->whole(&reply, text_of(body), &outcome.error);
	outcome_take(&outcome, &reply);
	assert_same(&outcome, &in_steps);
	outcome_free(&in_steps);
	return outcome;
}

static inline void assert_usage(const struct llm_usage *a, const struct llm_usage *b)
{
	assert_int_equal(a->input, b->input);
	assert_int_equal(a->output, b->output);
	assert_int_equal(a->cache_read, b->cache_read);
	assert_int_equal(a->cache_write, b->cache_write);
	assert_int_equal(a->cache_write_1h, b->cache_write_1h);
	assert_int_equal(a->reasoning, b->reasoning);
}

static inline void assert_same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->ok, b->ok);
	assert_int_equal(a->error.kind, b->error.kind);
	assert_string_equal(a->error.text, b->error.text);
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->thinking, b->thinking);
	assert_string_equal(a->reply.model, b->reply.model);
	assert_string_equal(a->reply.refusal, b->reply.refusal);
	assert_int_equal(a->reply.refused, b->reply.refused);
	assert_int_equal(a->reply.finish, b->reply.finish);
	assert_int_equal(a->reply.finished, b->reply.finished);
	assert_int_equal(a->reply.complete, b->reply.complete);
	assert_int_equal(a->reply.usage_seen, b->reply.usage_seen);
	assert_int_equal(a->reply.usage_absurd, b->reply.usage_absurd);
	assert_int_equal(a->reply.cost_reported, b->reply.cost_reported);
	assert_usage(&a->reply.usage, &b->reply.usage);
}

/* The outcome may not depend on where the network cuts. */
static inline void check_splits(const struct adapter *adapter, const char *bytes)
{
	struct outcome expected = stream_of(adapter, bytes);

	for (size_t split = 1; split <= strlen(bytes); split += effort(1, 5)) {
		struct outcome outcome = stream_split(adapter, text_of(bytes), split);

		assert_same(&expected, &outcome);
		outcome_free(&outcome);
	}
	outcome_free(&expected);
}

static inline char *encoded(const struct adapter *adapter, const struct llm_request *request,
			    unsigned quirks, bool stream)
{
	struct body *out = body_new();
	size_t size;
	char *body;

	adapter->encode(request, quirks, stream, out);
	while (!body_measure(out, 1 << 20))
		;
	body = xcalloc(body_size(out) + JSON_QUOTE_ROOM, 1);
	size = body_read(out, body, body_size(out) + JSON_QUOTE_ROOM - 1);
	assert_int_equal(size, body_size(out));
	body_free(out);
	return body;
}

static inline json_t *encoded_json(const struct adapter *adapter, const struct llm_request *request,
				   unsigned quirks, bool stream)
{
	struct rlmd_error error = {0};
	char *body = encoded(adapter, request, quirks, stream);
	json_t *value = json_read(text_of(body), 32, &error);

	if (!value)
		fail_msg("%s: %s", error.text, body);
	free(body);
	return value;
}

/* A conversation of ten turns: each body must begin with the last one up to its messages' end. */
static inline void check_prefixes(const struct adapter *adapter)
{
	struct llm_message messages[21] = {{LLM_SYSTEM, text_of("You are a \"careful\" one.")}};
	char *last = NULL;

	for (size_t turn = 0; turn < 10; turn++) {
		struct llm_request request = {
			.model = "m",
			.messages = messages,
			.message_count = 2 * turn + 2,
			.max_tokens = 1000 - (int64_t)turn,
			.turn = (int)turn,
		};
		char *body, *end;

		messages[2 * turn + 1] = (struct llm_message){LLM_USER, text_of("output\n\xff")};
		messages[2 * turn + 2] = (struct llm_message){LLM_ASSISTANT,
							      text_of("```repl\nprint(1)\n```")};
		body = encoded(adapter, &request, 0, true);
		if (last) {
			end = strstr(strstr(last, "\"messages\":"), "}],");
			assert_non_null(end);
			assert_memory_equal(body, last, (size_t)(end + 1 - last));
			assert_int_equal(body[end + 1 - last], ',');
			free(last);
		}
		last = body;
	}
	free(last);
}

static inline const char *string_at(const json_t *object, const char *key)
{
	const char *string = json_string_value(json_object_get(object, key));

	return string ? string : "(none)";
}

static inline void assert_base_url(const struct adapter *adapter, const char *given,
				   const char *expected)
{
	struct rlmd_error error = {0};
	char *url = adapter->base_url(given, &error);

	if (!url)
		fail_msg("%s: %s", given, error.text);
	assert_string_equal(url, expected);
	free(url);
}

static inline void assert_base_url_refused(const struct adapter *adapter, const char *given)
{
	struct rlmd_error error = {0};
	char *url = adapter->base_url(given, &error);

	if (url)
		fail_msg("'%s' became '%s'", given, url);
	assert_int_equal(error.kind, RLMD_ERROR_USAGE);
	assert_true(*error.text);
	assert_null(strstr(error.text, "secret"));
}

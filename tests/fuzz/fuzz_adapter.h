/*
 * tests/fuzz/fuzz_adapter.h - what holds for the answer of any adapter to any bytes.
 *
 * The first byte of the input chooses: a whole body, or a stream cut into pieces of that size. A
 * stream is read twice: as it is, with its words taken out of jansson's trees beside; and with each
 * event by itself, none of which is told by the one before it (llm/event_pattern.h).
 */
#pragma once

#include <event2/buffer.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "llm/adapter.h"
#include "llm/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The words of an event, by its tree. */
typedef void fuzz_words_fn(const json_t *event, struct evbuffer *text, struct evbuffer *thinking);

struct fuzz_hearing {
	const struct adapter *adapter;
	struct reply *reply;
	bool read;                        /* all events are, none is taken as expected */
	fuzz_words_fn *words;             /* or NULL */
	struct evbuffer *text, *thinking; /* what it took */
	bool unread;                      /* an event that jansson does not take: a huge number */
};

static inline void fuzz_put(struct evbuffer *out, const json_t *string)
{
	struct rlmd_text text = json_text(string);

	if (text.size)
		evbuffer_add(out, text.bytes, text.size);
}

static inline void fuzz_compare_words(struct fuzz_hearing *hearing, struct rlmd_text data)
{
	json_auto_t *event = json_loadb(data.bytes, data.size,
					JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
					NULL);

	hearing->unread |= !event && !text_equal(data, "[DONE]") && data.size;
	if (event)
		hearing->words(event, hearing->text, hearing->thinking);
}

static inline bool fuzz_hear(void *owner, const struct adapter_event *event, struct rlmd_error *err)
{
	struct fuzz_hearing *hearing = owner;
	bool over = hearing->reply->finished;
	bool ok = hearing->adapter->event(hearing->reply, event, err);

	if (ok && !over && hearing->words)
		fuzz_compare_words(hearing, event->data);
	return ok;
}

static inline bool fuzz_ahead(void *owner, struct rlmd_text bytes, size_t *ret_taken,
			      struct rlmd_error *err)
{
	struct fuzz_hearing *hearing = owner;

	*ret_taken = 0;
	return hearing->read || reply_take_expected(hearing->reply, bytes, ret_taken, err);
}

static inline bool fuzz_feed(struct fuzz_hearing *hearing, struct rlmd_text bytes, size_t piece,
			     struct rlmd_error *err)
{
	struct stream *stream = stream_new(hearing->adapter->framing, fuzz_hear, fuzz_ahead,
					   hearing);
	bool ok = true;

	while (ok && bytes.size) {
		size_t size = piece < bytes.size ? piece : bytes.size;

		ok = stream_feed(stream, text_from(bytes.bytes, size), err);
		bytes = text_from(bytes.bytes + size, bytes.size - size);
	}
	ok = ok && stream_end(stream, err);
	stream_free(stream);
	return ok;
}

static inline void fuzz_require(bool holds)
{
	if (!holds)
		abort();
}

static inline void fuzz_check(struct reply *reply, bool ok, const struct rlmd_error *err)
{
	const struct llm_usage *usage = &reply->usage;

	fuzz_require(ok == (err->kind == RLMD_ERROR_NONE));
	fuzz_require(usage->input >= 0 && usage->output >= 0 && usage->reasoning >= 0);
	fuzz_require(usage->cache_read >= 0 && usage->cache_write >= 0);
	fuzz_require(usage->cache_write_1h >= 0 && usage->reasoning <= usage->output);
	fuzz_require(usage->cache_read + usage->cache_write + usage->cache_write_1h <=
		     usage->input);
	fuzz_require(reply->cost_reported >= -1);
	fuzz_require(!reply->finished || reply->complete);
	fuzz_require(text_is_utf8(bytes_text(&reply->text.bytes)));
	fuzz_require(text_is_utf8(text_of(reply->refusal)) && text_is_utf8(text_of(reply->model)));
}

static inline void fuzz_same_text(struct rlmd_text a, struct rlmd_text b)
{
	fuzz_require(a.size == b.size && !memcmp(a.bytes, b.bytes, a.size));
}

static inline void fuzz_same(const struct reply *a, const struct reply *b)
{
	fuzz_same_text(bytes_text(&a->text.bytes), bytes_text(&b->text.bytes));
	fuzz_same_text(bytes_text(&a->thinking.bytes), bytes_text(&b->thinking.bytes));
	fuzz_require(!memcmp(&a->text.bound, &b->text.bound, sizeof a->text.bound));
	fuzz_require(!memcmp(&a->usage, &b->usage, sizeof a->usage));
	fuzz_require(a->usage_seen == b->usage_seen && a->usage_absurd == b->usage_absurd);
	fuzz_require(a->finished == b->finished && a->complete == b->complete);
	fuzz_require(a->finish == b->finish && a->refused == b->refused);
	fuzz_require(a->cost_reported == b->cost_reported);
	fuzz_require(!strcmp(a->refusal, b->refusal) && !strcmp(a->model, b->model));
}

static inline bool fuzz_stream(const struct adapter *adapter, fuzz_words_fn *words,
			       struct rlmd_text bytes, size_t piece, struct reply *reply,
			       struct rlmd_error *err)
{
	auto_evbuffer struct evbuffer *text = evbuffer_new(), *thinking = evbuffer_new();
	struct fuzz_hearing hearing = {adapter, reply, true, words, text, thinking, false};
	struct rlmd_error expected_err = {0};
	struct reply expected;
	bool ok = fuzz_feed(&hearing, bytes, piece, err);

	if (ok && !hearing.unread) {
		fuzz_same_text(bytes_text(&reply->text.bytes), text_in(text));
		fuzz_same_text(bytes_text(&reply->thinking.bytes), text_in(thinking));
	}
	reply_init(&expected);
	hearing = (struct fuzz_hearing){.adapter = adapter, .reply = &expected};
	fuzz_require(fuzz_feed(&hearing, bytes, piece, &expected_err) == ok);
	fuzz_require(!strcmp(err->text, expected_err.text));
	fuzz_same(reply, &expected);
	reply_done(&expected);
	return ok;
}

/* Read as it comes, and taken in steps, a whole answer is the same. */
static inline void fuzz_steps(const struct adapter *adapter, struct rlmd_text bytes,
			      const struct reply *expected, bool fine)
{
	struct json_ahead ahead = {0};
	struct rlmd_error err = {0};
	struct reply reply;
	bool ok;

	json_ahead_feed(&ahead, text_slice(bytes, 0, bytes.size / 2));
	json_ahead_feed(&ahead, bytes);
	reply_init(&reply);
	reply.ahead = &ahead;
	reply.at_once = 1;
	ok = adapter->whole(&reply, bytes, &err);
	while (ok && reply_waits(&reply))
		ok = reply_go_on(&reply, 100, &err);
	fuzz_require(ok == fine);
	if (ok)
		fuzz_same(&reply, expected);
	reply_done(&reply);
	json_ahead_done(&ahead);
}

static inline int fuzz_adapter(const struct adapter *adapter, fuzz_words_fn *words,
			       const uint8_t *data, size_t size)
{
	struct rlmd_error err = {0};
	struct reply reply;
	struct rlmd_text bytes;
	bool ok;

	if (!size)
		return 0;
	bytes = text_from(data + 1, size - 1);
	reply_init(&reply);
	if (*data)
		ok = fuzz_stream(adapter, words, bytes, *data, &reply, &err);
	else
		ok = adapter->whole(&reply, bytes, &err);
	if (!*data)
		fuzz_steps(adapter, bytes, &reply, ok);
	fuzz_check(&reply, ok, &err);
	reply_done(&reply);
	return 0;
}

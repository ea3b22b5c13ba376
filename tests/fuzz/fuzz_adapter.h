/*
 * tests/fuzz/fuzz_adapter.h - what holds for the answer of any adapter to any bytes.
 *
 * The first byte of the input chooses: a whole body, or a stream cut into pieces of that size.
 */
#pragma once

#include <event2/buffer.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "llm/adapter.h"
#include "llm/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_hearing {
	const struct adapter *adapter;
	struct reply *reply;
};

static inline bool fuzz_hear(void *owner, struct rlmd_text event, struct rlmd_text data,
			     struct rlmd_error *err)
{
	struct fuzz_hearing *hearing = owner;

	return hearing->adapter->event(hearing->reply, event, data, err);
}

static inline bool fuzz_stream(const struct adapter *adapter, struct rlmd_text bytes, size_t piece,
			       struct reply *reply, struct rlmd_error *err)
{
	struct fuzz_hearing hearing = {adapter, reply};
	struct stream *stream = stream_new(adapter->framing, fuzz_hear, &hearing);
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
	size_t size = evbuffer_get_length(reply->text);

	fuzz_require(ok == (err->kind == RLMD_ERROR_NONE));
	fuzz_require(usage->input >= 0 && usage->output >= 0 && usage->reasoning >= 0);
	fuzz_require(usage->cache_read >= 0 && usage->cache_write >= 0);
	fuzz_require(usage->cache_write_1h >= 0 && usage->reasoning <= usage->output);
	fuzz_require(usage->cache_read + usage->cache_write + usage->cache_write_1h <=
		     usage->input);
	fuzz_require(reply->cost_reported >= -1);
	fuzz_require(!reply->finished || reply->complete);
	fuzz_require(text_is_utf8(text_from(evbuffer_pullup(reply->text, -1), size)));
	fuzz_require(text_is_utf8(text_of(reply->refusal)) && text_is_utf8(text_of(reply->model)));
}

static inline int fuzz_adapter(const struct adapter *adapter, const uint8_t *data, size_t size)
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
		ok = fuzz_stream(adapter, bytes, *data, &reply, &err);
	else
		ok = adapter->whole(&reply, bytes, &err);
	fuzz_check(&reply, ok, &err);
	reply_done(&reply);
	return 0;
}

/*
 * pool/open_calls.h - the calls of one worker that nobody has answered yet.
 *
 * They are few by construction: whoever notes them stops reading when it is full.
 * The weight of a call is the bytes that are kept of it until then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OPEN_CALLS_MAX = 64,
	OPEN_CALLS_WEIGHT_MAX = 32 << 20, /* bytes that they take here; the last may exceed it */
};

/* Embed it; zero is empty. */
struct open_calls {
	struct {
		int64_t id;
		size_t weight;
	} calls[OPEN_CALLS_MAX];
	size_t count, weight;
};

bool open_calls_add(struct open_calls *, int64_t id,
		    size_t weight);                      /* false: `id` is in it; not full */
bool open_calls_remove(struct open_calls *, int64_t id); /* false: it is not in it */
bool open_calls_full(const struct open_calls *);
/* The bytes that may be attached to one more call; the first may have as many as a frame. */
size_t open_calls_room(const struct open_calls *);

/*
 * llm/intake.h - what has come of an answer and was not taken yet.
 *
 * A server may send faster than its words are read. So libcurl is held, and with
 * it the server, while there is enough for one callback: what comes of a stream
 * in one turn of the loop is bounded, and so is the memory for it.
 */
#pragma once

#include <curl/curl.h>
#include <event2/buffer.h>
#include <stdbool.h>
#include <stddef.h>

/* Embed it. */
struct intake {
	struct evbuffer *bytes; /* owned: what is to be taken */
	size_t size, max;       /* of all that came; of what may come */
	bool held;              /* libcurl has more, and waits for intake_resume() */
};

void intake_init(struct intake *, size_t max);
void intake_done(struct intake *);

/* What libcurl's write callback returns. `ret_taken`: the bytes were added; else they come again,
 * or are beyond the most. */
size_t intake_add(struct intake *, const char *bytes, size_t size, bool *ret_taken);

/* Where enough was taken, libcurl goes on. Not from inside of libcurl, whose write callback may
 * come before this returns. */
void intake_resume(struct intake *, CURL *);

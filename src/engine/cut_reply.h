/*
 * engine/cut_reply.h - a reply that max_tokens has cut, kept while it is asked for again.
 */
#pragma once

#include <stdint.h>

#include "llm/llm.h"

struct evbuffer;

struct cut_reply {
	struct llm_response response;     /* its texts are ours */
	struct evbuffer *text, *thinking; /* owned */
	char *model;                      /* owned */
	int64_t limit;                    /* the max_tokens that cut it */
};

struct cut_reply *cut_reply_new(const struct llm_response *, int64_t limit);
void cut_reply_free(struct cut_reply *); /* NULL is fine */

/* Adds what another attempt at the same call came to. */
void cut_reply_add(struct llm_response *sum, const struct llm_response *other);

/*
 * llm/model_list.h - the sizes of models, as a server of one's own tells them in its list.
 *
 * vLLM's GET /models has a model's `max_model_len`, llama.cpp's its `meta.n_ctx`, OpenRouter's its
 * `context_length`. A request that is made for the true window needs no refusal to learn it from. A
 * list that does not come, or that says nothing, changes nothing, and nobody is told of it.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "base/text.h"
#include "llm/room.h"

struct http;
struct model_list;

/* A model by its name in the list; or "", of a server that has one model, whatever that is called.
 */
typedef void model_list_fn(void *owner, const char *model, const struct room *);

/* Reads a list, and tells the models whose sizes it has. */
void model_list_read(struct rlmd_text json, model_list_fn *, void *owner);

/*
 * Asks for the list, once. The strings are lent during the call. `fn` comes out of the loop, before
 * those who wait go on.
 */
struct model_list *model_list_start(struct http *, const char *url, const char *const *headers,
				    model_list_fn *, void *owner);
void model_list_free(struct model_list *); /* NULL is fine; nobody may wait any more */

/* Somebody who wants the sizes. Embed it; zero waits for nothing. */
struct model_list_waiter {
	void (*go)(void *owner);
	void *owner;             /* lent */
	struct model_list *list; /* lent: that it waits for; or NULL */
	TAILQ_ENTRY(model_list_waiter) entry;
};

/* False: there is nothing to wait for, and never a callback. */
bool model_list_wait(struct model_list *, struct model_list_waiter *);
void model_list_wait_no_more(struct model_list_waiter *);

#include "llm/model_list.h"

#include <event2/buffer.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "llm/request.h"
#include "net/http.h"

enum {
	LIST_MAX = 4 << 20, /* bytes: OpenRouter's has half a million */
	LIST_DEPTH = 16,
	LIST_MS = 2000, /* a call may wait for it so long */
};

struct model_list {
	struct http_transfer *transfer; /* owned; NULL: it is over */
	struct evbuffer *answer;        /* owned */
	int status;
	model_list_fn *fn;
	void *owner; /* lent */
	TAILQ_HEAD(, model_list_waiter) waiters;
};

/* --- reading ------------------------------------------------------------------------------- */

static int64_t count_of(const json_t *object, const char *key)
{
	int64_t count = json_get_integer(object, key, 0);

	return count > 0 && count <= LLM_COUNT_MAX ? count : 0;
}

static struct room room_of(const json_t *model)
{
	struct room room = {.window = count_of(model, "max_model_len")};

	if (!room.window)
		room.window = count_of(json_object_get(model, "meta"), "n_ctx");
	if (!room.window)
		room.window = count_of(model, "context_length");
	room.output = count_of(json_object_get(model, "top_provider"), "max_completion_tokens");
	return room;
}

void model_list_read(struct rlmd_text json, model_list_fn *fn, void *owner)
{
	json_auto_t *list = json_read(json, LIST_DEPTH, NULL);
	const json_t *models = json_object_get(list, "data"), *model;
	size_t i;

	json_array_foreach (models, i, model) {
		const char *name = json_get_string(model, "id");
		struct room room = room_of(model);

		if (!room.window && !room.output)
			continue;
		if (*name)
			fn(owner, name, &room);
		if (json_array_size(models) == 1)
			fn(owner, "", &room);
	}
}

/* --- asking -------------------------------------------------------------------------------- */

static void on_status(void *owner, struct http_transfer *transfer, int status)
{
	struct model_list *list = owner;

	(void)transfer;
	list->status = status;
}

static void on_data(void *owner, struct http_transfer *transfer, struct rlmd_text data)
{
	struct model_list *list = owner;

	(void)transfer;
	buffer_add(list->answer, data.bytes, data.size);
}

static void on_done(void *owner, struct http_transfer *transfer, const struct rlmd_error *err)
{
	struct model_list *list = owner;
	struct model_list_waiter *waiter;

	list->transfer = NULL;
	if (!err && list->status == 200)
		model_list_read(text_in(list->answer), list->fn, list->owner);
	http_transfer_free(transfer);
	evbuffer_drain(list->answer, evbuffer_get_length(list->answer));
	while ((waiter = TAILQ_FIRST(&list->waiters))) {
		model_list_wait_no_more(waiter);
		waiter->go(waiter->owner);
	}
}

struct model_list *model_list_start(struct http *http, const char *url, const char *const *headers,
				    model_list_fn *fn, void *owner)
{
	struct model_list *list = xcalloc(1, sizeof *list);
	struct http_request request = {
		.url = url,
		.headers = headers,
		.deadline = clock_ms() + LIST_MS,
		.idle_ms = LIST_MS,
		.max_size = LIST_MAX,
	};

	list->answer = buffer_new();
	list->fn = fn;
	list->owner = owner;
	TAILQ_INIT(&list->waiters);
	list->transfer = http_start(http, &request, on_status, on_data, on_done, list);
	return list;
}

void model_list_free(struct model_list *list)
{
	if (!list)
		return;
	http_transfer_free(list->transfer);
	evbuffer_free(list->answer);
	free(list);
}

bool model_list_wait(struct model_list *list, struct model_list_waiter *waiter)
{
	if (!list || !list->transfer)
		return false;
	waiter->list = list;
	TAILQ_INSERT_TAIL(&list->waiters, waiter, entry);
	return true;
}

void model_list_wait_no_more(struct model_list_waiter *waiter)
{
	if (!waiter->list)
		return;
	TAILQ_REMOVE(&waiter->list->waiters, waiter, entry);
	waiter->list = NULL;
}

#include "engine/cut_reply.h"

#include <event2/buffer.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/money.h"

static struct evbuffer *copy_of(struct rlmd_text *text)
{
	struct evbuffer *copy = evbuffer_new();

	evbuffer_add(copy, text->bytes, text->size);
	*text = text_in(copy);
	return copy;
}

struct cut_reply *cut_reply_new(const struct llm_response *response, int64_t limit)
{
	struct cut_reply *cut = xcalloc(1, sizeof *cut);

	*cut = (struct cut_reply){.response = *response, .limit = limit};
	cut->response.bytes = NULL;
	cut->text = copy_of(&cut->response.text);
	cut->thinking = copy_of(&cut->response.thinking);
	if (response->model)
		cut->response.model = cut->model = xstrdup(response->model);
	return cut;
}

void cut_reply_free(struct cut_reply *cut)
{
	if (!cut)
		return;
	evbuffer_free(cut->text);
	evbuffer_free(cut->thinking);
	free(cut->model);
	free(cut);
}

void cut_reply_add(struct llm_response *sum, const struct llm_response *other)
{
	llm_usage_add(&sum->usage, &other->usage);
	sum->cost = money_add(sum->cost, other->cost);
	sum->cost_known &= other->cost_known;
	sum->attempts += other->attempts;
	sum->billed += other->billed;
	sum->duration_ms += other->duration_ms;
}

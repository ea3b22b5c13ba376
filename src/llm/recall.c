#include "llm/recall.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"

struct llm_recall {
	struct cache *cache; /* lent */
	struct cache_place place;
	bool found;
	struct exchange exchange; /* owned: what was found */
};

void recalls_init(struct recalls *recalls, struct cache *cache, int64_t age_ms, const char *tenant)
{
	*recalls = (struct recalls){
		.cache = cache,
		.age_ms = age_ms,
		.tenant = tenant ? xstrdup(tenant) : NULL,
		.seen = json_object(),
	};
}

void recalls_done(struct recalls *recalls)
{
	free(recalls->tenant);
	json_decref(recalls->seen);
}

static int64_t count(struct recalls *recalls, const char *asker, const char *name)
{
	auto_free char *key = xasprintf("%s %s", asker, name);
	int64_t before = json_get_integer(recalls->seen, key, 0);

	json_object_set_new_nocheck(recalls->seen, key, json_integer(before + 1));
	return before;
}

struct llm_recall *recall_new(struct recalls *recalls, const struct rlmd_provider *provider,
			      const struct llm_request *request, const char *asker)
{
	struct llm_recall *recall;

	if (!recalls->cache)
		return NULL;
	recall = xcalloc(1, sizeof *recall);
	recall->cache = recalls->cache;
	cache_place_init(&recall->place, provider, recalls->tenant, request);
	cache_place_number(&recall->place, count(recalls, asker, recall->place.name));
	recall->found = cache_find(recall->cache, &recall->place, recalls->age_ms,
				   &recall->exchange);
	return recall;
}

bool llm_recalled(const struct llm_recall *recall)
{
	return recall && recall->found;
}

void llm_recall_free(struct llm_recall *recall)
{
	if (!recall)
		return;
	exchange_done(&recall->exchange);
	free(recall);
}

struct llm_response recall_response(const struct llm_recall *recall)
{
	const struct exchange *exchange = &recall->exchange;

	return (struct llm_response){
		.text = text_from(exchange->text, exchange->text_size),
		.thinking = text_from(exchange->thinking, exchange->thinking_size),
		.finish = exchange->finish,
		.cost_known = true,
		.model = exchange->model,
		.cached = true,
	};
}

bool recall_keep(const struct llm_recall *recall, const struct llm_response *response,
		 struct rlmd_error *err)
{
	if (response->finish != LLM_FINISH_STOP || response->repeating || response->overlong ||
	    response->cached || !response->text.size)
		return true;
	return cache_keep(recall->cache, &recall->place, response, err);
}

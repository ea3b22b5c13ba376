#include "llm/recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "llm/registry.h"

struct llm_recall {
	struct cache *cache; /* lent */
	struct cache_place place;
	bool found;
	struct exchange exchange; /* owned: what was found */
};

bool recalls_open(struct recalls *recalls, struct registry *registry,
		  const struct llm_config *config, struct rlmd_error *err)
{
	struct cache *cache;

	if (!config->cache_dir || config->replay_dir || config->offline)
		return true;
	cache = registry_cache(registry, config->cache_dir, config->cache_size, err);
	if (!cache)
		return false;
	*recalls = (struct recalls){
		.cache = cache,
		.age_ms = config->cache_age_ms,
		.tenant = config->tenant ? xstrdup(config->tenant) : NULL,
		.seen = json_object(),
	};
	return true;
}

void recalls_done(struct recalls *recalls)
{
	free(recalls->tenant);
	json_decref(recalls->seen);
}

/* Turns and the answer at their end are known by that: a run that fails forgets them. */
static const char *word_of(enum llm_kind kind)
{
	return kind == LLM_QUERY || kind == LLM_DIRECT ? "query" : "turn";
}

static int64_t count(struct recalls *recalls, const char *asker, enum llm_kind kind,
		     const char *name)
{
	auto_free char *key = xasprintf("%s %s %s", asker, word_of(kind), name);
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
	cache_place_number(&recall->place,
			   count(recalls, asker, request->kind, recall->place.name));
	recall->found = cache_find(recall->cache, &recall->place, recalls->age_ms,
				   &recall->exchange);
	return recall;
}

void recalls_forget(struct recalls *recalls, const char *asker)
{
	auto_free char *begin = xasprintf("%s %s ", asker, word_of(LLM_TURN));
	size_t size = strlen(begin);
	const char *key;
	json_t *times;

	json_object_foreach (recalls->seen, key, times)
		for (int64_t n = 0; !strncmp(key, begin, size) && n < json_integer_value(times);
		     n++) {
			struct cache_place place;

			snprintf(place.name, sizeof place.name, "%s", key + size);
			cache_place_number(&place, n);
			cache_forget(recalls->cache, place.name);
		}
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

#include "llm/recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "base/number.h"
#include "llm/registry.h"

struct llm_recall {
	struct cache *cache; /* lent; NULL: none */
	struct cache_place place;
	struct journal *journal; /* lent; NULL: none */
	char key[JOURNAL_KEY_SIZE];
	int64_t number;
	bool decides;   /* as of the request */
	bool cancelled; /* it was, the last time */
	bool found, journaled;
	struct exchange exchange; /* owned: what was found */
	struct llm_bill bill;     /* of what led to nothing */
};

static bool open_cache(struct recalls *recalls, struct registry *registry,
		       const struct llm_config *config, struct rlmd_error *err)
{
	if (!config->cache_dir)
		return true;
	recalls->cache = registry_cache(registry, config->cache_dir, config->cache_size, err);
	recalls->age_ms = config->cache_age_ms;
	recalls->tenant = config->tenant ? xstrdup(config->tenant) : NULL;
	recalls->seen = json_object();
	return recalls->cache;
}

static bool open_journal(struct recalls *recalls, struct registry *registry,
			 const struct llm_config *config, struct rlmd_error *err)
{
	if (!config->journal)
		return true;
	recalls->journal = journal_new(registry_base(registry), config->journal,
				       config->journal_broken, config->journal_owner, err);
	return recalls->journal;
}

bool recalls_open(struct recalls *recalls, struct registry *registry,
		  const struct llm_config *config, struct rlmd_error *err)
{
	if (config->replay_dir || config->offline)
		return true;
	return open_cache(recalls, registry, config, err) &&
	       open_journal(recalls, registry, config, err);
}

void recalls_done(struct recalls *recalls)
{
	journal_free(recalls->journal);
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

	return json_count(recalls->seen, key);
}

/* --- the journal -------------------------------------------------------------------- */

static void add_bill(struct llm_bill *bill, const struct exchange *exchange)
{
	llm_usage_add(&bill->usage, &exchange->usage);
	bill->cost = money_add(bill->cost, int64_max(exchange->cost, 0));
	bill->cost_unknown |= exchange->cost < 0;
	bill->calls++;
}

/* What an attempt ended by, and what it did not want any more, is asked for again. What was too
 * long for its model is no end: it was said in fewer words. */
static bool leads_on(const struct llm_recall *recall)
{
	enum rlmd_error_kind error = recall->exchange.error.kind;

	return !recall->exchange.cancelled &&
	       !(recall->decides && error && error != RLMD_ERROR_CONTEXT_OVERFLOW);
}

static bool find_entry(struct llm_recall *recall)
{
	json_auto_t *entry = NULL;
	struct rlmd_error err = {0};

	recall->number = journal_number(recall->journal, recall->key);
	entry = journal_find(recall->journal, recall->key, recall->number);
	if (entry && exchange_read(entry, &recall->exchange, &err))
		return true;
	if (entry)
		journal_refuse(recall->journal, recall->key, recall->number, &err);
	return false;
}

static void look_into_journal(struct llm_recall *recall)
{
	while (!recall->found && find_entry(recall)) {
		recall->found = recall->journaled = leads_on(recall);
		recall->cancelled = recall->exchange.cancelled;
		if (recall->found)
			return;
		add_bill(&recall->bill, &recall->exchange);
		exchange_done(&recall->exchange);
	}
}

/* --- the cache ---------------------------------------------------------------------- */

/* Nothing is billed for it. */
static void look_into_cache(struct llm_recall *recall, struct recalls *recalls,
			    const struct rlmd_provider *provider, const struct llm_request *request,
			    const char *asker)
{
	cache_place_init(&recall->place, provider, recalls->tenant, request);
	cache_place_number(&recall->place,
			   count(recalls, asker, request->kind, recall->place.name));
	if (recall->found ||
	    !cache_find(recall->cache, &recall->place, recalls->age_ms, &recall->exchange))
		return;
	recall->found = true;
	recall->exchange.cached = recall->exchange.usage_given = true;
	recall->exchange.usage = (struct llm_usage){0};
	recall->exchange.cost = 0;
}

/* --- both --------------------------------------------------------------------------- */

struct llm_recall *recall_new(struct recalls *recalls, const struct rlmd_provider *provider,
			      const struct llm_request *request, const char *asker)
{
	struct llm_recall *recall;

	if (!recalls->cache && !recalls->journal)
		return NULL;
	recall = xcalloc(1, sizeof *recall);
	recall->cache = recalls->cache;
	recall->journal = recalls->journal;
	recall->decides = request->decides;
	if (recall->journal) {
		journal_key(request, recall->key);
		look_into_journal(recall);
	}
	if (recall->cache)
		look_into_cache(recall, recalls, provider, request, asker);
	return recall;
}

void llm_recall_again(struct llm_recall *recall)
{
	if (!recall || !recall->journal)
		return;
	exchange_done(&recall->exchange);
	recall->found = recall->journaled = recall->cancelled = false;
	look_into_journal(recall);
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

bool llm_recalled_paid(const struct llm_recall *recall)
{
	return recall && recall->journaled;
}

struct llm_bill llm_recall_bill(struct llm_recall *recall)
{
	struct llm_bill bill = {0};

	if (recall) {
		bill = recall->bill;
		recall->bill = (struct llm_bill){0};
	}
	return bill;
}

const struct exchange *recall_exchange(const struct llm_recall *recall)
{
	return &recall->exchange;
}

bool recall_was_cancelled(const struct llm_recall *recall)
{
	return recall && recall->cancelled;
}

bool recall_keep(const struct llm_recall *recall, const struct llm_response *response,
		 struct rlmd_error *err)
{
	if (!recall->cache || response->finish != LLM_FINISH_STOP || response->repeating ||
	    response->overlong || response->cached || !response->text.size)
		return true;
	return cache_keep(recall->cache, &recall->place, response, err);
}

static struct rlmd_amount bill_of(const struct llm_usage *usage, int64_t cost)
{
	return (struct rlmd_amount){int64_max(cost, 0), usage->input + usage->output};
}

struct journal_keep *recall_journal(const struct llm_recall *recall,
				    const struct llm_response *response,
				    const struct rlmd_error *err, journal_kept_fn *kept,
				    void *owner)
{
	if (!recall || !recall->journal || recall->journaled)
		return NULL;
	return journal_keep(recall->journal, recall->key, recall->number,
			    exchange_answer(response, err),
			    bill_of(&response->usage, response->cost), kept, owner);
}

void recall_journal_cancelled(const struct llm_recall *recall, const struct llm_request *request,
			      const struct llm_usage *usage, int64_t cost)
{
	const struct llm_response used = {
		.usage = *usage, .cost = cost, .cost_known = true, .model = request->model};
	json_t *entry;

	if (!recall || !recall->journal || recall->journaled)
		return;
	entry = exchange_answer(&used, NULL);
	json_object_set_new(entry, "cancelled", json_true());
	journal_keep(recall->journal, recall->key, recall->number, entry, bill_of(usage, cost),
		     NULL, NULL);
}

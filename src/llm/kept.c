#include "llm/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/money.h"
#include "base/number.h"
#include "base/timer.h"
#include "llm/llm.h"
#include "llm/registry.h"

enum { AT_ONCE = 1 << 20 }; /* bytes that are read or written: a millisecond of the loop, or two */

struct kept_lookup {
	struct cache *cache; /* lent; NULL: none */
	struct cache_address address;
	struct journal *journal; /* lent; NULL: none */
	char *key;               /* owned: the journal's */
	int64_t number;
	bool decides;   /* as of the request */
	bool cancelled; /* it was, the last time */
	bool found, paid;
	struct exchange exchange; /* owned: what was found */
	struct kept_bill bill;    /* of what led to nothing */

	struct cache_reading *reading; /* owned: the cache's entry, until all of it is read */
	struct timer *timer;           /* owned: the next part of that; or NULL */
	kept_done_fn *read;            /* is waited for */
	void *owner;                   /* lent: its argument */
};

static bool open_recording(struct kept *kept, struct registry *registry,
			   const struct llm_config *config, struct rlmd_error *err)
{
	if (!config->record_dir && !config->replay_dir)
		return true;
	kept->recording = recording_new(registry_base(registry), config->record_dir,
					config->replay_dir, &kept->keys, err);
	return kept->recording;
}

static bool open_cache(struct kept *kept, struct registry *registry,
		       const struct llm_config *config, struct rlmd_error *err)
{
	if (!config->cache_dir)
		return true;
	kept->cache = registry_cache(registry, config->cache_dir, config->cache_size, err);
	kept->age_ms = config->cache_age_ms;
	kept->tenant = config->tenant ? xstrdup(config->tenant) : NULL;
	return kept->cache;
}

static bool open_journal(struct kept *kept, struct registry *registry,
			 const struct llm_config *config, struct rlmd_error *err)
{
	if (!config->journal)
		return true;
	kept->journal = journal_new(registry_base(registry), config->journal,
				    config->journal_broken, config->journal_owner, err);
	return kept->journal;
}

bool kept_open(struct kept *kept, struct registry *registry, const struct llm_config *config,
	       struct rlmd_error *err)
{
	kept->base = registry_base(registry);
	kept->seen = json_make_object();
	if (!open_recording(kept, registry, config, err))
		return false;
	return config->replay_dir || config->offline ||
	       (open_cache(kept, registry, config, err) &&
		open_journal(kept, registry, config, err));
}

void kept_done(struct kept *kept)
{
	recording_free(kept->recording);
	journal_free(kept->journal);
	key_list_done(&kept->keys);
	free(kept->tenant);
	json_decref(kept->seen);
}

bool kept_replays(const struct kept *kept)
{
	return kept->recording && recording_replays(kept->recording);
}

/* --- the journal ---------------------------------------------------------------------- */

static void add_bill(struct kept_bill *bill, const struct exchange *exchange)
{
	request_add_usage(&bill->usage, &exchange->usage);
	bill->cost = money_add(bill->cost, int64_max(exchange->cost, 0));
	bill->cost_unknown |= exchange->cost < 0;
	bill->calls++;
}

/* An exchange that ended an attempt, or was cancelled, is asked for again. A request that was too
 * long for its model does not end an attempt: the same was then said in fewer words. */
static bool leads_on(const struct kept_lookup *lookup)
{
	enum rlmd_error_kind error = lookup->exchange.error.kind;

	return !lookup->exchange.cancelled &&
	       !(lookup->decides && error && error != RLMD_ERROR_CONTEXT_OVERFLOW);
}

static bool find_entry(struct kept_lookup *lookup)
{
	json_auto_t *entry = NULL;
	struct rlmd_error err = {0};

	lookup->number = journal_number(lookup->journal, lookup->key);
	entry = journal_find(lookup->journal, lookup->key, lookup->number);
	if (entry && exchange_read(entry, &lookup->exchange, &err))
		return true;
	if (entry)
		journal_refuse(lookup->journal, lookup->key, lookup->number, &err);
	return false;
}

static void look_into_journal(struct kept_lookup *lookup)
{
	while (!lookup->found && find_entry(lookup)) {
		lookup->found = lookup->paid = leads_on(lookup);
		lookup->cancelled = lookup->exchange.cancelled;
		if (lookup->found)
			return;
		add_bill(&lookup->bill, &lookup->exchange);
		exchange_done(&lookup->exchange);
	}
}

/* --- the cache ------------------------------------------------------------------------ */

/* Turns and the answer at their end share a word: a run that fails forgets them. */
static const char *word_of(enum llm_kind kind)
{
	return kind == LLM_QUERY || kind == LLM_DIRECT ? "query" : "turn";
}

/* The next part of an entry. False: it was the last. Nothing is billed for what is found. */
static bool read_on(struct kept_lookup *lookup)
{
	if (cache_read(lookup->reading, AT_ONCE))
		return true;
	if (cache_take(lookup->reading, &lookup->exchange)) {
		lookup->found = true;
		lookup->exchange.cached = lookup->exchange.usage_given = true;
		lookup->exchange.usage = (struct llm_usage){0};
		lookup->exchange.cost = 0;
	}
	cache_reading_free(take_pointer(&lookup->reading));
	return false;
}

static void on_part(void *owner)
{
	struct kept_lookup *lookup = owner;

	if (read_on(lookup))
		timer_post(lookup->timer);
	else
		lookup->read(lookup->owner);
}

static void look_into_cache(struct kept_lookup *lookup, struct kept *kept,
			    const struct rlmd_provider *provider, const struct llm_request *request,
			    const char *asker)
{
	auto_free char *asked = NULL;

	cache_address_init(&lookup->address, provider, kept->tenant, request);
	asked = xasprintf("%s %s %s", asker, word_of(request->kind), lookup->address.name);
	cache_address_number(&lookup->address, json_count(kept->seen, asked));
	if (!lookup->found)
		lookup->reading = cache_find(lookup->cache, &lookup->address, kept->age_ms);
	if (lookup->reading && read_on(lookup))
		lookup->timer = timer_new(kept->base, on_part, lookup);
}

void kept_forget(struct kept *kept, const char *asker)
{
	auto_free char *begin = xasprintf("%s %s ", asker, word_of(LLM_TURN));
	size_t size = strlen(begin);
	const char *key;
	json_t *times;

	if (!kept->cache)
		return;
	json_object_foreach (kept->seen, key, times)
		for (int64_t n = 0; !strncmp(key, begin, size) && n < json_integer_value(times);
		     n++) {
			struct cache_address address;

			snprintf(address.name, sizeof address.name, "%s", key + size);
			cache_address_number(&address, n);
			cache_forget(kept->cache, address.name);
		}
}

/* --- both ------------------------------------------------------------------------------ */

struct kept_lookup *kept_look(struct kept *kept, const struct rlmd_provider *provider,
			      const struct llm_request *request, const char *asker)
{
	struct kept_lookup *lookup;

	if (!kept->cache && !kept->journal)
		return NULL;
	lookup = xcalloc(1, sizeof *lookup);
	lookup->cache = kept->cache;
	lookup->journal = kept->journal;
	lookup->decides = request->decides;
	if (lookup->journal) {
		lookup->key = exchange_name(request);
		look_into_journal(lookup);
	}
	if (lookup->cache)
		look_into_cache(lookup, kept, provider, request, asker);
	return lookup;
}

void kept_lookup_free(struct kept_lookup *lookup)
{
	if (!lookup)
		return;
	cache_reading_free(lookup->reading);
	timer_free(lookup->timer);
	exchange_done(&lookup->exchange);
	free(lookup->key);
	free(lookup);
}

bool kept_wait(struct kept_lookup *lookup, kept_done_fn *fn, void *owner)
{
	if (!lookup || !lookup->reading)
		return false;
	lookup->read = fn;
	lookup->owner = owner;
	timer_post(lookup->timer);
	return true;
}

void kept_look_again(struct kept_lookup *lookup)
{
	if (!lookup || !lookup->journal)
		return;
	exchange_done(&lookup->exchange);
	lookup->found = lookup->paid = lookup->cancelled = false;
	look_into_journal(lookup);
}

bool kept_is_found(const struct kept_lookup *lookup)
{
	return lookup && lookup->found;
}

bool kept_is_paid(const struct kept_lookup *lookup)
{
	return lookup && lookup->paid;
}

bool kept_was_cancelled(const struct kept_lookup *lookup)
{
	return lookup && lookup->cancelled;
}

const struct exchange *kept_exchange(const struct kept_lookup *lookup)
{
	return &lookup->exchange;
}

struct kept_bill kept_bill(struct kept_lookup *lookup)
{
	struct kept_bill bill = {0};

	if (lookup) {
		bill = lookup->bill;
		lookup->bill = (struct kept_bill){0};
	}
	return bill;
}

/* --- keeping --------------------------------------------------------------------------- */

char *kept_name(struct kept *kept, const struct llm_request *request)
{
	auto_free char *key = kept->recording ? exchange_name(request) : NULL;

	return key ? xasprintf("%s-%lld.json", key, (long long)json_count(kept->seen, key)) : NULL;
}

/* An answer that may be given to another call. */
static bool may_be_cached(const struct llm_response *response)
{
	return response->finish == LLM_FINISH_STOP && !response->repeating && !response->overlong &&
	       !response->cached && response->text.size;
}

static struct rlmd_amount bill_of(const struct llm_usage *usage, int64_t cost)
{
	return (struct rlmd_amount){int64_max(cost, 0), usage->input + usage->output};
}

enum { RECORDED, CACHED, FILES };

/* The outcome of a request, on its way to where it is kept. */
struct kept_writing {
	const struct llm_request *request; /* lent, as are the others */
	const struct llm_response *response;
	const struct rlmd_error *err;
	struct llm_warnings *warnings;
	struct exchange_file *files[FILES]; /* owned; NULL: off, or done */
	struct timer *timer;                /* owned: of the next step; NULL: one was enough */
	struct journal_keep *journaled;     /* owned; NULL: not yet, or there is no journal */
	kept_done_fn *done;
	void *owner; /* lent */
};

static void warn_of(const struct kept_writing *writing, int file, const struct rlmd_error *why)
{
	request_warn(writing->warnings,
		     file == RECORDED ? "this call is not recorded: %s"
				      : "an answer is not kept: %s",
		     why->text);
}

/* NULL: it could not be opened. */
static void take_file(struct kept_writing *writing, int file, struct exchange_file *opened,
		      const struct rlmd_error *why)
{
	writing->files[file] = opened;
	if (!opened)
		warn_of(writing, file, why);
}

static void open_files(struct kept_writing *writing, struct kept *kept, const char *name)
{
	const struct kept_lookup *lookup = writing->request->lookup;
	struct rlmd_error why;

	if (name && recording_records(kept->recording))
		take_file(writing, RECORDED,
			  recording_keep(kept->recording, name, writing->request, writing->response,
					 false, writing->err, &why),
			  &why);
	if (!writing->err && lookup && lookup->cache && may_be_cached(writing->response))
		take_file(writing, CACHED,
			  cache_keep(lookup->cache, &lookup->address, writing->response, &why),
			  &why);
}

/* One step of a file. False: there is no more to do. */
static bool write_file(struct kept_writing *writing, int file)
{
	enum exchange_progress progress;
	struct rlmd_error why;

	if (!writing->files[file])
		return false;
	progress = exchange_write(writing->files[file], AT_ONCE, &why);
	if (progress == EXCHANGE_FAILED)
		warn_of(writing, file, &why);
	if (progress != EXCHANGE_MORE)
		exchange_file_free(take_pointer(&writing->files[file]));
	return progress == EXCHANGE_MORE;
}

/* The recording comes last: it says in which order answers were used. */
static bool write_on(struct kept_writing *writing)
{
	return write_file(writing, CACHED) || write_file(writing, RECORDED);
}

static void end(struct kept_writing *writing)
{
	kept_done_fn *done = writing->done;
	void *owner = writing->owner;

	kept_writing_free(writing);
	done(owner);
}

static void on_journaled(void *owner)
{
	struct kept_writing *writing = owner;

	writing->journaled = NULL;
	end(writing);
}

/* False: there is no journal that wants it. */
static bool give_to_journal(struct kept_writing *writing)
{
	const struct kept_lookup *lookup = writing->request->lookup;
	const struct llm_response *response = writing->response;

	if (!lookup || !lookup->journal || lookup->paid)
		return false;
	writing->journaled = journal_keep(lookup->journal, lookup->key, lookup->number,
					  exchange_answer(response, writing->err),
					  bill_of(&response->usage, response->cost), on_journaled,
					  writing);
	return true;
}

static void on_step(void *owner)
{
	struct kept_writing *writing = owner;

	if (write_on(writing))
		timer_post(writing->timer);
	else if (!give_to_journal(writing))
		end(writing);
}

struct kept_writing *kept_keep(struct kept *kept, const char *name,
			       const struct llm_request *request,
			       const struct llm_response *response, const struct rlmd_error *err,
			       struct llm_warnings *warnings, kept_done_fn *done, void *owner)
{
	struct kept_writing *writing;

	if (!name && !request->lookup)
		return NULL;
	writing = xcalloc(1, sizeof *writing);
	*writing = (struct kept_writing){
		.request = request,
		.response = response,
		.err = err,
		.warnings = warnings,
		.done = done,
		.owner = owner,
	};
	open_files(writing, kept, name);
	if (write_on(writing)) {
		writing->timer = timer_new(kept->base, on_step, writing);
		timer_post(writing->timer);
	} else if (!give_to_journal(writing)) {
		kept_writing_free(take_pointer(&writing));
	}
	return writing;
}

bool kept_is_journaled(const struct kept_writing *writing)
{
	return writing->journaled;
}

void kept_writing_free(struct kept_writing *writing)
{
	if (!writing)
		return;
	for (int i = 0; i < FILES; i++)
		exchange_file_free(writing->files[i]);
	timer_free(writing->timer);
	journal_forget(writing->journaled);
	free(writing);
}

static void record_cancelled(struct kept *kept, const char *name, const struct llm_request *request,
			     const struct llm_response *used)
{
	struct exchange_file *file = recording_keep(kept->recording, name, request, used, true,
						    NULL, NULL);

	if (file)
		exchange_write(file, SIZE_MAX, NULL);
	exchange_file_free(file);
}

void kept_keep_cancelled(struct kept *kept, const char *name, const struct llm_request *request,
			 const struct llm_usage *usage, int64_t cost, bool sent)
{
	const struct kept_lookup *lookup = request->lookup;
	const struct llm_response used = {
		.usage = *usage, .cost = cost, .cost_known = true, .model = request->model};
	json_t *entry;

	if (name && recording_records(kept->recording))
		record_cancelled(kept, name, request, &used);
	if (!sent || !lookup || !lookup->journal || lookup->paid)
		return;
	entry = exchange_answer(&used, NULL);
	json_put(entry, "cancelled", json_true());
	journal_keep(lookup->journal, lookup->key, lookup->number, entry, bill_of(usage, cost),
		     NULL, NULL);
}

/* --- values ------------------------------------------------------------------------------ */

void kept_value_name(struct kept *kept, struct rlmd_text asked, struct kept_value *ret)
{
	exchange_hash(asked, ret->id);
	ret->number = json_count(kept->seen, ret->id);
}

char *kept_value_find(struct kept *kept, const struct kept_value *value, size_t *ret_size)
{
	json_auto_t *entry = NULL;
	const json_t *words;

	if (kept->journal)
		entry = journal_find(kept->journal, value->id, value->number);
	if (!entry && kept->recording)
		entry = recording_find_value(kept->recording, value->id, value->number);
	words = json_object_get(entry, "told");
	if (!json_is_string(words))
		return NULL;
	*ret_size = json_text(words).size;
	return text_copy(json_text(words));
}

void kept_value_keep(struct kept *kept, const struct kept_value *value, struct rlmd_text words,
		     bool found)
{
	json_auto_t *entry = json_make("{s:o}", "told", json_from_text(words));

	if (kept->recording)
		recording_keep_value(kept->recording, value->id, value->number, entry);
	if (kept->journal && !found)
		journal_keep_first(kept->journal, value->id, value->number, json_incref(entry));
}

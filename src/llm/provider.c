#include "llm/provider.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "llm/key.h"
#include "llm/opening.h"

enum {
	REMEMBERED_MAX = 64, /* models are named by foreign code */
	NAME_MAX_SIZE = 64,
};

bool provider_check_name(const char *name, struct rlmd_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t size = strlen(name);

	if (size && size <= NAME_MAX_SIZE && strspn(name, letters) == size)
		return true;
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%.100s' is no name for a provider: 1 to %d letters, digits, - _ and "
			 "dots",
			 name, NAME_MAX_SIZE);
}

static bool read_prices(struct rlmd_provider *provider, const struct provider_config *config,
			struct rlmd_error *err)
{
	if (config->prices)
		provider->given = price_table_ref(config->prices);
	else if (config->price_table)
		provider->given = price_table_read(config->price_table, err);
	return !config->price_table || provider->given;
}

/* A key that was given goes before the environment's; what is empty is none. */
static void take_key(struct rlmd_provider *provider, const struct provider_config *config)
{
	const char *const own[] = {config->key_environment, NULL};
	const char *const *names = config->key_environment ? own : NULL;

	if (!names && provider->adapter)
		names = provider->adapter->key_env;
	if (config->custom.ask)
		return;
	provider->given_by_environment = !config->key;
	provider->given_key = config->key ? xstrdup(config->key) : key_from_environment(names);
}

static void take_settings(struct rlmd_provider *provider, const struct provider_config *config)
{
	const struct adapter *adapter = provider->adapter;
	const char *model = adapter ? adapter->default_model : config->kind;

	if (config->model && *config->model)
		model = config->model;
	provider->default_model = xstrdup(model);
	provider->name = xstrdup(config->name ? config->name : config->kind);
	provider->base_url = xstrdup(config->base_url);
	provider->key_file = xstrdup(config->key_file);
	provider->max_retries = config->max_retries;
	provider->patience_ms = config->patience_ms;
	provider->no_stream = config->no_stream;
	provider->free = config->custom.ask ? config->costs_nothing : !adapter || adapter->local;
	provider->custom = config->custom;
	provider->window = config->window;
	take_key(provider, config);
	provider->at_home = adapter && opening_at_home(provider);
}

struct rlmd_provider *provider_new(const struct provider_config *config, struct rlmd_error *err)
{
	const struct adapter *adapter = config->custom.ask ? NULL : adapter_find(config->kind);
	struct rlmd_provider *provider;
	char names[ADAPTER_NAMES_MAX];

	if (!adapter && !config->custom.ask && strcmp(config->kind, "replay") != 0) {
		error_set(err, RLMD_ERROR_USAGE, "unknown provider '%.100s'; there are %s, replay",
			  config->kind, adapter_names(names));
		return NULL;
	}
	if (config->name && !provider_check_name(config->name, err))
		return NULL;
	provider = xcalloc(1, sizeof *provider);
	provider->references = 1;
	provider->adapter = adapter;
	provider->quirks = json_object();
	provider->priced = xcalloc(1, sizeof *provider->priced);
	provider->notes = json_array();
	take_settings(provider, config);
	if (read_prices(provider, config, err))
		return provider;
	provider_unref(provider);
	return NULL;
}

struct rlmd_provider *provider_ref(struct rlmd_provider *provider)
{
	provider->references++;
	return provider;
}

static void forget_prices(struct rlmd_provider *provider)
{
	for (size_t i = 0; i < PRICED_MAX; i++)
		free(take_pointer(&provider->priced->of[i].model));
}

void provider_unref(struct rlmd_provider *provider)
{
	if (!provider || --provider->references)
		return;
	provider_unbind(provider);
	custom_done(&provider->custom);
	key_free(provider->given_key);
	free(provider->name);
	free(provider->default_model);
	free(provider->base_url);
	free(provider->key_file);
	rlmd_price_table_unref(provider->shipped);
	rlmd_price_table_unref(provider->given);
	forget_prices(provider);
	free(provider->priced);
	json_decref(provider->quirks);
	json_decref(provider->notes);
	free(provider);
}

void provider_rename(struct rlmd_provider *provider, const char *name)
{
	char *before = provider->name;

	provider->name = xstrdup(name);
	free(before);
	forget_prices(provider); /* rows may be named by it */
}

static void note_missing(struct rlmd_provider *provider, const struct rlmd_error *missing)
{
	auto_free char *note = xasprintf("prices are unknown: %s", missing->text);

	json_array_clear(provider->notes);
	json_array_append_new(provider->notes, json_from_text(text_of(note)));
}

void provider_take_prices(struct rlmd_provider *provider, struct rlmd_price_table *shipped,
			  const struct rlmd_error *missing)
{
	rlmd_price_table_unref(provider->shipped);
	provider->shipped = shipped ? price_table_ref(shipped) : NULL;
	forget_prices(provider);
	if (!shipped)
		note_missing(provider, missing);
}

bool provider_bind(struct rlmd_provider *provider, struct event_base *base, struct rlmd_error *err)
{
	if (provider->base)
		return error_set(err, RLMD_ERROR_USAGE,
				 "provider '%s' is in use already: make one for each engine",
				 provider->name);
	provider->base = base;
	provider->gate = gate_new(provider->max_retries, provider->patience_ms);
	return true;
}

void provider_unbind(struct rlmd_provider *provider)
{
	http_free(take_pointer(&provider->http));
	gate_free(take_pointer(&provider->gate));
	opening_forget(provider);
	provider->base = NULL;
}

bool provider_open(struct rlmd_provider *provider, struct rlmd_error *err)
{
	if (provider->url || provider->custom.ask)
		return true;
	if (!provider->adapter)
		return error_set(err, RLMD_ERROR_USAGE, "provider %s needs --replay DIR",
				 provider->name);
	if (!opening_find(provider, err))
		return false;
	provider->http = http_new(provider->base, err);
	if (!provider->http)
		opening_forget(provider);
	return provider->http;
}

void provider_connect(struct rlmd_provider *provider)
{
	if (provider->http)
		http_connect(provider->http, provider->url);
}

bool provider_has_key(const struct rlmd_provider *provider)
{
	const struct adapter *adapter = provider->adapter;

	return !adapter || !adapter->key_required || provider->key_file || provider->given_key ||
	       !provider->at_home;
}

bool provider_is_gateway(const struct rlmd_provider *provider)
{
	return provider->adapter && provider->adapter->spoken_by_others && !provider->at_home;
}

static bool find_price(const struct rlmd_provider *provider, const char *model, struct price *ret)
{
	const struct rlmd_price_table *tables[] = {provider->given, provider->shipped};
	const char *kind = provider->adapter ? provider->adapter->name : provider->name;
	auto_free char *full = xasprintf("%s/%s", provider->name, model);

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (tables[i] && (price_find(tables[i], kind, full, ret) ||
				  price_find(tables[i], kind, model, ret)))
			return true;
	return false;
}

/* Where it is kept, from now on at least. */
static size_t price_place(const struct rlmd_provider *provider, const char *model)
{
	struct priced *priced = provider->priced;
	size_t place;

	for (place = 0; place < PRICED_MAX; place++)
		if (priced->of[place].model && !strcmp(priced->of[place].model, model))
			return place;
	place = priced->next;
	priced->next = (place + 1) % PRICED_MAX;
	free(priced->of[place].model);
	priced->of[place].model = xstrdup(model);
	priced->of[place].known = find_price(provider, model, &priced->of[place].price);
	return place;
}

bool provider_price(const struct rlmd_provider *provider, const char *model, struct price *ret)
{
	size_t place = price_place(provider, model);

	if (provider->priced->of[place].known)
		*ret = provider->priced->of[place].price;
	return provider->priced->of[place].known;
}

bool provider_is_local(const struct rlmd_provider *provider, const char *model)
{
	struct price price;

	return (provider->adapter && provider->adapter->local) ||
	       (provider->near && !provider_price(provider, model, &price));
}

bool provider_cost(const struct rlmd_provider *provider, const char *model,
		   const struct llm_usage *usage, int64_t *ret_cost)
{
	struct price price;

	*ret_cost = 0;
	if (provider->free)
		return true;
	if (!provider_price(provider, model, &price))
		return false;
	*ret_cost = price_cost(&price, usage);
	return true;
}

bool provider_charge(const struct rlmd_provider *provider, const char *model, const char *resolved,
		     int64_t reported, const struct llm_usage *usage, struct warnings *warnings,
		     int64_t *ret_cost)
{
	bool local = provider->free && provider->adapter;

	if (reported >= 0 && !local) {
		*ret_cost = reported;
		return true;
	}
	if (provider_cost(provider, model, usage, ret_cost) ||
	    provider_cost(provider, resolved, usage, ret_cost))
		return true;
	provider_warn_unpriced(model, warnings);
	return false;
}

void provider_warn_unpriced(const char *model, struct warnings *warnings)
{
	warnings_add(warnings,
		     "the price of model '%.100s' is not known: its cost is neither counted nor "
		     "limited, but --max-tokens and --max-time hold; --price-table can give it",
		     model);
}

unsigned provider_quirks(const struct rlmd_provider *provider, const char *model)
{
	unsigned quirks = (unsigned)json_get_integer(provider->quirks, model, 0);

	return quirks | (provider->no_stream ? QUIRK_NO_STREAM : 0);
}

unsigned provider_learn(struct rlmd_provider *provider, const char *model, unsigned quirks,
			unsigned quirk)
{
	if (quirk == QUIRK_OLD_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_NEW_MAX_TOKENS;
	if (quirk == QUIRK_NEW_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_OLD_MAX_TOKENS;
	quirks |= quirk;
	if (json_object_size(provider->quirks) < REMEMBERED_MAX ||
	    json_object_get(provider->quirks, model))
		json_object_set_new_nocheck(provider->quirks, model, json_integer(quirks));
	return quirks;
}

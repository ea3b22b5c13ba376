#include "llm/provider.h"

#include <rlmd/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "llm/key.h"
#include "llm/model_list.h"
#include "net/route.h"

enum {
	REMEMBERED_MAX = 64,
	NAME_MAX_SIZE = 64,
	RETRIES_USUAL = 2, /* as the providers' own clients */
};

/* --- the address and the key ------------------------------------------------------------ */

static const char *environment_url(const struct adapter *adapter)
{
	for (const char *const *name = adapter->base_url_env; name && *name; name++) {
		const char *value = getenv(*name);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* A base URL as the adapter wants it, without a slash at its end; new. */
static char *normal_base(const struct adapter *adapter, const char *given, struct rlmd_error *err)
{
	char *base = adapter->base_url ? adapter->base_url(given, err) : xstrdup(given);
	auto_free char *origin = NULL;

	if (!base) {
		error_context(err, "base URL '%s'", given);
		return NULL;
	}
	for (size_t size = strlen(base); size && base[size - 1] == '/';)
		base[--size] = '\0';
	origin = route_origin(base);
	if (origin)
		return base;
	error_set(err, RLMD_ERROR_USAGE, "the base URL '%s' is no http or https URL", given);
	free(base);
	return NULL;
}

/* The base that was given, else the environment's, else the vendor's own; new. */
static char *base_of(const struct rlmd_provider *provider, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;
	const char *given = provider->base_url ? provider->base_url : environment_url(adapter);

	return normal_base(adapter, given ? given : adapter->default_base_url, err);
}

static bool same_origin(const struct adapter *adapter, const char *base, const char *other)
{
	auto_free char *normal = other ? normal_base(adapter, other, NULL) : NULL;
	auto_free char *left = route_origin(base);
	auto_free char *right = normal ? route_origin(normal) : NULL;

	return left && right && !strcasecmp(left, right);
}

/* Whether it is asked where its vendor has it. Not, where the address is a bad one. */
static bool is_at_home(const struct rlmd_provider *provider)
{
	auto_free char *base = base_of(provider, NULL);

	return base && same_origin(provider->adapter, base, provider->adapter->default_base_url);
}

/* One that somebody gave goes to the address that they gave. */
static bool may_have_key(const struct rlmd_provider *provider, const char *base)
{
	const struct adapter *adapter = provider->adapter;

	return !provider->given_by_environment ||
	       same_origin(adapter, base, adapter->default_base_url) ||
	       same_origin(adapter, base, environment_url(adapter));
}

/* Why the key that was found in that variable of the environment is not sent, and what to do, as a
 * new sentence; NULL where it is sent, or another one. */
static char *explain_withheld(const struct rlmd_provider *provider, const char *variable)
{
	const struct adapter *adapter = provider->adapter;
	auto_free char *base = base_of(provider, NULL), *origin = base ? route_origin(base) : NULL;

	if (!origin || !variable || !provider->given_key || provider->key_file ||
	    may_have_key(provider, base))
		return NULL;
	return xasprintf("%s was not sent to %s: it goes to %s's own server, and to the address in "
			 "%s, alone; set %s to this address, or give a file that holds the key "
			 "(key-file)",
			 variable, origin, adapter->name, adapter->base_url_env[0],
			 adapter->base_url_env[0]);
}

static bool choose_key(struct rlmd_provider *provider, const char *base, struct rlmd_error *err)
{
	const struct adapter *adapter = provider->adapter;

	if (provider->key_file) {
		provider->key = key_read_file(provider->key_file, err);
		return provider->key;
	}
	if (provider->given_key && may_have_key(provider, base)) {
		provider->key = xstrdup(provider->given_key);
		return key_check(provider->key,
				 provider->given_by_environment ? "the environment" : "the options",
				 err);
	}
	if (adapter->key_required && same_origin(adapter, base, adapter->default_base_url))
		return error_set(err, RLMD_ERROR_AUTH,
				 "no key for %s; set %s, or give key-file FILE with provider %s",
				 provider->name, adapter->key_env[0], adapter->name);
	return true;
}

static void make_headers(struct rlmd_provider *provider)
{
	const struct adapter *adapter = provider->adapter;
	size_t count = 0;

	while (adapter->headers && adapter->headers[count])
		count++;
	provider->headers = xcalloc(count + 3, sizeof *provider->headers);
	for (size_t i = 0; i < count; i++)
		provider->headers[i] = xstrdup(adapter->headers[i]);
	provider->headers[count++] = xstrdup("Content-Type: application/json");
	if (provider->key && adapter->key_header) {
		const char *at = strstr(adapter->key_header, "%s");

		provider->headers[count] = xasprintf("%.*s%s%s", (int)(at - adapter->key_header),
						     adapter->key_header, provider->key, at + 2);
	}
}

/* Loopback, the addresses of private networks (RFC 1918), and names that only those know. */
static bool is_near(const char *base)
{
	static const char *const prefixes[] = {"127.", "10.", "192.168.", "[::1]", "[f"};
	const char *host = strstr(base, "://") + strlen("://");
	size_t size = strcspn(host, host[0] == '[' ? "]" : ":/");
	int second = 0;

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(host, prefixes[i], strlen(prefixes[i])))
			return true;
	if (sscanf(host, "172.%d.", &second) == 1)
		return second >= 16 && second <= 31;
	return !memchr(host, '.', size) || (size > 6 && !strncasecmp(host + size - 6, ".local", 6));
}

static void forget_address_and_key(struct rlmd_provider *provider)
{
	for (char **header = provider->headers; header && *header; header++)
		key_free(*header);
	free(take_pointer(&provider->headers));
	key_free(take_pointer(&provider->key));
	free(take_pointer(&provider->url));
}

static bool find_address_and_key(struct rlmd_provider *provider, struct rlmd_error *err)
{
	auto_free char *base = base_of(provider, err);

	if (!base)
		return false;
	if (!choose_key(provider, base, err)) {
		forget_address_and_key(provider);
		return false;
	}
	provider->near = is_near(base);
	provider->url = xasprintf("%s%s", base, provider->adapter->path);
	make_headers(provider);
	return true;
}

/* --- the provider ------------------------------------------------------------------------ */

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

static bool read_prices(struct rlmd_provider *provider, const struct rlmd_provider_options *config,
			struct rlmd_error *err)
{
	provider->own_price = config->price;
	if (config->price && provider->free)
		return error_set(err, RLMD_ERROR_USAGE,
				 "provider %s costs nothing, and has a price", provider->name);
	if (config->price && !price_take(config->price, &provider->own, err))
		return false;
	if (config->prices)
		provider->given = price_table_ref(config->prices);
	else if (config->price_table)
		provider->given = price_table_read(config->price_table, err);
	return !config->price_table || provider->given;
}

static const char *variable_set(const char *const *names)
{
	for (; names && *names; names++)
		if (getenv(*names) && *getenv(*names))
			return *names;
	return NULL;
}

/* A key that was given goes before the environment's; what is empty is none. */
static void take_key(struct rlmd_provider *provider, const struct rlmd_provider_options *config)
{
	const char *const own[] = {config->key_environment, NULL};
	const char *const *names = config->key_environment ? own : NULL;

	if (!names && provider->adapter)
		names = provider->adapter->key_env;
	if (config->ask)
		return;
	provider->given_by_environment = !config->key;
	provider->given_key = config->key ? xstrdup(config->key) : key_from_environment(names);
	if (provider->adapter)
		provider->withheld = explain_withheld(provider, variable_set(names));
}

static void take_settings(struct rlmd_provider *provider,
			  const struct rlmd_provider_options *config)
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
	provider->free = config->ask ? config->costs_nothing : !adapter || adapter->local;
	provider->custom = (struct custom){
		.ask = config->ask, .cancel = config->cancel, .owner = config->owner};
	provider->window = config->window;
	take_key(provider, config);
	provider->at_home = adapter && is_at_home(provider);
}

struct rlmd_provider *provider_new(const struct rlmd_provider_options *config,
				   struct rlmd_error *err)
{
	const struct adapter *adapter = config->ask ? NULL : adapter_find(config->kind);
	struct rlmd_provider *provider;
	char names[ADAPTER_NAMES_MAX];

	if (!adapter && !config->ask && strcmp(config->kind, "replay") != 0) {
		error_set(err, RLMD_ERROR_USAGE, "unknown provider '%.100s'; there are %s, replay",
			  config->kind, adapter_names(names));
		return NULL;
	}
	if (config->name && !provider_check_name(config->name, err))
		return NULL;
	provider = xcalloc(1, sizeof *provider);
	provider->references = 1;
	provider->adapter = adapter;
	provider->quirks = json_make_object();
	provider->rooms = json_make_object();
	provider->priced = xcalloc(1, sizeof *provider->priced);
	provider->notes = json_make_array();
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
	free(provider->withheld);
	rlmd_price_table_unref(provider->shipped);
	rlmd_price_table_unref(provider->given);
	forget_prices(provider);
	free(provider->priced);
	json_decref(provider->quirks);
	json_decref(provider->rooms);
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
	json_append(provider->notes, json_from_text(text_of(note)));
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
	model_list_free(take_pointer(&provider->list));
	http_free(take_pointer(&provider->http));
	gate_free(take_pointer(&provider->gate));
	forget_address_and_key(provider);
	provider->base = NULL;
}

bool provider_open(struct rlmd_provider *provider, struct rlmd_error *err)
{
	if (provider->url || provider->custom.ask)
		return true;
	if (!provider->adapter)
		return error_set(err, RLMD_ERROR_USAGE,
				 "provider %s needs a directory of answers (replay)",
				 provider->name);
	if (!find_address_and_key(provider, err))
		return false;
	provider->http = http_new(provider->base, err);
	if (!provider->http)
		forget_address_and_key(provider);
	return provider->http;
}

char *provider_probe_url(const struct rlmd_provider *provider)
{
	size_t base = strlen(provider->url) - strlen(provider->adapter->path);

	return xasprintf("%.*s%s", (int)base, provider->url, provider->adapter->probe_path);
}

void provider_connect(struct rlmd_provider *provider)
{
	if (provider->http)
		http_connect(provider->http, provider->url);
}

static void on_room(void *owner, const char *model, const struct room *room)
{
	provider_learn_room(owner, model, room);
}

/* One that is far away may be slow, and its windows stand in the tables more often than not. A
 * connection by TLS that was made ahead, or its failure, is for the first call. */
struct model_list *provider_ask_rooms(struct rlmd_provider *provider)
{
	auto_free char *url = NULL;

	if (!provider->list && provider->http && provider->near && !provider->window &&
	    !strncmp(provider->url, "http://", strlen("http://")) &&
	    provider_is_gateway(provider)) {
		url = provider_probe_url(provider);
		provider->list = model_list_start(provider->http, url,
						  (const char *const *)provider->headers, on_room,
						  provider);
	}
	return provider->list;
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
static size_t price_index(const struct rlmd_provider *provider, const char *model)
{
	struct priced *priced = provider->priced;
	size_t index;

	for (index = 0; index < PRICED_MAX; index++)
		if (priced->of[index].model && !strcmp(priced->of[index].model, model))
			return index;
	index = priced->next;
	priced->next = (index + 1) % PRICED_MAX;
	free(priced->of[index].model);
	priced->of[index].model = xstrdup(model);
	priced->of[index].known = find_price(provider, model, &priced->of[index].price);
	return index;
}

bool provider_price(const struct rlmd_provider *provider, const char *model, struct price *ret)
{
	size_t index;

	if (provider->own_price) {
		*ret = provider->own;
		return true;
	}
	index = price_index(provider, model);
	if (provider->priced->of[index].known)
		*ret = provider->priced->of[index].price;
	return provider->priced->of[index].known;
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
		     int64_t reported, const struct llm_usage *usage, struct llm_warnings *warnings,
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

void provider_warn_unpriced(const char *model, struct llm_warnings *warnings)
{
	request_warn(warnings,
		     "the price of model '%.100s' is not known: its cost is neither counted nor "
		     "limited, but max-tokens and max-time hold; price-table can give it",
		     model);
}

unsigned provider_quirks(const struct rlmd_provider *provider, const char *model)
{
	unsigned quirks = (unsigned)json_get_integer(provider->quirks, model, 0);

	return quirks | (provider->no_stream ? QUIRK_NO_STREAM : 0);
}

/* Models are named by foreign code: so many of them are remembered. */
static void remember(json_t *table, const char *model, json_t *value)
{
	if (json_object_size(table) < REMEMBERED_MAX || json_object_get(table, model))
		json_put(table, model, value);
	else
		json_decref(value);
}

unsigned provider_learn(struct rlmd_provider *provider, const char *model, unsigned quirks,
			unsigned quirk)
{
	if (quirk == QUIRK_OLD_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_NEW_MAX_TOKENS;
	if (quirk == QUIRK_NEW_MAX_TOKENS)
		quirks &= ~(unsigned)QUIRK_OLD_MAX_TOKENS;
	quirks |= quirk;
	remember(provider->quirks, model, json_make_integer(quirks));
	return quirks;
}

struct room provider_room(const struct rlmd_provider *provider, const char *model)
{
	const json_t *told = json_object_get(provider->rooms, model);

	if (!told)
		told = json_object_get(provider->rooms, ""); /* the only one that it has */

	return (struct room){
		.window = json_get_integer(told, "window", 0),
		.output = json_get_integer(told, "output", 0),
	};
}

void provider_learn_room(struct rlmd_provider *provider, const char *model, const struct room *told)
{
	struct room room = provider_room(provider, model);

	if (!told->window && !told->output)
		return;
	room.window = told->window ? told->window : room.window;
	room.output = told->output ? told->output : room.output;
	remember(provider->rooms, model,
		 json_make("{s:I, s:I}", "window", (json_int_t)room.window, "output",
			   (json_int_t)room.output));
}

/* --- rlmd/provider.h, but for answers (llm/custom.c) ------------------------------------- */

struct rlmd_provider *rlmd_provider_new(const struct rlmd_provider_options *given,
					struct rlmd_error *err)
{
	struct rlmd_provider_options options;

	if (!abi_copy_in(&options, sizeof options, given, sizeof options, "rlmd_provider_options",
			 err))
		return NULL;
	if (!options.kind == !options.ask || (!options.kind && !options.name) ||
	    options.window < 0 || options.patience_ms < 0) {
		error_set(err, RLMD_ERROR_USAGE,
			  "a provider needs a kind, or a name and a function that is asked, and no "
			  "negative numbers");
		return NULL;
	}
	if (!options.kind)
		options.kind = options.name;
	if (!options.max_retries)
		options.max_retries = RETRIES_USUAL;
	if (options.max_retries < 0)
		options.max_retries = 0;
	return provider_new(&options, err);
}

struct rlmd_provider *rlmd_provider_ref(struct rlmd_provider *provider)
{
	return provider ? provider_ref(provider) : NULL;
}

void rlmd_provider_unref(struct rlmd_provider *provider)
{
	provider_unref(provider);
}

const char *rlmd_provider_name(const struct rlmd_provider *provider)
{
	return provider ? provider->name : "";
}

const char *rlmd_provider_kind(size_t index)
{
	const struct adapter *adapter = adapter_at(index);

	return adapter ? adapter->name : NULL;
}

const char *rlmd_provider_key_variable(const char *kind, size_t index)
{
	const struct adapter *adapter = kind ? adapter_find(kind) : NULL;
	const char *const *name = adapter ? adapter->key_env : NULL;

	while (name && *name && index--)
		name++;
	return name ? *name : NULL;
}

const char *rlmd_provider_default(const char *model)
{
	return adapter_default_name(model);
}

#include "cli/providers.h"

#include <rlmd/engine.h>
#include <rlmd/price.h>
#include <rlmd/provider.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 3600000 }; /* --max-time ends the wait before, unless it is very long */

static bool model_begins_with(const struct config *config, const char *kind)
{
	size_t size = strlen(kind);

	return config->model && !strncmp(config->model, kind, size) && config->model[size] == '/';
}

/* A key for "anthropic/..." names that provider, whose own key then need not be set. */
const char *providers_usual(const struct config *config)
{
	const char *kind;

	for (size_t i = 0; config->key_file && (kind = rlmd_provider_kind(i)); i++)
		if (!config->base_url && model_begins_with(config, kind))
			return kind;
	return rlmd_provider_default(config->model);
}

bool providers_is_unnamed(const struct config *config)
{
	return !config_given(config, OPTION_provider) && !config->replay &&
	       !model_begins_with(config, config->provider);
}

static struct rlmd_provider_options usual(const struct config *config, const char *kind)
{
	return (struct rlmd_provider_options){
		.size = sizeof(struct rlmd_provider_options),
		.kind = kind,
		.no_stream = config->no_stream,
		.patience_ms = PATIENCE_MS,
	};
}

static struct rlmd_provider_options own(const struct config *config)
{
	struct rlmd_provider_options options = usual(config, config->provider);

	options.base_url = config->base_url;
	options.key_file = config->key_file;
	return options;
}

struct rlmd_provider *providers_named(const struct config *config, const char *name,
				      struct rlmd_error *err)
{
	struct rlmd_provider_options options = own(config);

	options.name = name;
	options.price_table = config->price_table;
	return rlmd_provider_new(&options, err);
}

struct rlmd_provider *providers_own(const struct config *config, struct rlmd_error *err)
{
	return providers_named(config, NULL, err);
}

struct rlmd_provider *providers_other(const struct config *config, const char *kind,
				      const char *key_file, struct rlmd_error *err)
{
	bool same = !strcmp(kind, config->provider);
	struct rlmd_provider_options options = same ? own(config) : usual(config, kind);

	options.key_file = key_file;
	options.price_table = config->price_table;
	return rlmd_provider_new(&options, err);
}

static bool add(struct rlmd_engine *engine, struct rlmd_provider_options options,
		struct rlmd_price_table *prices, struct rlmd_error *err)
{
	struct rlmd_provider *provider;
	bool added;

	options.prices = prices;
	provider = rlmd_provider_new(&options, err);
	added = provider && rlmd_engine_add_provider(engine, NULL, provider, err);
	rlmd_provider_unref(provider);
	return added;
}

/* The own comes first. */
static bool add_all(struct rlmd_engine *engine, const struct config *config,
		    struct rlmd_price_table *prices, struct rlmd_error *err)
{
	const char *kind;
	bool added = add(engine, own(config), prices, err);

	for (size_t i = 0; added && (kind = rlmd_provider_kind(i)); i++)
		if (strcmp(kind, config->provider) != 0)
			added = add(engine, usual(config, kind), prices, err);
	return added;
}

/* One table for all of them. */
static bool open_all(struct rlmd_engine *engine, const struct config *config,
		     struct rlmd_error *err)
{
	struct rlmd_price_table *prices = NULL;
	bool opened;

	if (config->price_table)
		prices = rlmd_price_table_open(config->price_table, err);
	opened = (prices || !config->price_table) && add_all(engine, config, prices, err);
	rlmd_price_table_unref(prices);
	return opened;
}

bool providers_open(struct rlmd_engine *engine, const struct config *config, struct rlmd_error *err)
{
	bool opened = open_all(engine, config, err);

	providers_forget_keys();
	return opened;
}

static void forget(const char *variable)
{
	char *value = getenv(variable);

	if (value)
		explicit_bzero(value, strlen(value));
	unsetenv(variable);
}

void providers_forget_keys(void)
{
	const char *kind, *variable;

	for (size_t i = 0; (kind = rlmd_provider_kind(i)); i++)
		for (size_t j = 0; (variable = rlmd_provider_key_variable(kind, j)); j++)
			forget(variable);
}

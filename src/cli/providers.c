#include "cli/providers.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "llm/provider.h"

enum {
	MAX_RETRIES = 2,
	PATIENCE_MS = 3600000, /* --max-time ends the wait before, unless it is very long */
};

static struct provider_config usual(const struct config *config, const char *kind)
{
	return (struct provider_config){
		.kind = kind,
		.no_stream = config->no_stream,
		.max_retries = MAX_RETRIES,
		.patience_ms = PATIENCE_MS,
	};
}

struct rlmd_provider *providers_own(const struct config *config, struct rlmd_error *err)
{
	struct provider_config settings = usual(config, config->provider);

	settings.base_url = config->base_url;
	settings.key_file = config->key_file;
	settings.price_table = config->price_table;
	return provider_new(&settings, err);
}

/* Of one kind, but the own; the own's price table is read once. */
static bool add_other(struct rlmd_engine *engine, const struct config *config, const char *kind,
		      const struct rlmd_provider *own, struct rlmd_error *err)
{
	struct provider_config settings = usual(config, kind);
	struct rlmd_provider *other;
	bool added;

	if (!strcmp(kind, own->name))
		return true;
	settings.prices = own->given;
	other = provider_new(&settings, err);
	added = other && rlmd_engine_add_provider(engine, NULL, other, err);
	provider_unref(other);
	return added;
}

static bool add_all(struct rlmd_engine *engine, const struct config *config, struct rlmd_error *err)
{
	struct rlmd_provider *own = providers_own(config, err);
	const struct adapter *adapter;
	bool added = own && rlmd_engine_add_provider(engine, NULL, own, err);

	for (size_t i = 0; added && (adapter = adapter_at(i)); i++)
		added = add_other(engine, config, adapter->name, own, err);
	provider_unref(own);
	return added;
}

bool providers_open(struct rlmd_engine *engine, const struct config *config, struct rlmd_error *err)
{
	bool added = add_all(engine, config, err);

	providers_forget_keys();
	return added;
}

void providers_forget_keys(void)
{
	const struct adapter *adapter;

	for (size_t i = 0; (adapter = adapter_at(i)); i++)
		for (const char *const *name = adapter->key_env; name && *name; name++) {
			char *value = getenv(*name);

			if (value)
				explicit_bzero(value, strlen(value));
			unsetenv(*name);
		}
}

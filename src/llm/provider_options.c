/* The public face of a provider, but for its answers (llm/custom.c): rlmd/provider.h. */
#include <rlmd/provider.h>

#include "base/sized.h"
#include "llm/provider.h"

enum { RETRIES_USUAL = 2 }; /* as the providers' own clients */

static struct provider_config config_of(const struct rlmd_provider_options *options)
{
	int retries = options->max_retries ? options->max_retries : RETRIES_USUAL;

	return (struct provider_config){
		.kind = options->kind ? options->kind : options->name,
		.name = options->name,
		.model = options->model,
		.base_url = options->base_url,
		.key = options->key,
		.key_file = options->key_file,
		.key_environment = options->key_environment,
		.price_table = options->price_table,
		.prices = options->prices,
		.no_stream = options->no_stream,
		.max_retries = retries > 0 ? retries : 0,
		.patience_ms = options->patience_ms,
		.custom = {.ask = options->ask, .cancel = options->cancel, .owner = options->owner},
		.costs_nothing = options->costs_nothing,
		.window = options->window,
	};
}

struct rlmd_provider *rlmd_provider_new(const struct rlmd_provider_options *given,
					struct rlmd_error *err)
{
	struct rlmd_provider_options options;
	struct provider_config config;

	if (!sized_take(&options, sizeof options, given, sizeof options, "rlmd_provider_options",
			err))
		return NULL;
	config = config_of(&options);
	if (!options.kind == !options.ask || !config.kind || options.window < 0 ||
	    options.patience_ms < 0) {
		error_set(err, RLMD_ERROR_USAGE,
			  "a provider needs a kind, or a name and a function that is asked, and no "
			  "negative numbers");
		return NULL;
	}
	return provider_new(&config, err);
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

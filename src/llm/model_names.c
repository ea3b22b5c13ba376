#include "llm/model_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "llm/provider.h"

static bool add(struct model_names *names, struct rlmd_provider *provider, struct rlmd_error *err)
{
	for (size_t i = 0; i < names->count; i++)
		if (names->allowed[i] == provider)
			return true;
	if (!names->closed && !provider_open(provider, err))
		return false;
	names->allowed = xreallocarray(names->allowed, names->count + 1, sizeof *names->allowed);
	names->allowed[names->count++] = provider;
	return true;
}

bool model_names_init(struct model_names *names, struct registry *registry, const char *own,
		      bool closed, struct rlmd_error *err)
{
	struct rlmd_provider *provider = registry_find(registry, text_of(own));

	*names = (struct model_names){.registry = registry, .closed = closed};
	if (!provider)
		return error_set(err, RLMD_ERROR_USAGE, "there is no provider '%.100s'",
				 own ? own : "");
	return add(names, provider, err);
}

void model_names_done(struct model_names *names)
{
	free(names->allowed);
	*names = (struct model_names){0};
}

/* The part before the first slash; empty where there is none. */
static struct rlmd_text prefix_of(const char *name)
{
	const char *slash = name ? strchr(name, '/') : NULL;

	return slash ? text_from(name, (size_t)(slash - name)) : (struct rlmd_text){0};
}

bool model_names_allow(struct model_names *names, const char *name, struct rlmd_error *err)
{
	struct rlmd_text prefix = prefix_of(name);
	struct rlmd_provider *provider;

	if (!prefix.size)
		return true;
	provider = registry_find(names->registry, prefix);
	if (!provider || (provider == names->allowed[0] && provider_is_gateway(provider)))
		return true;
	if (!name[prefix.size + 1])
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%.100s' names a provider and no model: write provider/model",
				 name);
	if (!names->closed && !provider_has_key(provider) && provider_is_gateway(names->allowed[0]))
		return true;
	return add(names, provider, err);
}

struct model_name model_names_find(const struct model_names *names, const char *name)
{
	struct rlmd_provider *own = names->allowed[0];
	struct rlmd_text prefix = prefix_of(name);

	if (!name || !*name)
		return (struct model_name){own, own->default_model};
	if (!prefix.size || !name[prefix.size + 1])
		return (struct model_name){own, name};
	for (size_t i = 0; i < names->count; i++) {
		struct rlmd_provider *provider = names->allowed[i];

		if (text_equal(prefix, provider->name) && (i || !provider_is_gateway(own)))
			return (struct model_name){provider, name + prefix.size + 1};
	}
	return (struct model_name){own, name};
}

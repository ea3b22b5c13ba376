#include "llm/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "llm/provider.h"

static bool add(struct choices *choices, struct rlmd_provider *provider, struct rlmd_error *err)
{
	for (size_t i = 0; i < choices->count; i++)
		if (choices->allowed[i] == provider)
			return true;
	if (!choices->closed && !provider_open(provider, err))
		return false;
	choices->allowed = xreallocarray(choices->allowed, choices->count + 1,
					 sizeof *choices->allowed);
	choices->allowed[choices->count++] = provider;
	return true;
}

bool choices_init(struct choices *choices, struct registry *registry, const char *own, bool closed,
		  struct rlmd_error *err)
{
	struct rlmd_provider *provider = registry_find(registry, text_of(own));

	*choices = (struct choices){.registry = registry, .closed = closed};
	if (!provider)
		return error_set(err, RLMD_ERROR_USAGE, "there is no provider '%.100s'",
				 own ? own : "");
	return add(choices, provider, err);
}

void choices_done(struct choices *choices)
{
	free(choices->allowed);
	*choices = (struct choices){0};
}

/* What stands before the first slash; empty where there is none. */
static struct rlmd_text prefix_of(const char *name)
{
	const char *slash = name ? strchr(name, '/') : NULL;

	return slash ? text_from(name, (size_t)(slash - name)) : (struct rlmd_text){0};
}

bool choices_allow(struct choices *choices, const char *name, struct rlmd_error *err)
{
	struct rlmd_text prefix = prefix_of(name);
	struct rlmd_provider *provider;

	if (!prefix.size)
		return true;
	provider = registry_find(choices->registry, prefix);
	if (!provider || (provider == choices->allowed[0] && provider_is_gateway(provider)))
		return true;
	if (!name[prefix.size + 1])
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%.100s' names a provider and no model: write provider/model",
				 name);
	if (!choices->closed && !provider_has_key(provider) &&
	    provider_is_gateway(choices->allowed[0]))
		return true;
	return add(choices, provider, err);
}

struct choice choices_find(const struct choices *choices, const char *name)
{
	struct rlmd_provider *own = choices->allowed[0];
	struct rlmd_text prefix = prefix_of(name);

	if (!name || !*name)
		return (struct choice){own, own->default_model};
	if (!prefix.size || !name[prefix.size + 1])
		return (struct choice){own, name};
	for (size_t i = 0; i < choices->count; i++) {
		struct rlmd_provider *provider = choices->allowed[i];

		if (text_equal(prefix, provider->name) && (i || !provider_is_gateway(own)))
			return (struct choice){provider, name + prefix.size + 1};
	}
	return (struct choice){own, name};
}

#include "llm/registry.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "llm/provider.h"

struct registered {
	struct rlmd_provider *provider; /* a reference */
	TAILQ_ENTRY(registered) entry;
};

struct registry {
	struct event_base *base; /* lent */
	TAILQ_HEAD(, registered) providers;
};

struct registry *registry_new(struct event_base *base)
{
	struct registry *registry = xcalloc(1, sizeof *registry);

	registry->base = base;
	TAILQ_INIT(&registry->providers);
	return registry;
}

void registry_free(struct registry *registry)
{
	struct registered *registered;

	if (!registry)
		return;
	while ((registered = TAILQ_FIRST(&registry->providers))) {
		TAILQ_REMOVE(&registry->providers, registered, entry);
		provider_unbind(registered->provider);
		provider_unref(registered->provider);
		free(registered);
	}
	free(registry);
}

struct event_base *registry_base(const struct registry *registry)
{
	return registry->base;
}

bool registry_add(struct registry *registry, const char *name, struct rlmd_provider *provider,
		  struct rlmd_error *err)
{
	struct registered *registered;

	if (!name)
		name = provider->name;
	if (!provider_check_name(name, err))
		return false;
	if (registry_find(registry, text_of(name)))
		return error_set(err, RLMD_ERROR_USAGE, "there is a provider '%s' already", name);
	if (!provider_bind(provider, registry->base, err))
		return false;
	provider_rename(provider, name);
	registered = xcalloc(1, sizeof *registered);
	registered->provider = provider_ref(provider);
	TAILQ_INSERT_TAIL(&registry->providers, registered, entry);
	return true;
}

struct rlmd_provider *registry_find(const struct registry *registry, struct rlmd_text name)
{
	const struct registered *registered;

	TAILQ_FOREACH (registered, &registry->providers, entry)
		if (!name.size || text_equal(name, registered->provider->name))
			return registered->provider;
	return NULL;
}

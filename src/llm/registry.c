#include "llm/registry.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "llm/cache.h"
#include "llm/price.h"
#include "llm/provider.h"
#include "net/http.h"

struct registered {
	struct rlmd_provider *provider; /* a reference */
	TAILQ_ENTRY(registered) entry;
};

struct registered_cache {
	struct cache *cache; /* owned */
	TAILQ_ENTRY(registered_cache) entry;
};

struct registry {
	struct event_base *base; /* lent */
	TAILQ_HEAD(, registered) providers;
	TAILQ_HEAD(, registered_cache) caches;
	struct rlmd_price_table *prices; /* owned: those that are shipped; NULL: not read */
	struct rlmd_error unpriced;      /* why they cannot be */
};

struct registry *registry_new(struct event_base *base)
{
	struct registry *registry = xcalloc(1, sizeof *registry);

	registry->base = base;
	TAILQ_INIT(&registry->providers);
	TAILQ_INIT(&registry->caches);
	return registry;
}

void registry_free(struct registry *registry)
{
	struct registered *registered;
	struct registered_cache *kept;

	if (!registry)
		return;
	while ((kept = TAILQ_FIRST(&registry->caches))) {
		TAILQ_REMOVE(&registry->caches, kept, entry);
		cache_free(kept->cache);
		free(kept);
	}
	while ((registered = TAILQ_FIRST(&registry->providers))) {
		TAILQ_REMOVE(&registry->providers, registered, entry);
		provider_unbind(registered->provider);
		provider_unref(registered->provider);
		free(registered);
	}
	rlmd_price_table_unref(registry->prices);
	free(registry);
}

struct event_base *registry_base(const struct registry *registry)
{
	return registry->base;
}

/* One table for all of them: it takes half a millisecond to read. */
static void give_prices(struct registry *registry, struct rlmd_provider *provider)
{
	if (!registry->prices && !registry->unpriced.kind)
		registry->prices = rlmd_price_table_open(NULL, &registry->unpriced);
	provider_take_prices(provider, registry->prices, &registry->unpriced);
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
	give_prices(registry, provider);
	registered = xcalloc(1, sizeof *registered);
	registered->provider = provider_ref(provider);
	TAILQ_INSERT_TAIL(&registry->providers, registered, entry);
	return true;
}

struct cache *registry_cache(struct registry *registry, const char *dir, int64_t size,
			     struct rlmd_error *err)
{
	struct cache *cache;
	struct registered_cache *kept;

	TAILQ_FOREACH (kept, &registry->caches, entry)
		if (cache_is(kept->cache, dir, size))
			return kept->cache;
	cache = cache_new(registry->base, dir, size, err);
	if (!cache)
		return NULL;
	kept = xcalloc(1, sizeof *kept);
	kept->cache = cache;
	TAILQ_INSERT_TAIL(&registry->caches, kept, entry);
	return cache;
}

struct rlmd_provider *registry_find(const struct registry *registry, struct rlmd_text name)
{
	const struct registered *registered;

	TAILQ_FOREACH (registered, &registry->providers, entry)
		if (!name.size || text_equal(name, registered->provider->name))
			return registered->provider;
	return NULL;
}

void registry_cut(struct registry *registry)
{
	struct registered *registered;
	struct registered_cache *kept;

	TAILQ_FOREACH (kept, &registry->caches, entry)
		cache_cut(kept->cache);
	TAILQ_FOREACH (registered, &registry->providers, entry)
		if (registered->provider->http)
			http_cut(registered->provider->http);
}

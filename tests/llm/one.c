#include "one.h"

#include "base/cleanup.h"
#include "llm/registry.h"

bool one_open(struct one *one, struct event_base *base, const struct rlmd_provider_options *config,
	      const struct llm_config *job, struct rlmd_error *err)
{
	static const struct llm_config usual;
	struct rlmd_provider *provider = provider_new(config, err);

	*one = (struct one){0};
	if (!provider)
		return false;
	one->registry = registry_new(base);
	if (registry_add(one->registry, NULL, provider, err))
		one->llm = llm_new(one->registry, job ? job : &usual, err);
	provider_unref(provider);
	if (!one->llm)
		one_close(one);
	return one->llm;
}

void one_close(struct one *one)
{
	llm_free(take_pointer(&one->llm));
	registry_free(take_pointer(&one->registry));
}

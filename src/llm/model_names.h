/*
 * llm/model_names.h - which provider, and which of its models, a model's name means.
 *
 * `provider/model` is a model of that provider, if it is one of those that may be used here; any
 * other name, with whatever slashes, is a model of the own provider.
 *
 * The own provider comes first. Others come by model_names_allow(): by names that whoever ordered
 * the work gave. A name out of foreign code adds none, so that it reaches no provider that nobody
 * meant; it does not so much as learn which ones there are. Where the own provider is a gateway
 * (any server that speaks OpenAI's protocol, but OpenAI's), names with its own prefix are left
 * whole: such servers have models like "openai/gpt-oss-20b".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "llm/registry.h"

/* All lent. */
struct model_name {
	struct rlmd_provider *provider;
	const char *model; /* as the provider knows it: a part of the name, or its default */
};

/* Those that may be used; embed it. */
struct model_names {
	struct registry *registry;      /* lent */
	struct rlmd_provider **allowed; /* owned; the providers are lent; the own one first */
	size_t count;
	bool closed; /* nobody will be asked: providers need no keys and stay closed */
};

/* `own` NULL: the registry's first. RLMD_ERROR_USAGE for an unknown one, and as provider_open(). */
bool model_names_init(struct model_names *, struct registry *, const char *own, bool closed,
		      struct rlmd_error *);
void model_names_done(struct model_names *); /* of a zeroed one too */

/*
 * Adds the provider that a name of ours begins with, where there is one with a key.
 * RLMD_ERROR_USAGE for a name without a model behind the provider's; RLMD_ERROR_AUTH for a provider
 * without a key, but for a gateway's model.
 */
bool model_names_allow(struct model_names *, const char *name, struct rlmd_error *);

/* NULL and "" mean the own provider's default. Lent as long as the name is. */
struct model_name model_names_find(const struct model_names *, const char *name);

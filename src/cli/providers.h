/*
 * cli/providers.h - the providers that the command line may ask.
 *
 * The one that the settings are about comes first; beside it stand all others with what the
 * environment has of them, for models that are named "provider/model".
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/config.h"

struct rlmd_engine;
struct rlmd_provider;

/* The kind of provider where the settings name none: what the model begins with ("openai/...") or
 * rlmd_provider_default(). Static, or lent by the settings. */
const char *providers_usual(const struct config *);

/* Whether neither an option nor the model names the one that the settings have, and nothing is
 * replayed. */
bool providers_is_unnamed(const struct config *);

/* The settings' own; it has read its key. RLMD_ERROR_USAGE, RLMD_ERROR_INPUT. */
struct rlmd_provider *providers_own(const struct config *, struct rlmd_error *);

/* Another one of that kind, with that key and as the settings have it for all; likewise. */
struct rlmd_provider *providers_other(const struct config *, const char *kind, const char *key_file,
				      struct rlmd_error *);

/* The one that the settings are about, under a name of its own; the environment has no key for it
 * any more. */
struct rlmd_provider *providers_named(const struct config *, const char *name, struct rlmd_error *);

/* All, for the jobs of an engine. The keys are taken out of the environment then, whatever comes of
 * it: no process that is started after this inherits one. */
bool providers_open(struct rlmd_engine *, const struct config *, struct rlmd_error *);

/* Takes the keys of all providers out of the environment, and wipes the very bytes that the kernel
 * shows of it in /proc. */
void providers_forget_keys(void);

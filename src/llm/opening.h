/*
 * llm/opening.h - where a provider's server is, and what opens it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct rlmd_provider;

/* Fills url, key, headers and near, of its settings and the environment's. RLMD_ERROR_USAGE for a
 * bad base URL, RLMD_ERROR_AUTH for a missing or unsafe key. */
bool opening_find(struct rlmd_provider *, struct rlmd_error *);

/* Forgets them; the key's bytes are wiped. */
void opening_forget(struct rlmd_provider *);

/* Whether it is asked where its vendor has it. Not, where the address is a bad one. */
bool opening_at_home(const struct rlmd_provider *);

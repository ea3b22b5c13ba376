/*
 * llm/registry.h - the providers of a process, each by a name of its own.
 *
 * Several may be of one kind, with other keys and addresses. The caller says by llm/model_names.h
 * which of them it may use.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct cache;
struct registry;
struct rlmd_provider;

struct registry *registry_new(struct event_base *); /* lent */
void registry_free(struct registry *);              /* calls must be gone; NULL is fine */

/* In the child of a fork, before it is freed: nothing that the parent uses is touched any more. */
void registry_cut(struct registry *);

struct event_base *registry_base(const struct registry *); /* lent */

/*
 * Under `name`, which becomes its own; NULL: under the name that it has. Takes a reference.
 * RLMD_ERROR_USAGE for a name that is taken or none, and for a provider that is in a registry
 * already.
 */
bool registry_add(struct registry *, const char *name, struct rlmd_provider *, struct rlmd_error *);

/* The cache in that directory, of so many bytes, which all jobs of the process share; lent. Errors
 * as of cache_new() (llm/cache.h). */
struct cache *registry_cache(struct registry *, const char *dir, int64_t size, struct rlmd_error *);

/* Lent; NULL: there is none of that name. An empty name is that of the one that was added first. */
struct rlmd_provider *registry_find(const struct registry *, struct rlmd_text name);

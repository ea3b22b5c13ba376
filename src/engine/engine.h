/*
 * engine/engine.h - the part of a process that its jobs share: the inside of rlmd/engine.h.
 *
 * What is dear or has to be one is here: the event base, the providers with what is
 * known of their models, the sandboxes, the permits for workers and for model calls.
 */
#pragma once

#include <event2/event.h>
#include <rlmd/engine.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/estimators.h"
#include "llm/registry.h"

struct engine_sandbox;
struct rlmd_job;
struct rlmd_repl;
struct scheduler;

/* What models were billed as, as jobs of that provider name them. */
struct engine_provider {
	char *name; /* owned */
	struct estimators estimators;
	TAILQ_ENTRY(engine_provider) entry;
};

struct rlmd_engine {
	struct event_base *base; /* lent, or owned */
	bool base_owned;
	struct log log;
	struct scheduler *calls;   /* owned: model calls in flight (engine/permits.h) */
	struct scheduler *workers; /* owned: workers that compute */
	struct registry *registry; /* owned: the providers */
	TAILQ_HEAD(, engine_provider) providers;
	TAILQ_HEAD(, engine_sandbox) sandboxes; /* owned */
	TAILQ_HEAD(, rlmd_job) jobs;            /* owned: those that are not freed */
	LIST_HEAD(, rlmd_repl) repls;           /* owned, likewise */
	const struct rlmd_job *awaited;         /* lent: rlmd_engine_wait() waits for it; or NULL */
	bool waiting;                           /* inside rlmd_engine_wait() */
};

/* NULL: the first. RLMD_ERROR_USAGE where there is none of that name. Lent. */
struct engine_provider *engine_provider(const struct rlmd_engine *, const char *name,
					struct rlmd_error *);

/*
 * The sandbox of helpers that hold answers to schemas (engine/validation.h), with the interpreter
 * and the uids of `like`, which may be NULL; or with the system's, if that has no jsonschema.
 * RLMD_ERROR_USAGE where none has, with the way to install it. Lent.
 */
struct rlmd_sandbox *engine_validator(struct rlmd_engine *, const struct rlmd_sandbox *like,
				      struct rlmd_error *);

void engine_close_sandboxes(struct rlmd_engine *); /* no worker may be left */

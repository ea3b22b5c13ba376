/*
 * engine/engine.h - the part of a process that its jobs share: the inside of rlmd/engine.h.
 *
 * Things that are dear, or of which there may be only one, are here: the event base, the providers
 * with what is known of their models, the sandboxes, the permits for workers and for model calls.
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
struct posts;
struct rlmd_repl;
struct scheduler;

/* A provider, with what its models were billed as. */
struct engine_provider {
	char *name; /* owned */
	struct estimators estimators;
	TAILQ_ENTRY(engine_provider) entry;
};

/* A job, as its engine knows it: a struct rlmd_job begins with it. */
struct engine_job {
	struct rlmd_engine *engine; /* lent */
	void (*destroy)(struct engine_job *);
	bool over; /* its end was told, or nobody waits for it any more */
	TAILQ_ENTRY(engine_job) entry;
};

struct rlmd_engine {
	struct event_base *base; /* lent, or owned */
	bool base_owned;
	struct posts *posts; /* owned; NULL: the base is lent */
	pid_t made_by;       /* the process that may use it; a forked child may free it */
	pid_t freed_by; /* the one whose loop and descriptors are its own: that one, or a child */
	struct log log;
	struct scheduler *calls;   /* owned: model calls in flight (engine/scope.h) */
	struct scheduler *workers; /* owned: workers that compute */
	struct registry *registry; /* owned: the providers */
	TAILQ_HEAD(, engine_provider) providers;
	TAILQ_HEAD(, engine_sandbox) sandboxes; /* owned */
	TAILQ_HEAD(, engine_job) jobs;          /* owned: those that are not freed */
	LIST_HEAD(, rlmd_repl) repls;           /* owned, likewise */
	const struct engine_job *awaited;       /* lent: rlmd_engine_wait() waits for it; or NULL */
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

/* RLMD_ERROR_USAGE in a forked child of the process that made it. */
bool engine_is_ours(const struct rlmd_engine *, struct rlmd_error *);

/* Before anything of it is freed: in a forked child nothing that the parent still uses is touched
 * from then on (descriptors, processes, files, the kernel's side of the loop). */
void engine_to_free(struct rlmd_engine *);

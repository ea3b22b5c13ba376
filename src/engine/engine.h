/*
 * engine/engine.h - the part of a process that all its jobs share.
 *
 * An engine hosts any number of jobs (engine/job.h) at once, and has what is dear
 * or has to be one: the event base, the providers with what is known of their
 * models, the permits for workers and for model calls. Several engines may stand
 * in one process; nothing here is of the process but what the kernel makes so.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/estimators.h"
#include "llm/registry.h"

struct rlmd_job;
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
	TAILQ_HEAD(, rlmd_job) jobs;    /* owned: those that are not freed */
	const struct rlmd_job *awaited; /* lent: rlmd_engine_wait() waits for it; or NULL */
	bool waiting;                   /* inside rlmd_engine_wait() */
};

struct engine_options {
	struct event_base *base; /* lent; NULL: one of its own */
	const struct log *log;   /* lent until the engine is freed; NULL: nobody hears */
	size_t max_workers;      /* that compute at once, of all jobs; > 0 */
	size_t max_calls;        /* model calls in flight at once, of all jobs; > 0 */
};

/* NULL: RLMD_ERROR_USAGE where the machine cannot have so many workers or calls at once, and
 * RLMD_ERROR_INTERNAL where it gives no event loop. */
struct rlmd_engine *rlmd_engine_new(const struct engine_options *, struct rlmd_error *);

/* Frees its jobs, too: what they do is cancelled, and none of them calls back any more. Not from
 * inside a callback of theirs. NULL is fine. */
void rlmd_engine_free(struct rlmd_engine *);

struct event_base *rlmd_engine_base(const struct rlmd_engine *); /* lent */

/* The first one is that of jobs which name none. As registry_add() (llm/registry.h). */
bool rlmd_engine_add_provider(struct rlmd_engine *, const char *name, struct rlmd_provider *,
			      struct rlmd_error *);

/* NULL: the first. RLMD_ERROR_USAGE where there is none of that name. Lent. */
struct engine_provider *engine_provider(const struct rlmd_engine *, const char *name,
					struct rlmd_error *);

/*
 * Runs the loop until `job` has ended and told so; NULL: until all have. False:
 * RLMD_ERROR_CANCELLED where somebody broke the loop (event_base_loopbreak()), RLMD_ERROR_USAGE
 * from inside a callback, RLMD_ERROR_INTERNAL where nothing is left that could happen.
 */
bool rlmd_engine_wait(struct rlmd_engine *, const struct rlmd_job *, struct rlmd_error *);

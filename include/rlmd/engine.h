/*
 * rlmd/engine.h - the part of a process that its jobs share.
 *
 * An engine has the event loop, or is lent the caller's (libevent), the
 * providers of models, the sandboxes where code runs, and the permits: so many
 * workers compute and so many model calls are in flight at once, of all its
 * jobs, which take turns. It hosts any number of jobs (rlmd/job.h) at once;
 * several engines may stand in one process. What a job needs and nobody has
 * asked for yet is started when it is needed first.
 */
#pragma once

#include <rlmd/log.h>
#include <rlmd/rlmd.h>
#include <rlmd/sandbox.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;
struct rlmd_engine;
struct rlmd_job;
struct rlmd_provider;

struct rlmd_engine_options {
	size_t size;
	struct event_base *base; /* lent until rlmd_engine_free(); NULL: one of the engine's own */
	size_t max_workers;      /* that compute at once, of all jobs; 0: 8 */
	size_t max_calls;        /* model calls in flight at once, of all jobs; 0: 64 */
	rlmd_log_fn *log;        /* NULL: nobody hears */
	void *log_owner;         /* lent */
	enum rlmd_log_level log_level; /* the least that is heard of */
};

/* NULL options are all zero. RLMD_ERROR_USAGE for options that make no sense,
 * RLMD_ERROR_INTERNAL where the system gives no event loop. */
RLMD_API struct rlmd_engine *rlmd_engine_new(const struct rlmd_engine_options *,
					     struct rlmd_error *);

/* Frees its jobs and what else was started by it: all is cancelled, and nobody
 * is called back any more. Not from inside a callback. NULL is fine. */
RLMD_API void rlmd_engine_free(struct rlmd_engine *);

/* Lent. Whoever has a loop running on it need not wait for jobs: they tell
 * their end. */
RLMD_API struct event_base *rlmd_engine_base(const struct rlmd_engine *);

/*
 * From now on its models can be asked, as "NAME/MODEL"; NULL: by the name that
 * the provider has. The first one is that of jobs which name none. Takes a
 * reference of its own. RLMD_ERROR_USAGE where the name is taken or cannot be
 * one.
 */
RLMD_API bool rlmd_engine_add_provider(struct rlmd_engine *, const char *name,
				       struct rlmd_provider *, struct rlmd_error *);

/*
 * How long the provider of that name (NULL: the first) is not to be given more
 * work, as its answers said, in milliseconds: it limits the rate, or is busy. 0:
 * it may be asked, or there is none of that name. Calls that are asked for all the
 * same wait for it; who has thousands of jobs begins them later.
 */
RLMD_API int64_t rlmd_engine_provider_wait(const struct rlmd_engine *, const char *provider);

/*
 * The sandbox of these options, which is started where there is none yet: that
 * takes as long as a python3 takes, some tenths of a second. NULL options are
 * all zero, and mean the sandbox of jobs that name none. Lent until the engine
 * is freed. RLMD_ERROR_USAGE for an interpreter or a module that will not do,
 * RLMD_ERROR_SANDBOX where the walls cannot be raised, or not enough of them.
 */
RLMD_API struct rlmd_sandbox *rlmd_engine_sandbox(struct rlmd_engine *,
						  const struct rlmd_sandbox_options *,
						  struct rlmd_error *);

/*
 * Starts what takes the time, where there is no such sandbox yet, and does not wait for it: other
 * things can be done meanwhile, until rlmd_engine_sandbox() of the same options waits for the rest
 * and tells what is wrong. `ready` (NULL: nobody) is told once when there is little left to wait
 * for, if the loop turns before that; `owner` is lent until then. False: the errors of
 * rlmd_engine_sandbox() that are known at once.
 */
RLMD_API bool rlmd_engine_begin_sandbox(struct rlmd_engine *, const struct rlmd_sandbox_options *,
					rlmd_sandbox_ready_fn *ready, void *owner,
					struct rlmd_error *);

/*
 * Whether answers can be held to schemas: opens what does it, as a job with a
 * schema would, with the interpreter and uids of `like`, which may be NULL.
 * False: RLMD_ERROR_USAGE where Python's jsonschema is missing, with the way to
 * install it; else as rlmd_engine_sandbox().
 */
RLMD_API bool rlmd_engine_validates(struct rlmd_engine *, const struct rlmd_sandbox *like,
				    struct rlmd_error *);

/*
 * Runs the loop until `job` has ended and told so; NULL: until all jobs have.
 * False: RLMD_ERROR_CANCELLED where somebody left the loop
 * (event_base_loopbreak()), RLMD_ERROR_USAGE from inside a callback, unless
 * `job` has ended already, RLMD_ERROR_INTERNAL where nothing is left that could
 * happen. That a job failed is its result, and no failure of waiting.
 */
RLMD_API bool rlmd_engine_wait(struct rlmd_engine *, const struct rlmd_job *, struct rlmd_error *);

#ifdef __cplusplus
}
#endif

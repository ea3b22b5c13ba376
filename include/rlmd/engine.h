/*
 * rlmd/engine.h - the part of a process that its jobs share.
 *
 * An engine has an event loop (libevent), its own or the caller's; the providers
 * of models; the sandboxes where code runs; and the permits, which limit how many
 * workers compute and how many model calls are in flight at once. Its jobs
 * (rlmd/job.h), any number at once, take turns for the permits. A process may have
 * several engines. Sandboxes and connections are started when a job first needs
 * them, unless the host has asked for them before.
 */
#pragma once

#include <rlmd/log.h>
#include <rlmd/rlmd.h>
#include <rlmd/sandbox.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	size_t max_workers;      /* workers of all jobs that compute at once; 0: 8 */
	size_t max_calls;        /* model calls of all jobs in flight at once; 0: 64 */
	rlmd_log_fn *log;        /* NULL: nothing is logged */
	void *log_owner;         /* lent */
	enum rlmd_log_level log_level; /* records below this level are dropped */
};

#define RLMD_ENGINE_OPTIONS_INIT RLMD_INIT(struct rlmd_engine_options)

/* NULL options are all zero. RLMD_ERROR_USAGE for options that make no sense,
 * RLMD_ERROR_INTERNAL where the system gives no event loop. */
RLMD_API struct rlmd_engine *rlmd_engine_new(const struct rlmd_engine_options *,
					     struct rlmd_error *);

/* Cancels and frees the engine's jobs, sessions and sandboxes. No callback follows.
 * Not to be called from inside a callback. NULL is fine. */
RLMD_API void rlmd_engine_free(struct rlmd_engine *);

/* The engine's event base, lent. A host that runs a loop on it need not wait for
 * jobs: their hook `end` tells it. One of the engine's own always has an event, for
 * rlmd_engine_post(): event_base_dispatch() ends by event_base_loopbreak() alone. */
RLMD_API struct event_base *rlmd_engine_base(const struct rlmd_engine *);

/*
 * Adds a provider under a name: jobs ask its models as "NAME/MODEL". NULL is the
 * provider's own name. Jobs that name no provider use the first one. Takes a
 * reference. RLMD_ERROR_USAGE if the name is taken or is no name.
 */
RLMD_API bool rlmd_engine_add_provider(struct rlmd_engine *, const char *name,
				       struct rlmd_provider *, struct rlmd_error *);

/*
 * Milliseconds until the provider of that name (NULL: the first) takes requests
 * again, by its own answers: it limits the rate, or is busy. 0: it takes them now,
 * or there is no such provider. Calls to it wait that long by themselves; a host
 * with thousands of jobs can start them later instead.
 */
RLMD_API int64_t rlmd_engine_provider_wait(const struct rlmd_engine *, const char *provider);

/*
 * The sandbox with these options. Starts one if there is none yet, which takes as
 * long as a python3 does, some tenths of a second. NULL options are all zero: the
 * sandbox of jobs that name none. Lent until the engine is freed. RLMD_ERROR_USAGE
 * for an unsuitable interpreter or module, RLMD_ERROR_SANDBOX if the walls cannot
 * be raised, or not enough of them.
 */
RLMD_API struct rlmd_sandbox *rlmd_engine_sandbox(struct rlmd_engine *,
						  const struct rlmd_sandbox_options *,
						  struct rlmd_error *);

/*
 * Starts a sandbox without waiting for it; rlmd_engine_sandbox() with the same options waits for
 * the rest and tells errors. Nothing happens if that sandbox exists. `ready` (may be NULL) is
 * called once, from the loop, when little is left to wait for; `owner` is lent until then. False:
 * the errors of rlmd_engine_sandbox() that are known at once.
 */
RLMD_API bool rlmd_engine_begin_sandbox(struct rlmd_engine *, const struct rlmd_sandbox_options *,
					rlmd_sandbox_ready_fn *ready, void *owner,
					struct rlmd_error *);

/*
 * Whether the engine can check answers against JSON Schemas: opens the sandbox
 * that does, with the interpreter and uids of `like` (may be NULL), as a job with
 * a schema would. False: RLMD_ERROR_USAGE if Python's jsonschema is missing, with
 * the way to install it; else the errors of rlmd_engine_sandbox().
 */
RLMD_API bool rlmd_engine_validates(struct rlmd_engine *, const struct rlmd_sandbox *like,
				    struct rlmd_error *);

/*
 * Runs the loop until `job` has ended and its hook `end` was called; NULL: until
 * all jobs have. A job's failure is its result, and not an error here. False:
 * RLMD_ERROR_CANCELLED if the loop was left (event_base_loopbreak()),
 * RLMD_ERROR_USAGE from inside a callback (unless `job` has ended already),
 * RLMD_ERROR_INTERNAL if the loop has no event left.
 */
RLMD_API bool rlmd_engine_wait(struct rlmd_engine *, const struct rlmd_job *, struct rlmd_error *);

/*
 * The engine inside another loop, as libcurl's curl_multi and libpq have it: wait until the
 * descriptor is readable or so many milliseconds are over, then let it turn, and ask again how long
 * to wait. Other descriptors and clocks need not be looked at.
 *
 *     struct pollfd wait = {rlmd_engine_fd(engine), POLLIN, 0};
 *     while (!rlmd_job_result(job)) {
 *             poll(&wait, 1, (int)rlmd_engine_next_ms(engine));
 *             rlmd_engine_turn(engine, &err);
 *     }
 */

/* Lent, and the same until the engine is freed; an epoll(7), which other loops may watch. -1: there
 * is none (libevent uses no epoll here, /proc is not mounted, or the base is the host's), NULL or
 * a forked child. */
RLMD_API int rlmd_engine_fd(const struct rlmd_engine *);

/* Milliseconds until something is due by the clock; 0: now; -1: nothing is, wait for the
 * descriptor alone. */
RLMD_API int64_t rlmd_engine_next_ms(const struct rlmd_engine *);

/* Does what is due, and does not wait. False: RLMD_ERROR_USAGE from inside a callback. */
RLMD_API bool rlmd_engine_turn(struct rlmd_engine *, struct rlmd_error *);

/* Called from the loop, where it may use the engine. */
typedef void rlmd_post_fn(void *arg);

/*
 * Has the loop call a function soon: the one call here that any thread may make, at any time before
 * rlmd_engine_free() begins. Functions are called in the order in which they were posted; those
 * that were not called before the engine is freed never are. `arg` is lent until then. A post wakes
 * rlmd_engine_wait() and the descriptor. False: RLMD_ERROR_USAGE if the base is the host's, which
 * has means of its own for that (event2/thread.h), or for a forked child.
 */
RLMD_API bool rlmd_engine_post(struct rlmd_engine *, rlmd_post_fn *, void *arg,
			       struct rlmd_error *);

#ifdef __cplusplus
}
#endif

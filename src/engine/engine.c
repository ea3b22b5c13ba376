#include "engine/engine.h"

#include <rlmd/repl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async/scheduler.h"
#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/text.h"
#include "base/wait.h"
#include "engine/capacity.h"
#include "engine/posts.h"
#include "engine/validation.h"
#include "llm/provider.h"
#include "sandbox/sandbox.h"

#define SYSTEM_PYTHON "/usr/bin/python3"
#define MEMORY_USUAL  ((size_t)1 << 30)

enum {
	WORKERS_USUAL = 8,
	CALLS_USUAL = 64,
};

static bool read_options(struct rlmd_engine_options *ret, const struct rlmd_engine_options *given,
			 struct rlmd_error *err)
{
	if (!abi_copy_in(ret, sizeof *ret, given, sizeof *ret, "rlmd_engine_options", err))
		return false;
	if (!ret->max_workers)
		ret->max_workers = WORKERS_USUAL;
	if (!ret->max_calls)
		ret->max_calls = CALLS_USUAL;
	return capacity_check(ret->max_workers, ret->max_calls, err);
}

struct rlmd_engine *rlmd_engine_new(const struct rlmd_engine_options *given, struct rlmd_error *err)
{
	struct rlmd_engine_options options;
	struct rlmd_engine *engine;
	struct event_base *base;

	if (!read_options(&options, given, err))
		return NULL;
	base = options.base ? options.base : loop_new();

	if (!base) {
		error_set(err, RLMD_ERROR_INTERNAL, "cannot make an event loop");
		return NULL;
	}
	engine = xcalloc(1, sizeof *engine);
	if (!options.base && !(engine->posts = posts_new(base, err))) {
		event_base_free(base);
		free(engine);
		return NULL;
	}
	engine->base = base;
	engine->log = log_root(options.log_level, options.log, options.log_owner);
	engine->base_owned = !options.base;
	engine->made_by = engine->freed_by = getpid();
	engine->registry = registry_new(base);
	engine->calls = scheduler_new(base, options.max_calls);
	engine->workers = scheduler_new(base, options.max_workers);
	TAILQ_INIT(&engine->providers);
	TAILQ_INIT(&engine->sandboxes);
	TAILQ_INIT(&engine->jobs);
	LIST_INIT(&engine->repls);
	return engine;
}

bool engine_is_ours(const struct rlmd_engine *engine, struct rlmd_error *err)
{
	if (engine->made_by == getpid())
		return true;
	return error_set(err, RLMD_ERROR_USAGE,
			 "the engine is that of process %d, and this one (%d) was forked from it: "
			 "make an engine here",
			 (int)engine->made_by, (int)getpid());
}

/* --- sandboxes: one for each set of options that somebody has asked for --------------------- */

struct engine_sandbox {
	struct rlmd_sandbox *sandbox; /* owned */
	char *python;                 /* owned */
	size_t worker_memory, pool_memory;
	unsigned pool_parts;
	uint32_t first_uid;
	bool awaited; /* it is open */
	TAILQ_ENTRY(engine_sandbox) entry;
};

static bool same_modules(const char *const *one, const char *const *other)
{
	static const char *const none[] = {NULL};

	one = one ? one : none;
	other = other ? other : none;
	while (*one && *other && !strcmp(*one, *other))
		one++, other++;
	return !*one && !*other;
}

static struct engine_sandbox *find_sandbox(const struct rlmd_engine *engine,
					   const struct sandbox_config *config)
{
	struct engine_sandbox *known;

	TAILQ_FOREACH (known, &engine->sandboxes, entry)
		if (!strcmp(known->python, config->python) &&
		    known->worker_memory == config->worker_memory &&
		    known->pool_memory == config->pool_memory &&
		    known->pool_parts == config->pool_parts &&
		    known->first_uid == config->first_uid &&
		    same_modules(sandbox_preload(known->sandbox), config->preload))
			return known;
	return NULL;
}

/* The user's directory for caches, new; NULL where there is none. */
static char *cache_directory(void)
{
	const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");

	if (xdg && *xdg == '/')
		return xstrdup(xdg);
	return home && *home == '/' ? xasprintf("%s/.cache", home) : NULL;
}

static struct engine_sandbox *begin_sandbox(struct rlmd_engine *engine,
					    const struct sandbox_config *config,
					    struct rlmd_error *err)
{
	auto_free char *template = file_shipped("worker", "start.py");
	auto_free char *cache = cache_directory();
	struct sandbox_config settings = *config;
	struct engine_sandbox *begun;
	struct rlmd_sandbox *sandbox;

	if (access(template, R_OK)) {
		error_errno(err, RLMD_ERROR_SANDBOX,
			    "the worker's files are neither beside the program nor installed: "
			    "build all targets, or install; %s",
			    template);
		return NULL;
	}
	*strrchr(template, '/') = '\0';
	settings.worker_dir = template;
	settings.cache = cache;
	settings.log = &engine->log;
	sandbox = sandbox_begin(engine->base, &settings, err);
	if (!sandbox)
		return NULL;
	begun = xcalloc(1, sizeof *begun);
	begun->sandbox = sandbox;
	begun->python = xstrdup(config->python);
	begun->worker_memory = config->worker_memory;
	begun->pool_memory = config->pool_memory;
	begun->pool_parts = config->pool_parts;
	begun->first_uid = config->first_uid;
	TAILQ_INSERT_TAIL(&engine->sandboxes, begun, entry);
	return begun;
}

static bool is_level(const char *level)
{
	return level[0] == 'L' && level[1] >= '1' && level[1] <= '4' && !level[2];
}

static bool suffices(const struct rlmd_sandbox *sandbox, const char *require,
		     struct rlmd_error *err)
{
	const char *level = rlmd_sandbox_level(sandbox);

	if (!require || strcmp(level, require) >= 0)
		return true;
	return error_set(
		err, RLMD_ERROR_SANDBOX,
		"isolation %s is less than the %s that is required; 'rlmd doctor' tells which "
		"layers are missing, and what would add them",
		level, require);
}

static void forget_sandbox(struct rlmd_engine *engine, struct engine_sandbox *known)
{
	TAILQ_REMOVE(&engine->sandboxes, known, entry);
	sandbox_free(known->sandbox);
	free(known->python);
	free(known);
}

/* Where it was begun, until it is open. */
static bool await_sandbox(struct rlmd_engine *engine, struct engine_sandbox *known,
			  struct rlmd_error *err)
{
	struct rlmd_error why = {0};

	if (!known->awaited && !sandbox_await(known->sandbox, &why)) {
		forget_sandbox(engine, known);
		if (err)
			*err = why;
		return false;
	}
	known->awaited = true;
	return true;
}

/* Reads the options of a sandbox; `config` borrows from `options`. */
static bool read_sandbox_options(const struct rlmd_engine *engine,
				 const struct rlmd_sandbox_options *given,
				 struct rlmd_sandbox_options *options,
				 struct sandbox_config *config, struct rlmd_error *err)
{
	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "a sandbox needs an engine");
	if (!engine_is_ours(engine, err))
		return false;
	if (!abi_copy_in(options, sizeof *options, given, sizeof *options, "rlmd_sandbox_options",
			 err))
		return false;
	if (options->require && !is_level(options->require))
		return error_set(err, RLMD_ERROR_USAGE,
				 "'%.20s' is no level of isolation: L1 to L4 are",
				 options->require);
	*config = (struct sandbox_config){
		.python = options->python ? options->python : "python3",
		.preload = options->preload,
		.worker_memory = options->worker_memory ? options->worker_memory : MEMORY_USUAL,
		.pool_memory = options->pool_memory,
		.pool_parts = options->pool_parts > 1 ? options->pool_parts : 0,
		.first_uid = options->first_uid,
	};
	return true;
}

bool rlmd_engine_begin_sandbox(struct rlmd_engine *engine, const struct rlmd_sandbox_options *given,
			       rlmd_sandbox_ready_fn *ready, void *owner, struct rlmd_error *err)
{
	struct rlmd_sandbox_options options;
	struct sandbox_config config;
	struct engine_sandbox *begun;

	if (!read_sandbox_options(engine, given, &options, &config, err))
		return false;
	if (find_sandbox(engine, &config))
		return true;
	begun = begin_sandbox(engine, &config, err);
	if (begun)
		sandbox_on_ready(begun->sandbox, ready, owner);
	return begun;
}

struct rlmd_sandbox *rlmd_engine_sandbox(struct rlmd_engine *engine,
					 const struct rlmd_sandbox_options *given,
					 struct rlmd_error *err)
{
	struct rlmd_sandbox_options options;
	struct sandbox_config config;
	struct engine_sandbox *found;

	if (!read_sandbox_options(engine, given, &options, &config, err))
		return NULL;
	found = find_sandbox(engine, &config);
	if (!found)
		found = begin_sandbox(engine, &config, err);
	if (!found || !await_sandbox(engine, found, err) ||
	    !suffices(found->sandbox, options.require, err))
		return NULL;
	return found->sandbox;
}

static struct rlmd_sandbox *open_validator(struct rlmd_engine *engine, const char *python,
					   uint32_t first_uid, struct rlmd_error *err)
{
	static const char *const modules[] = {":validation", NULL};
	const struct rlmd_sandbox_options options = {
		.size = sizeof options,
		.python = python,
		.preload = modules,
		.worker_memory = VALIDATION_MEMORY,
		.first_uid = first_uid,
	};

	return rlmd_engine_sandbox(engine, &options, err);
}

struct rlmd_sandbox *engine_validator(struct rlmd_engine *engine, const struct rlmd_sandbox *like,
				      struct rlmd_error *err)
{
	const struct engine_sandbox *known = NULL, *each;
	struct rlmd_sandbox *found;
	struct rlmd_error why;
	uint32_t first_uid;

	TAILQ_FOREACH (each, &engine->sandboxes, entry)
		if (each->sandbox == like)
			known = each;
	first_uid = known ? known->first_uid : 0;
	found = open_validator(engine, known ? known->python : NULL, first_uid, &why);
	if (!found && why.kind == RLMD_ERROR_USAGE)
		found = open_validator(engine, SYSTEM_PYTHON, first_uid, &why);
	if (found)
		return found;
	if (err)
		*err = why;
	if (why.kind == RLMD_ERROR_USAGE)
		error_context(err, "answers are held to a schema by Python's jsonschema, which is "
				   "missing (apt install python3-jsonschema)");
	return NULL;
}

bool rlmd_engine_validates(struct rlmd_engine *engine, const struct rlmd_sandbox *like,
			   struct rlmd_error *err)
{
	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "a sandbox needs an engine");
	if (!engine_is_ours(engine, err))
		return false;
	return engine_validator(engine, like, err);
}

static void close_sandboxes(struct rlmd_engine *engine)
{
	while (!TAILQ_EMPTY(&engine->sandboxes))
		forget_sandbox(engine, TAILQ_FIRST(&engine->sandboxes));
}

static void cut_sandboxes(struct rlmd_engine *engine)
{
	struct engine_sandbox *known;

	TAILQ_FOREACH (known, &engine->sandboxes, entry)
		sandbox_cut(known->sandbox);
}

/* --- its end, providers, and waiting ---------------------------------------------------- */

/* The sockets and pidfds first: the loop that is made anew then knows those without a peer. */
void engine_to_free(struct rlmd_engine *engine)
{
	if (engine->freed_by == getpid())
		return;
	engine->freed_by = getpid();
	engine->log.fn = NULL;
	registry_cut(engine->registry);
	cut_sandboxes(engine);
	event_reinit(
		engine->base); /* an epoll is shared, too: without it events of the parent go */
}

void rlmd_engine_free(struct rlmd_engine *engine)
{
	struct engine_provider *provider;
	struct engine_job *job;

	if (!engine)
		return;
	engine_to_free(engine);
	while ((job = TAILQ_FIRST(&engine->jobs)))
		job->destroy(job);
	while (!LIST_EMPTY(&engine->repls))
		rlmd_repl_free(LIST_FIRST(&engine->repls));
	close_sandboxes(engine);
	while ((provider = TAILQ_FIRST(&engine->providers))) {
		TAILQ_REMOVE(&engine->providers, provider, entry);
		estimators_done(&provider->estimators);
		free(provider->name);
		free(provider);
	}
	registry_free(engine->registry);
	scheduler_free(engine->calls);
	scheduler_free(engine->workers);
	posts_free(engine->posts);
	if (engine->base_owned)
		event_base_free(engine->base);
	free(engine);
}

struct event_base *rlmd_engine_base(const struct rlmd_engine *engine)
{
	return engine ? engine->base : NULL;
}

static struct engine_provider *find(const struct rlmd_engine *engine, const char *name)
{
	struct engine_provider *provider;

	TAILQ_FOREACH (provider, &engine->providers, entry)
		if (!strcmp(provider->name, name))
			return provider;
	return NULL;
}

bool rlmd_engine_add_provider(struct rlmd_engine *engine, const char *name,
			      struct rlmd_provider *provider, struct rlmd_error *err)
{
	struct engine_provider *known;

	if (!engine || !provider)
		return error_set(err, RLMD_ERROR_USAGE, "there is no %s to add",
				 engine ? "provider" : "engine");
	if (!engine_is_ours(engine, err))
		return false;
	if (!registry_add(engine->registry, name, provider, err))
		return false;
	known = xcalloc(1, sizeof *known);
	known->name = xstrdup(provider->name);
	TAILQ_INSERT_TAIL(&engine->providers, known, entry);
	return true;
}

int64_t rlmd_engine_provider_wait(const struct rlmd_engine *engine, const char *name)
{
	const struct rlmd_provider *provider = engine ? registry_find(engine->registry,
								      text_of(name))
						      : NULL;
	int64_t wait;

	if (!provider || !provider->gate)
		return 0;
	wait = gate_busy_until(provider->gate) - clock_ms();
	return wait > 0 ? wait : 0;
}

struct engine_provider *engine_provider(const struct rlmd_engine *engine, const char *name,
					struct rlmd_error *err)
{
	struct engine_provider *provider = name ? find(engine, name)
						: TAILQ_FIRST(&engine->providers);

	if (!provider && name)
		error_set(err, RLMD_ERROR_USAGE, "no provider is called '%.100s'", name);
	else if (!provider)
		error_set(err, RLMD_ERROR_USAGE, "the engine has no provider yet");
	return provider;
}

static bool is_over(const struct rlmd_engine *engine, bool all)
{
	const struct engine_job *job;

	if (!all)
		return !engine->awaited;
	TAILQ_FOREACH (job, &engine->jobs, entry)
		if (!job->over)
			return false;
	return true;
}

static bool refuse_within(struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_USAGE,
			 "nobody can wait or turn the loop inside one of its callbacks");
}

/* The loop waits for posts as long as it lives, which is nothing to wait for. */
static bool nothing_left(const struct rlmd_engine *engine)
{
	unsigned events = EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE;

	return engine->posts && event_base_get_num_events(engine->base, events) <= 1;
}

/* A loop that is run already, by us or by whoever lent the base, refuses another turn. */
static bool turn(struct rlmd_engine *engine, bool all, struct rlmd_error *err)
{
	while (!is_over(engine, all)) {
		int flags = nothing_left(engine) ? EVLOOP_NONBLOCK : EVLOOP_ONCE;
		int left = event_base_loop(engine->base, flags);

		if (left < 0)
			return refuse_within(err);
		if (left || (nothing_left(engine) && !is_over(engine, all)))
			return error_set(err, RLMD_ERROR_INTERNAL, "nothing is left to wait for");
		if (event_base_got_break(engine->base) && !is_over(engine, all))
			return error_set(err, RLMD_ERROR_CANCELLED, "the event loop was left");
	}
	return true;
}

bool rlmd_engine_wait(struct rlmd_engine *engine, const struct rlmd_job *awaited,
		      struct rlmd_error *err)
{
	const struct engine_job *job = (const struct engine_job *)awaited; /* it begins with it */
	bool ok;

	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "there is no engine to wait for");
	if (!engine_is_ours(engine, err))
		return false;
	if (job && job->engine != engine)
		return error_set(err, RLMD_ERROR_USAGE, "the job is one of another engine");
	if (job && job->over)
		return true;
	if (engine->waiting)
		return refuse_within(err);
	engine->waiting = true;
	engine->awaited = job;
	ok = turn(engine, !job, err);
	engine->awaited = NULL;
	engine->waiting = false;
	return ok;
}

int rlmd_engine_fd(const struct rlmd_engine *engine)
{
	return engine && engine->posts && engine_is_ours(engine, NULL)
		       ? posts_loop_fd(engine->posts)
		       : -1;
}

int64_t rlmd_engine_next_ms(const struct rlmd_engine *engine)
{
	return engine && engine_is_ours(engine, NULL) ? loop_next_ms(engine->base) : -1;
}

bool rlmd_engine_turn(struct rlmd_engine *engine, struct rlmd_error *err)
{
	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "there is no engine to turn");
	if (!engine_is_ours(engine, err))
		return false;
	return event_base_loop(engine->base, EVLOOP_NONBLOCK) >= 0 || refuse_within(err);
}

bool rlmd_engine_post(struct rlmd_engine *engine, rlmd_post_fn *fn, void *arg,
		      struct rlmd_error *err)
{
	if (!engine || !fn)
		return error_set(err, RLMD_ERROR_USAGE, "there is no %s to post",
				 engine ? "function" : "engine");
	if (!engine_is_ours(engine, err))
		return false;
	if (!engine->posts)
		return error_set(err, RLMD_ERROR_USAGE,
				 "the engine's event base is the host's, which has means of its "
				 "own to wake it (event2/thread.h)");
	posts_add(engine->posts, fn, arg);
	return true;
}

void rlmd_heed_signals(int (*count)(void), const int *signals)
{
	static struct wait_interruptions interruptions;

	interruptions.count = count;
	sigemptyset(&interruptions.signals);
	while (signals && *signals)
		sigaddset(&interruptions.signals, *signals++);
	wait_heed(count ? &interruptions : NULL);
}

/* The sandboxes of an engine: one for each set of options that somebody has asked for. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sized.h"
#include "engine/engine.h"
#include "engine/validation.h"
#include "sandbox/sandbox.h"

#define SYSTEM_PYTHON "/usr/bin/python3"
#define MEMORY_USUAL  ((size_t)1 << 30)

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

static struct engine_sandbox *find(const struct rlmd_engine *engine,
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

static struct engine_sandbox *begin(struct rlmd_engine *engine, const struct sandbox_config *config,
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
		"isolation %s is less than --require %s; 'rlmd doctor' tells which layers are "
		"missing, and what would add them",
		level, require);
}

static void forget(struct rlmd_engine *engine, struct engine_sandbox *known)
{
	TAILQ_REMOVE(&engine->sandboxes, known, entry);
	sandbox_free(known->sandbox);
	free(known->python);
	free(known);
}

/* Where it was begun, until it is open. */
static bool await(struct rlmd_engine *engine, struct engine_sandbox *known, struct rlmd_error *err)
{
	struct rlmd_error why = {0};

	if (!known->awaited && !sandbox_await(known->sandbox, &why)) {
		forget(engine, known);
		if (err)
			*err = why;
		return false;
	}
	known->awaited = true;
	return true;
}

/* What `options` come to; they are lent to it. */
static bool read_options(const struct rlmd_engine *engine, const struct rlmd_sandbox_options *given,
			 struct rlmd_sandbox_options *options, struct sandbox_config *config,
			 struct rlmd_error *err)
{
	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "a sandbox needs an engine");
	if (!sized_take(options, sizeof *options, given, sizeof *options, "rlmd_sandbox_options",
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

	if (!read_options(engine, given, &options, &config, err))
		return false;
	if (find(engine, &config))
		return true;
	begun = begin(engine, &config, err);
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

	if (!read_options(engine, given, &options, &config, err))
		return NULL;
	found = find(engine, &config);
	if (!found)
		found = begin(engine, &config, err);
	if (!found || !await(engine, found, err) || !suffices(found->sandbox, options.require, err))
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
	return engine_validator(engine, like, err);
}

void engine_close_sandboxes(struct rlmd_engine *engine)
{
	while (!TAILQ_EMPTY(&engine->sandboxes))
		forget(engine, TAILQ_FIRST(&engine->sandboxes));
}

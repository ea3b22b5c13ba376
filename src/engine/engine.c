#include "engine/engine.h"

#include <rlmd/repl.h>
#include <stdlib.h>
#include <string.h>

#include "async/scheduler.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/wait.h"
#include "engine/ceiling.h"
#include "engine/job.h"
#include "llm/provider.h"

enum {
	WORKERS_USUAL = 8,
	CALLS_USUAL = 64,
};

static bool read_options(struct rlmd_engine_options *ret, const struct rlmd_engine_options *given,
			 struct rlmd_error *err)
{
	if (!sized_take(ret, sizeof *ret, given, sizeof *ret, "rlmd_engine_options", err))
		return false;
	if (!ret->max_workers)
		ret->max_workers = WORKERS_USUAL;
	if (!ret->max_calls)
		ret->max_calls = CALLS_USUAL;
	return ceiling_check(ret->max_workers, ret->max_calls, err);
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
	engine->base = base;
	engine->log = log_root(options.log_level, options.log, options.log_owner);
	engine->base_owned = !options.base;
	engine->registry = registry_new(base);
	engine->calls = scheduler_new(base, options.max_calls);
	engine->workers = scheduler_new(base, options.max_workers);
	TAILQ_INIT(&engine->providers);
	TAILQ_INIT(&engine->sandboxes);
	TAILQ_INIT(&engine->jobs);
	LIST_INIT(&engine->repls);
	return engine;
}

void rlmd_engine_free(struct rlmd_engine *engine)
{
	struct engine_provider *provider;

	if (!engine)
		return;
	while (!TAILQ_EMPTY(&engine->jobs))
		job_destroy(TAILQ_FIRST(&engine->jobs));
	while (!LIST_EMPTY(&engine->repls))
		rlmd_repl_free(LIST_FIRST(&engine->repls));
	engine_close_sandboxes(engine);
	while ((provider = TAILQ_FIRST(&engine->providers))) {
		TAILQ_REMOVE(&engine->providers, provider, entry);
		estimators_done(&provider->estimators);
		free(provider->name);
		free(provider);
	}
	registry_free(engine->registry);
	scheduler_free(engine->calls);
	scheduler_free(engine->workers);
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
	const struct rlmd_job *job;

	if (!all)
		return !engine->awaited;
	TAILQ_FOREACH (job, &engine->jobs, entry)
		if (!job_is_over(job))
			return false;
	return true;
}

static bool wrong_place(struct rlmd_error *err)
{
	return error_set(err, RLMD_ERROR_USAGE,
			 "nobody can wait for a job inside a callback of the event loop");
}

/* A loop that is run already, by us or by whoever lent the base, refuses another turn. */
static bool turn(struct rlmd_engine *engine, bool all, struct rlmd_error *err)
{
	while (!is_over(engine, all)) {
		int left = event_base_loop(engine->base, EVLOOP_ONCE);

		if (left < 0)
			return wrong_place(err);
		if (left)
			return error_set(err, RLMD_ERROR_INTERNAL, "nothing is left to wait for");
		if (event_base_got_break(engine->base) && !is_over(engine, all))
			return error_set(err, RLMD_ERROR_CANCELLED, "the event loop was left");
	}
	return true;
}

bool rlmd_engine_wait(struct rlmd_engine *engine, const struct rlmd_job *job,
		      struct rlmd_error *err)
{
	bool ok;

	if (!engine)
		return error_set(err, RLMD_ERROR_USAGE, "there is no engine to wait for");
	if (job && job->engine != engine)
		return error_set(err, RLMD_ERROR_USAGE, "the job is one of another engine");
	if (job && job_is_over(job))
		return true;
	if (engine->waiting)
		return wrong_place(err);
	engine->waiting = true;
	engine->awaited = job;
	ok = turn(engine, !job, err);
	engine->awaited = NULL;
	engine->waiting = false;
	return ok;
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

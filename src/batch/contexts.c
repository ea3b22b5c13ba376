#include "batch/contexts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/timer.h"

struct contexts_hold {
	TAILQ_ENTRY(contexts_hold) next;
	struct held *held;
	contexts_fn *done; /* NULL: it was told */
	void *owner;
	struct timer *posted; /* owned */
};

/* A source that somebody holds, or waits for. */
struct held {
	LIST_ENTRY(held) next;
	struct contexts *contexts;
	char *source;                         /* owned */
	struct rlmd_context_loading *loading; /* owned; NULL: it has ended */
	struct rlmd_context *context;         /* owned; NULL: not there */
	struct rlmd_error error;              /* why it never will be */
	TAILQ_HEAD(, contexts_hold) holds;
};

struct contexts {
	struct event_base *base;
	const char *directory;
	LIST_HEAD(, held) all;
};

struct contexts *contexts_new(struct event_base *base, const char *directory)
{
	struct contexts *contexts = xcalloc(1, sizeof *contexts);

	contexts->base = base;
	contexts->directory = directory;
	LIST_INIT(&contexts->all);
	return contexts;
}

void contexts_free(struct contexts *contexts)
{
	free(contexts);
}

static void free_held(struct held *held)
{
	LIST_REMOVE(held, next);
	rlmd_context_load_cancel(held->loading);
	rlmd_context_unref(held->context);
	free(held->source);
	free(held);
}

static void on_posted(void *owner)
{
	struct contexts_hold *hold = owner;
	struct held *held = hold->held;
	contexts_fn *done = hold->done;

	hold->done = NULL;
	if (done)
		done(hold->owner, held->context, held->context ? NULL : &held->error);
}

static void on_loaded(void *owner, struct rlmd_context *context, const struct rlmd_error *err)
{
	struct held *held = owner;
	struct contexts_hold *hold;

	held->loading = NULL;
	held->context = context;
	if (!context)
		held->error = *err;
	TAILQ_FOREACH (hold, &held->holds, next)
		timer_post(hold->posted);
}

static struct held *load(struct contexts *contexts, const char *source)
{
	const struct rlmd_context_options options = {
		.size = sizeof options,
		.directory = contexts->directory,
	};
	struct held *held = xcalloc(1, sizeof *held);

	held->contexts = contexts;
	held->source = xstrdup(source);
	TAILQ_INIT(&held->holds);
	LIST_INSERT_HEAD(&contexts->all, held, next);
	held->loading = rlmd_context_load_start(contexts->base, &source, 1, &options, on_loaded,
						held, &held->error);
	return held;
}

/* A failed read is not shared: the file may be there by the next time. */
static struct held *find(struct contexts *contexts, const char *source)
{
	struct held *held;

	LIST_FOREACH (held, &contexts->all, next)
		if (!held->error.kind && !strcmp(held->source, source))
			return held;
	return load(contexts, source);
}

struct contexts_hold *contexts_hold(struct contexts *contexts, const char *source,
				    contexts_fn *done, void *owner)
{
	struct contexts_hold *hold = xcalloc(1, sizeof *hold);

	hold->held = find(contexts, source);
	hold->done = done;
	hold->owner = owner;
	hold->posted = timer_new(contexts->base, on_posted, hold);
	TAILQ_INSERT_TAIL(&hold->held->holds, hold, next);
	if (!hold->held->loading)
		timer_post(hold->posted);
	return hold;
}

void contexts_release(struct contexts_hold *hold)
{
	struct held *held;

	if (!hold)
		return;
	held = hold->held;
	TAILQ_REMOVE(&held->holds, hold, next);
	timer_free(hold->posted);
	free(hold);
	if (TAILQ_EMPTY(&held->holds))
		free_held(held);
}

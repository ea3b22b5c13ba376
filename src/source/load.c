/*
 * rlmd/context.h: loading, from named sources to a context; blocking and on a loop. Both take the
 * same steps, which never wait.
 */
#include <event2/event.h>
#include <poll.h>
#include <rlmd/context.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/timer.h"
#include "base/wait.h"
#include "source/context.h"
#include "source/loader.h"
#include "source/sources.h"

/* --- steps ------------------------------------------------------------------------------- */

/* One variable after the other: that of all sources without a name, then each that has one. */
struct loading {
	char **given;            /* owned: as they were named */
	struct source *sources;  /* owned */
	struct file_id *named;   /* owned: which files they are */
	size_t count;            /* of the three */
	size_t variable;         /* 0: of those without a name; else that of the source before */
	size_t next;             /* source to be looked at for it */
	const struct source *at; /* lent: the one that is read; NULL: none */
	int fd;                  /* owned: its; -1: it is a directory */
	struct loader_options options; /* the selection of it is owned */
	struct selection *selection;   /* owned */
	char *words;                   /* owned: which files of directories */
	char *directory;               /* owned */
	struct loader *loader;         /* owned: the variable's; NULL: not begun */
	bool sealed;                   /* its text: all sources of the variable are read */
	struct context context;        /* owned: as far as it has come */
};

static const char *name_of(const struct loading *loading)
{
	return loading->variable ? loading->sources[loading->variable - 1].name : NULL;
}

static bool copy_sources(struct loading *loading, const char *const *given, size_t count,
			 struct rlmd_error *err)
{
	loading->given = xcalloc(count + 1, sizeof *loading->given);
	loading->sources = xcalloc(count + 1, sizeof *loading->sources);
	loading->named = xcalloc(count + 1, sizeof *loading->named);
	loading->count = count;
	for (size_t i = 0; i < count; i++)
		loading->given[i] = xstrdup(given[i]);
	if (!sources_parse((const char *const *)loading->given, count, loading->sources, err))
		return false;
	for (size_t i = 0; i < count; i++)
		loading->named[i] = loading->sources[i].file;
	return true;
}

/* The options of files in directories, in the form that loaders take. */
static bool copy_options(struct loading *loading, const struct rlmd_context_options *given,
			 struct rlmd_error *err)
{
	const struct selection_options wanted = {
		.include = given->include,
		.include_count = given->include_count,
		.exclude = given->exclude,
		.exclude_count = given->exclude_count,
		.files = given->files,
		.file_count = given->file_count,
	};
	size_t words_size;
	bool limited = given->max_size > 0 && given->max_size < (int64_t)CONTEXT_SIZE_MAX;

	loading->selection = selection_new(&wanted, err);
	loading->words = origin_words(given, &words_size);
	loading->directory = xstrdup(given->directory ? given->directory : ".");
	loading->options = (struct loader_options){
		.origin =
			{
				.selection = loading->selection,
				.words = text_from(loading->words, words_size),
				.directory = loading->directory,
				.compares = given->diff,
			},
		.allow_secrets = given->allow_secrets,
		.max_file_size = given->max_file_size > 0 ? given->max_file_size : INT64_MAX,
		.max_size = limited ? (size_t)given->max_size : CONTEXT_SIZE_MAX,
	};
	return loading->selection;
}

static void loading_free(struct loading *loading)
{
	if (!loading)
		return;
	loader_free(loading->loader);
	selection_free(loading->selection);
	free(loading->words);
	free(loading->directory);
	sources_close(loading->fd);
	sources_done(loading->sources, loading->count);
	for (size_t i = 0; i < loading->count; i++)
		free(loading->given[i]);
	free(loading->given);
	free(loading->sources);
	free(loading->named);
	context_done(&loading->context);
	free(loading);
}

static struct loading *loading_new(const char *const *given, size_t count,
				   const struct rlmd_context_options *options,
				   struct rlmd_error *err)
{
	struct loading *loading = xcalloc(1, sizeof *loading);

	loading->fd = -1;
	loading->context.notes = json_make_array();
	loading->context.inputs = xcalloc(count + 1, sizeof *loading->context.inputs);
	if (copy_options(loading, options, err) && copy_sources(loading, given, count, err))
		return loading;
	loading_free(loading);
	return NULL;
}

/* How many sources make the variable, and whether they are put together under headers. */
static size_t count_sources(const struct loading *loading, bool *ret_together)
{
	size_t found = 0;

	*ret_together = false;
	for (size_t i = 0; i < loading->count; i++)
		if (loading->sources[i].name == name_of(loading)) {
			found++;
			*ret_together |= loading->sources[i].directory;
		}
	*ret_together |= found > 1;
	return found;
}

static enum loader_end begin_variable(struct loading *loading)
{
	const char *name = name_of(loading);
	size_t taken = 0;
	bool together;

	loading->next = 0;
	if ((loading->variable && !name) || !count_sources(loading, &together)) {
		loading->variable++;
		return LOADER_GOES_ON;
	}
	for (size_t i = 0; i < loading->context.count; i++)
		taken += memfile_size(loading->context.inputs[i].file);
	loading->options.taken = taken;
	loading->loader = loader_new(name ? name : "context", together, &loading->options,
				     loading->context.notes);
	loader_set_named(loading->loader, loading->named, loading->count);
	return LOADER_GOES_ON;
}

static enum loader_end end_variable(struct loading *loading, struct rlmd_error *err)
{
	struct context *context = &loading->context;

	if (!loading->sealed) {
		loading->sealed = loader_seal(loading->loader, err);
		return loading->sealed ? LOADER_GOES_ON : LOADER_FAILED;
	}
	if (!loader_finish(loading->loader, &context->inputs[context->count], err))
		return LOADER_FAILED;
	loading->sealed = false;
	context->count++;
	loader_free(take_pointer(&loading->loader));
	loading->variable++;
	return LOADER_GOES_ON;
}

static enum loader_end begin_source(struct loading *loading, const struct source *source,
				    struct rlmd_error *err)
{
	bool together;
	size_t found = count_sources(loading, &together);

	if (source->revision) {
		if (!loader_begin_revision(loading->loader, source->revision, found > 1, err))
			return LOADER_FAILED;
	} else if (source->directory) {
		if (!loader_begin_directory(loading->loader, source->path, found > 1, err))
			return LOADER_FAILED;
	} else {
		loading->fd = sources_open(source, err);
		if (loading->fd < 0)
			return LOADER_FAILED;
		loader_begin_fd(loading->loader, source->path, loading->fd);
	}
	loading->at = source;
	return LOADER_GOES_ON;
}

static enum loader_end next_source(struct loading *loading, struct rlmd_error *err)
{
	while (loading->next < loading->count) {
		const struct source *source = &loading->sources[loading->next++];

		if (source->name == name_of(loading))
			return begin_source(loading, source, err);
	}
	return end_variable(loading, err);
}

/* Puts the source at hand before what is said of it. False. */
static bool loading_blame(const struct loading *loading, struct rlmd_error *err)
{
	if (!loading->at || loading->at->directory)
		return false;
	return error_context(err, "%s",
			     strcmp(loading->at->path, "-") ? loading->at->path : "standard input");
}

static enum loader_end read_source(struct loading *loading, struct rlmd_error *err)
{
	enum loader_end end = loader_step(loading->loader, err);

	if (end == LOADER_FAILED)
		loading_blame(loading, err);
	if (end != LOADER_DONE)
		return end;
	sources_close(take_fd(&loading->fd));
	loading->at = NULL;
	return LOADER_GOES_ON;
}

static enum loader_end loading_step(struct loading *loading, struct rlmd_error *err)
{
	if (loading->at)
		return read_source(loading, err);
	if (loading->loader)
		return next_source(loading, err);
	return loading->variable > loading->count ? LOADER_DONE : begin_variable(loading);
}

/* After LOADER_DONE. */
static void loading_take(struct loading *loading, struct context *ret)
{
	struct context context = loading->context;

	loading->context = (struct context){0};
	for (size_t i = 1; i < context.count; i++)
		if (!strcmp(context.inputs[i].name, "context")) {
			struct context_input first = context.inputs[i];

			memmove(context.inputs + 1, context.inputs, i * sizeof first);
			context.inputs[0] = first;
		}
	*ret = context;
}

/* LOADER_WAITS: for this one, to be readable. */
static int loading_fd(const struct loading *loading)
{
	return loading->fd < 0 && loading->loader ? loader_fd(loading->loader) : loading->fd;
}

static size_t loading_bytes(const struct loading *loading)
{
	return loading->loader ? loader_bytes(loading->loader) : 0;
}

static size_t loading_files(const struct loading *loading)
{
	return loading->loader ? loader_files(loading->loader) : 0;
}

/* --- blocking, and on a loop ------------------------------------------------------------- */

enum {
	LOOK_MS = 200, /* between two questions whether to go on, where nothing comes */
	TURN_MS = 2,   /* of the loop's time that steps take at once */
};

struct rlmd_context_loading {
	struct loading *loading; /* owned */
	struct rlmd_context_options options;
	int64_t deadline;     /* of clock_ms(), or WAIT_FOREVER */
	struct timer *next;   /* owned: the next steps; NULL: the caller waits */
	struct event *arrive; /* owned, while something is waited for */
	rlmd_context_done_fn *done;
	void *owner;     /* lent */
	bool *cancelled; /* lent: where somebody is to be told that it is gone */
};

static void start_clock(struct rlmd_context_loading *load)
{
	int64_t now = clock_ms(), time = load->options.timeout_ms;

	load->deadline = time > 0 && time < WAIT_FOREVER - now ? now + time : WAIT_FOREVER;
}

/* When to ask again whether to go on. */
static int64_t soon(const struct rlmd_context_loading *load)
{
	int64_t look = clock_ms() + LOOK_MS;

	return look < load->deadline ? look : load->deadline;
}

static bool may_go_on(const struct rlmd_context_loading *load, struct rlmd_error *err)
{
	const struct rlmd_context_options *options = &load->options;
	int64_t deadline = load->deadline; /* the callback may cancel, and it is gone */

	if (options->progress && !options->progress(options->owner, loading_bytes(load->loading),
						    loading_files(load->loading)))
		return error_set(err, RLMD_ERROR_CANCELLED, "stopped before all was read");
	return clock_ms() < deadline ||
	       error_set(err, RLMD_ERROR_BUDGET, "the time was over before all was read");
}

static struct rlmd_context *take(struct loading *loading)
{
	struct context context;

	loading_take(loading, &context);
	return context_publish(&context);
}

/* False where they, or the sources, cannot be. */
static bool take_options(const char *const *sources, size_t count,
			 const struct rlmd_context_options *given, struct rlmd_context_options *ret,
			 struct rlmd_error *err)
{
	if (!abi_copy_in(ret, sizeof *ret, given, offsetof(struct rlmd_context_options, include),
			 "rlmd_context_options", err))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!sources || !sources[i])
			return error_set(err, RLMD_ERROR_USAGE, "source %zu of a context is NULL",
					 i);
	return true;
}

struct rlmd_context *rlmd_context_load(const char *const *sources, size_t count,
				       const struct rlmd_context_options *options,
				       struct rlmd_error *err)
{
	struct rlmd_context_loading load = {0};
	struct rlmd_context *context = NULL;
	enum loader_end end = LOADER_GOES_ON;

	if (!take_options(sources, count, options, &load.options, err))
		return NULL;
	load.loading = loading_new(sources, count, &load.options, err);
	if (!load.loading)
		return NULL;
	start_clock(&load);
	while (end == LOADER_GOES_ON || end == LOADER_WAITS) {
		if (!may_go_on(&load, err)) {
			loading_blame(load.loading, err);
			break;
		}
		if (end == LOADER_WAITS)
			wait_for(loading_fd(load.loading), POLLIN, soon(&load), 0);
		end = loading_step(load.loading, err);
	}
	if (end == LOADER_DONE)
		context = take(load.loading);
	loading_free(load.loading);
	return context;
}

/* C3: it is gone before anybody hears of it. */
static void end_with(struct rlmd_context_loading *load, struct rlmd_context *context,
		     const struct rlmd_error *err)
{
	rlmd_context_done_fn *done = load->done;
	void *owner = load->owner;

	rlmd_context_load_cancel(load);
	done(owner, context, err);
}

static void on_arrival(evutil_socket_t fd, short what, void *owner)
{
	struct rlmd_context_loading *load = owner;

	(void)fd;
	(void)what;
	timer_post(load->next);
}

/* Waits for a sender, and asks now and then whether to go on. */
static void await(struct rlmd_context_loading *load)
{
	struct timeval look = clock_timeval(soon(load) - clock_ms());

	event_free(load->arrive);
	load->arrive = loop_event(timer_base(load->next), loading_fd(load->loading),
				  EV_READ | EV_TIMEOUT, on_arrival, load);
	if (event_add(load->arrive, &look)) { /* a device that cannot be waited for */
		event_free(load->arrive);
		load->arrive = loop_event(timer_base(load->next), -1, 0, on_arrival, load);
		loop_add(load->arrive, &look);
	}
}

/* As many as the loop has time for in one turn; false: `ret_err` says why. */
static bool go_on(struct rlmd_context_loading *load, enum loader_end *ret_end,
		  struct rlmd_error *ret_err)
{
	int64_t stop = clock_ms() + TURN_MS;

	do {
		*ret_end = loading_step(load->loading, ret_err);
	} while (*ret_end == LOADER_GOES_ON && clock_ms() < stop);
	return *ret_end != LOADER_FAILED;
}

static void on_next(void *owner)
{
	struct rlmd_context_loading *load = owner;
	struct rlmd_error err = {0};
	enum loader_end end;
	bool cancelled = false, may;

	load->cancelled = &cancelled;
	may = may_go_on(load, &err);
	if (cancelled)
		return;
	load->cancelled = NULL;
	if (!may) {
		loading_blame(load->loading, &err);
		end_with(load, NULL, &err);
	} else if (!go_on(load, &end, &err)) {
		end_with(load, NULL, &err);
	} else if (end == LOADER_DONE) {
		end_with(load, take(load->loading), NULL);
	} else if (end == LOADER_WAITS) {
		await(load);
	} else {
		timer_post(load->next);
	}
}

struct rlmd_context_loading *rlmd_context_load_start(struct event_base *base,
						     const char *const *sources, size_t count,
						     const struct rlmd_context_options *options,
						     rlmd_context_done_fn *done, void *owner,
						     struct rlmd_error *err)
{
	struct rlmd_context_options taken;
	struct rlmd_context_loading *load;

	if (!take_options(sources, count, options, &taken, err))
		return NULL;
	if (!base || !done) {
		error_set(err, RLMD_ERROR_USAGE, "loading needs an event base and a callback");
		return NULL;
	}
	load = xcalloc(1, sizeof *load);
	load->loading = loading_new(sources, count, &taken, err);
	if (!load->loading) {
		free(load);
		return NULL;
	}
	load->options = taken;
	start_clock(load);
	load->done = done;
	load->owner = owner;
	load->next = timer_new(base, on_next, load);
	load->arrive = loop_event(base, -1, 0, on_arrival, load);
	timer_post(load->next);
	return load;
}

void rlmd_context_load_cancel(struct rlmd_context_loading *load)
{
	if (!load)
		return;
	if (load->cancelled)
		*load->cancelled = true;
	timer_free(load->next);
	event_free(load->arrive);
	loading_free(load->loading);
	free(load);
}

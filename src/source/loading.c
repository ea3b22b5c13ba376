#include "source/loading.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "source/sources.h"

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
	char *diff;                    /* owned; or NULL */
	char *directory;               /* owned */
	struct loader *loader;         /* owned: the variable's; NULL: not begun */
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

/* What belongs to files of directories, as the loaders want it. */
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
	bool limited = given->max_size > 0 && given->max_size < (int64_t)CONTEXT_SIZE_MAX;

	loading->selection = selection_new(&wanted, err);
	loading->diff = xstrdup(given->diff);
	loading->directory = xstrdup(given->directory ? given->directory : ".");
	loading->options = (struct loader_options){
		.origin.listing = {loading->selection, given->recurse_submodules, false, false},
		.origin.directory = loading->directory,
		.origin.changes =
			{
				.comparison = loading->diff,
				.untracked = given->untracked,
				.alternates = given->allow_alternates,
				.max_file_size = given->max_file_size > 0
							 ? (size_t)given->max_file_size
							 : CONTEXT_SIZE_MAX,
			},
		.allow_secrets = given->allow_secrets,
		.max_file_size = given->max_file_size > 0 ? given->max_file_size : INT64_MAX,
		.max_size = limited ? (size_t)given->max_size : CONTEXT_SIZE_MAX,
	};
	return loading->selection;
}

struct loading *loading_new(const char *const *given, size_t count,
			    const struct rlmd_context_options *options, struct rlmd_error *err)
{
	struct loading *loading = xcalloc(1, sizeof *loading);

	loading->fd = -1;
	loading->context.notes = json_array();
	loading->context.inputs = xcalloc(count + 1, sizeof *loading->context.inputs);
	if (copy_options(loading, options, err) && copy_sources(loading, given, count, err))
		return loading;
	loading_free(loading);
	return NULL;
}

void loading_free(struct loading *loading)
{
	if (!loading)
		return;
	loader_free(loading->loader);
	selection_free(loading->selection);
	free(loading->diff);
	free(loading->directory);
	source_close(loading->fd);
	sources_done(loading->sources, loading->count);
	for (size_t i = 0; i < loading->count; i++)
		free(loading->given[i]);
	free(loading->given);
	free(loading->sources);
	free(loading->named);
	context_done(&loading->context);
	free(loading);
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
	bool together;

	loading->next = 0;
	if ((loading->variable && !name) || !count_sources(loading, &together)) {
		loading->variable++;
		return LOADER_GOES_ON;
	}
	loading->loader = loader_new(name ? name : "context", together, &loading->options,
				     loading->context.notes);
	loader_set_named(loading->loader, loading->named, loading->count);
	return LOADER_GOES_ON;
}

static enum loader_end end_variable(struct loading *loading, struct rlmd_error *err)
{
	struct context *context = &loading->context;

	if (!loader_finish(loading->loader, &context->inputs[context->count], err))
		return LOADER_FAILED;
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
		loading->fd = source_open(source, err);
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

bool loading_blame(const struct loading *loading, struct rlmd_error *err)
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
	source_close(take_fd(&loading->fd));
	loading->at = NULL;
	return LOADER_GOES_ON;
}

enum loader_end loading_step(struct loading *loading, struct rlmd_error *err)
{
	if (loading->at)
		return read_source(loading, err);
	if (loading->loader)
		return next_source(loading, err);
	return loading->variable > loading->count ? LOADER_DONE : begin_variable(loading);
}

void loading_take(struct loading *loading, struct context *ret)
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

int loading_fd(const struct loading *loading)
{
	return loading->fd;
}

size_t loading_bytes(const struct loading *loading)
{
	return loading->loader ? loader_bytes(loading->loader) : 0;
}

size_t loading_files(const struct loading *loading)
{
	return loading->loader ? loader_files(loading->loader) : 0;
}

#include "batch/job_loader.h"

#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/batch_store.h"
#include "batch/id_map.h"
#include "batch/job_line.h"
#include "batch/jobs_file.h"
#include "batch/node.h"
#include "batch/tenants.h"
#include "store/store.h"

enum { CHUNK_JOBS = 256, CHUNK_BYTES = 1 << 20, ID_TOLD_MAX = 80 };

/* A custom_id that is told in an error. */
struct first {
	uint64_t count;
	char id[ID_TOLD_MAX];
};

struct job_loader {
	struct job_loader_options options;
	struct event_base *base;
	struct store *store;
	struct jobs_file *file;   /* owned */
	struct id_map *ids;       /* owned: of the file's jobs, each once */
	struct query *query;      /* lent: what the store is asked */
	struct store_load load;   /* token 0: the jobs are only compared */
	struct store_batch known; /* what the batch was before; without its texts */
	struct store_line lines[CHUNK_JOBS];
	size_t count, bytes;
	struct first fresh, other; /* jobs that the store does not have, or has otherwise */
	struct first git;          /* that other machines could not carry out */
	struct loaded loaded;
	struct jobs_file_summary summary;
	bool same; /* the digest is that of the batch */
	bool stopped;
	bool ended;               /* the file was read to its end */
	char digest[DIGEST_SIZE]; /* of the batch; empty: it was not loaded */
};

static void warn_of_ignored(const struct job_loader *loader)
{
	const struct jobs_file_summary *summary = &loader->summary;
	auto_free char *text = xasprintf(
		"line %" PRIu64 ": '%s' has no effect here (%" PRIu64 " such line%s)",
		summary->ignored_line, summary->ignored, summary->ignored_lines,
		summary->ignored_lines == 1 ? "" : "s");

	loader->options.warn(loader->options.owner, text);
}

static void finish(struct job_loader *loader, const struct rlmd_error *err)
{
	struct loaded loaded = loader->loaded;

	if (!err && loader->summary.ignored)
		warn_of_ignored(loader);
	loader->options.end(loader->options.owner, &loaded, err);
}

/* --- chunks of jobs ------------------------------------------------------------------ */

static struct rlmd_text copy(struct rlmd_text text)
{
	return text_from(xstrndup(text.bytes, text.size), text.size);
}

static void free_text(struct rlmd_text text)
{
	free((char *)text.bytes);
}

static void empty(struct job_loader *loader)
{
	for (size_t i = 0; i < loader->count; i++) {
		free_text(loader->lines[i].custom_id);
		free_text(loader->lines[i].tenant);
		free_text(loader->lines[i].digest);
		free_text(loader->lines[i].line);
	}
	loader->count = loader->bytes = 0;
}

static void note(struct first *first, struct rlmd_text id)
{
	if (!first->count++)
		snprintf(first->id, sizeof first->id, "%.*s", (int)id.size, id.bytes);
}

static void note_lines(struct job_loader *loader, const enum store_line_state *states, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (states[i] == STORE_LINE_NEW)
			note(&loader->fresh, loader->lines[i].custom_id);
		else if (states[i] == STORE_LINE_DIFFERS)
			note(&loader->other, loader->lines[i].custom_id);
	}
}

static void end_load(struct job_loader *loader);

/* Somebody else loads the batch by now, and goes on with it. */
static void on_loader(void *owner, const struct store_result *result)
{
	struct job_loader *loader = owner;
	struct rlmd_text node = result->count ? result->batches[0].loader : text_of("");
	char who[NODE_TOLD_SIZE] = "another process";
	struct rlmd_error err;

	loader->query = NULL;
	if (node.size)
		node_name_tell(node, who);
	error_set(&err, RLMD_ERROR_USAGE,
		  "%s was started for this batch at the same time, and works on it: wait for its "
		  "end; it writes what is to be had to its results",
		  who);
	finish(loader, &err);
}

static bool failed(struct job_loader *loader, const struct store_result *result)
{
	struct rlmd_error err;

	loader->query = NULL;
	if (!result->fault)
		return false;
	if (result->fault == STORE_REFUSED) {
		loader->query = store_find(loader->store, text_of(loader->options.name), on_loader,
					   loader);
		return true;
	}
	batch_store_explain(result, &err);
	finish(loader, &err);
	return true;
}

static void on_lines(void *owner, const struct store_result *result)
{
	struct job_loader *loader = owner;

	if (failed(loader, result))
		return;
	note_lines(loader, result->lines, result->count);
	empty(loader);
	if (loader->ended)
		end_load(loader);
	else
		jobs_file_resume(loader->file);
}

static void send_lines(struct job_loader *loader)
{
	if (loader->load.token)
		loader->query = store_load_add(loader->store, &loader->load, loader->lines,
					       loader->count, on_lines, loader);
	else
		loader->query = store_compare(loader->store, loader->load.batch, loader->lines,
					      loader->count, on_lines, loader);
}

/* The line as the store keeps it: the worker that begins it may be on another machine. */
static struct rlmd_text line_of(const struct job_loader *loader, const struct job_line *job,
				struct rlmd_text line)
{
	size_t size = 0;
	char *there = job_line_anywhere(line, job, loader->options.directory, &size);

	return there ? text_from(there, size) : copy(line);
}

static bool on_job(void *owner, uint64_t number, const struct job_line *job, struct rlmd_text line)
{
	struct job_loader *loader = owner;

	loader->lines[loader->count++] = (struct store_line){
		.number = (int64_t)number,
		.custom_id = copy(text_of(job->custom_id)),
		.tenant = copy(text_of(job->tenant)),
		.digest = copy(text_of(job->digest)),
		.line = line_of(loader, job, line),
	};
	loader->bytes += line.size;
	if (loader->options.for_others && job_line_is_git(job))
		note(&loader->git, text_of(job->custom_id));
	id_map_add(loader->ids, job->custom_id, NULL);
	if (loader->count < CHUNK_JOBS && loader->bytes < CHUNK_BYTES)
		return true;
	send_lines(loader);
	return false;
}

static bool on_check(void *owner, struct job_line *job, struct rlmd_error *err)
{
	const struct job_loader *loader = owner;
	const struct tenants *tenants = loader->options.tenants;
	const char *otherwise = loader->options.default_tenant;

	if (otherwise && !job_line_give(job, otherwise, err))
		return false;
	if (!tenants || !tenants->count)
		return true;
	if (job->tenant)
		return tenants_find(tenants, job->tenant, err);
	return error_set(err, RLMD_ERROR_INPUT,
			 "tenant: is missing; where rlmd.conf has tenants each job is one's: say "
			 "whose, or let --default-tenant NAME say it for all such lines");
}

static void on_bad(void *owner, uint64_t number, const struct rlmd_error *err)
{
	struct job_loader *loader = owner;

	(void)number;
	loader->options.warn(loader->options.owner, err->text);
}

/* --- the end of the file ------------------------------------------------------------- */

static bool check_lines(const struct job_loader *loader, struct rlmd_error *err)
{
	const struct jobs_file_summary *summary = &loader->summary;

	if (summary->bad && !loader->options.skip_bad)
		return error_set(err, RLMD_ERROR_INPUT,
				 "%s: %" PRIu64 " of %" PRIu64
				 " lines are no jobs, and nothing was run: mend them, or let "
				 "--skip-bad-lines pass over them",
				 loader->options.path, summary->bad, summary->lines);
	if (loader->git.count)
		return error_set(
			err, RLMD_ERROR_INPUT,
			"%s: the context of '%s' is of the repository that the file is in (of "
			"%" PRIu64 " such), which other machines do not know; name a "
			"directory that they have, or run the batch here",
			loader->options.path, loader->git.id, loader->git.count);
	if (!summary->jobs && !summary->others)
		return error_set(err, RLMD_ERROR_INPUT, "%s: there is no job in it",
				 loader->options.path);
	return true;
}

/* An id that is there with another content: in this very file, or in the batch. */
static bool check_others(const struct job_loader *loader, struct rlmd_error *err)
{
	const struct first *other = &loader->other;

	if (!other->count)
		return true;
	if (!loader->known.ready)
		return error_set(err, RLMD_ERROR_INPUT,
				 "%s: the custom_id '%s' stands there twice with different jobs "
				 "(of %" PRIu64 " such), and nothing was run",
				 loader->options.path, other->id, other->count);
	return error_set(err, RLMD_ERROR_USAGE,
			 "%s has changed since its batch began: %" PRIu64
			 " jobs are others now, the first is '%s'; give new jobs new ids, or begin "
			 "another batch with another results file",
			 loader->options.path, other->count, other->id);
}

/* Jobs of the batch that the file does not have any more; one that stands there twice is one. */
static int64_t gone(const struct job_loader *loader)
{
	uint64_t jobs = id_map_count(loader->ids);

	return loader->known.ready ? loader->known.jobs - (int64_t)(jobs - loader->fresh.count) : 0;
}

/* The file has what the batch has, and more only where it is added. */
static bool check_same(const struct job_loader *loader, struct rlmd_error *err)
{
	if (loader->same)
		return true;
	if (gone(loader) > 0)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s has changed since its batch began: %" PRId64 " of its %" PRId64
				 " jobs are gone; put them back, or begin "
				 "another batch with another results file",
				 loader->options.path, gone(loader), loader->known.jobs);
	if (loader->fresh.count && !loader->load.token)
		return error_set(err, RLMD_ERROR_USAGE,
				 "%s has changed since its batch began: %" PRIu64
				 " jobs are new, the first is '%s'; --add takes them in",
				 loader->options.path, loader->fresh.count, loader->fresh.id);
	return true;
}

static void on_end_load(void *owner, const struct store_result *result)
{
	struct job_loader *loader = owner;

	if (!failed(loader, result))
		finish(loader, NULL);
}

static void end_load(struct job_loader *loader)
{
	struct rlmd_error err;

	loader->loaded.added = loader->load.token ? (int64_t)loader->fresh.count : 0;
	if (!check_lines(loader, &err) || !check_others(loader, &err) ||
	    !check_same(loader, &err)) {
		finish(loader, &err);
		return;
	}
	if (!loader->load.token) {
		finish(loader, NULL);
		return;
	}
	loader->query = store_load_end(loader->store, &loader->load,
				       text_of(loader->summary.digest), on_end_load, loader);
}

static void on_end(void *owner, const struct jobs_file_summary *summary,
		   const struct rlmd_error *err)
{
	struct job_loader *loader = owner;

	loader->summary = *summary;
	loader->ended = true;
	loader->same = !strcmp(summary->digest, loader->digest);
	loader->loaded.jobs = (int64_t)summary->jobs;
	loader->loaded.bad = summary->bad;
	if (err)
		finish(loader, err);
	else if (loader->count)
		send_lines(loader);
	else
		end_load(loader);
}

/* --- the beginning --------------------------------------------------------------------- */

/* Other machines would begin these jobs as soon as they are loaded, and know nothing of results
 * that are here. */
static bool check_known(const struct job_loader *loader, struct rlmd_error *err)
{
	const char *results = loader->options.results;
	struct stat st;

	if (loader->known.ready || !loader->options.for_others || !results || stat(results, &st) ||
	    !st.st_size)
		return true;
	return error_set(err, RLMD_ERROR_USAGE,
			 "%s has results, and the store knows no batch '%s': all of it would be "
			 "paid again; name the store that has the batch, or another file with -o "
			 "for a new one; without --store the results count as done",
			 results, loader->options.name);
}

static void on_begin(void *owner, const struct store_result *result)
{
	struct job_loader *loader = owner;
	const struct jobs_file_hooks hooks = {on_job, on_check, on_bad, on_end, loader};
	struct rlmd_error err;

	loader->query = NULL;
	if (result->fault) {
		batch_store_explain(result, &err);
		finish(loader, &err);
		return;
	}
	loader->load = result->load;
	loader->known = result->batches[0];
	snprintf(loader->digest, sizeof loader->digest, "%.*s", (int)loader->known.digest.size,
		 loader->known.digest.bytes);
	loader->loaded.batch = loader->load.batch;
	loader->loaded.again = loader->known.ready;
	if (!check_known(loader, &err)) {
		finish(loader, &err);
		return;
	}
	loader->file = jobs_file_new(loader->base, loader->options.path, loader->options.shard,
				     &hooks, &err);
	if (!loader->file)
		finish(loader, &err);
	else if (loader->stopped)
		jobs_file_stop(loader->file);
}

struct job_loader *job_loader_new(struct event_base *base, struct store *store,
				  const struct job_loader_options *options)
{
	struct job_loader *loader = xcalloc(1, sizeof *loader);

	loader->options = *options;
	loader->base = base;
	loader->store = store;
	loader->ids = id_map_new();
	loader->query = store_load_begin(store, text_of(options->name), options->add, on_begin,
					 loader);
	return loader;
}

void job_loader_stop(struct job_loader *loader)
{
	if (!loader)
		return;
	loader->stopped = true;
	if (loader->file)
		jobs_file_stop(loader->file);
}

/* dirname() and basename() write to what they are given. */
void job_loader_split(const char *path, char **ret_directory, char **ret_name)
{
	auto_free char *one = xstrdup(path), *other = xstrdup(path);
	auto_free char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	const char *directory = dirname(one);

	*ret_directory = here ? xasprintf("%s/%s", here, directory) : xstrdup(directory);
	*ret_name = xstrdup(basename(other));
}

void job_loader_free(struct job_loader *loader)
{
	if (!loader)
		return;
	store_forget(loader->query);
	jobs_file_free(loader->file);
	id_map_free(loader->ids);
	empty(loader);
	free(loader);
}

char *job_loader_batch(const char *name, const struct jobs_file_shard *shard)
{
	if (!shard->count)
		return xstrdup(name);
	return xasprintf("%s %" PRIu64 "/%" PRIu64, name, shard->index, shard->count);
}

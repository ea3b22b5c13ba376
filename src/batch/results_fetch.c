#include "batch/results_fetch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/id_map.h"
#include "batch/results_line.h"
#include "batch/results_writer.h"
#include "batch/store_choice.h"
#include "batch/store_explain.h"
#include "batch/summary.h"
#include "store/store.h"

enum { AT_ONCE = 1000 };

struct results_fetch {
	struct results_fetch_options options;
	struct event_base *base;
	struct store *store;           /* owned, as are the next two */
	struct id_map *ids;            /* of the batch's jobs, until results are written */
	struct results_writer *writer; /* NULL: not yet */
	struct query *query;           /* lent */
	int64_t batch;
	struct summary summary;
	bool counted;
};

static void end(struct results_fetch *fetch, const struct rlmd_error *err)
{
	if (fetch->writer)
		results_writer_sum(fetch->writer, &fetch->summary);
	fetch->options.end(fetch->options.owner, &fetch->summary, err);
}

static bool failed(struct results_fetch *fetch, const struct store_result *result)
{
	struct rlmd_error err;

	fetch->query = NULL;
	if (!result->fault)
		return false;
	store_explain(result, &err);
	end(fetch, &err);
	return true;
}

/* --- the file ------------------------------------------------------------------------- */

static void on_counts(void *owner, const struct store_result *result)
{
	struct results_fetch *fetch = owner;

	if (failed(fetch, result))
		return;
	for (size_t i = 0; i < result->count; i++)
		fetch->summary.pending += result->counts[i].jobs[STORE_JOB_PENDING] +
					  result->counts[i].jobs[STORE_JOB_RUNNING];
	results_writer_end(fetch->writer);
}

static void on_done(void *owner)
{
	struct results_fetch *fetch = owner;

	if (fetch->counted)
		return;
	fetch->counted = true;
	fetch->query = store_counts(fetch->store, fetch->batch, on_counts, fetch);
}

static void on_end(void *owner, const struct rlmd_error *err)
{
	end(owner, err);
}

static void on_warning(void *owner, const char *text)
{
	struct results_fetch *fetch = owner;

	fetch->options.warn(fetch->options.owner, text);
}

static void write_results(struct results_fetch *fetch)
{
	const struct results_writer_options options = {
		.path = fetch->options.path,
		.store = fetch->store,
		.batch = fetch->batch,
		.sort = fetch->options.sort,
		.warn = on_warning,
		.done = on_done,
		.end = on_end,
		.owner = fetch,
	};
	struct rlmd_error err;

	fetch->writer = results_writer_new(fetch->base, &options, take_pointer(&fetch->ids), &err);
	if (!fetch->writer)
		end(fetch, &err);
}

/* --- the batch ------------------------------------------------------------------------- */

/* The results file is told by its jobs whose it is. */
static void on_jobs(void *owner, const struct store_result *result)
{
	struct results_fetch *fetch = owner;

	if (failed(fetch, result))
		return;
	for (size_t i = 0; i < result->count; i++) {
		auto_free char *id = text_copy(result->jobs[i].custom_id);
		auto_free char *digest = text_copy(result->jobs[i].digest);

		*id_map_add(fetch->ids, id, NULL) = results_line_mark(digest);
	}
	if (result->count)
		fetch->query = store_ids(fetch->store, fetch->batch,
					 result->jobs[result->count - 1].number, AT_ONCE, on_jobs,
					 fetch);
	else
		write_results(fetch);
}

static void on_batches(void *owner, const struct store_result *result)
{
	struct results_fetch *fetch = owner;
	const struct store_batch *batch;
	struct rlmd_error err;

	if (failed(fetch, result))
		return;
	batch = store_choice(result, fetch->options.batch, &err);
	if (!batch) {
		end(fetch, &err);
		return;
	}
	fetch->batch = batch->id;
	fetch->query = store_ids(fetch->store, batch->id, 0, AT_ONCE, on_jobs, fetch);
}

static void on_store(void *owner, const struct store_result *result)
{
	struct results_fetch *fetch = owner;

	if (!failed(fetch, result))
		fetch->query = store_batches(fetch->store, on_batches, fetch);
}

/* --- its life ---------------------------------------------------------------------------- */

struct results_fetch *results_fetch_new(struct event_base *base,
					const struct results_fetch_options *options,
					struct rlmd_error *err)
{
	struct results_fetch *fetch = xcalloc(1, sizeof *fetch);
	const struct store_options store = {.owner = fetch};

	fetch->options = *options;
	fetch->base = base;
	fetch->ids = id_map_new();
	fetch->store = store_open(base, options->store, &store, on_store, err);
	if (fetch->store)
		return fetch;
	results_fetch_free(fetch);
	return NULL;
}

void results_fetch_free(struct results_fetch *fetch)
{
	if (!fetch)
		return;
	store_forget(fetch->query);
	results_writer_free(fetch->writer);
	store_free(fetch->store);
	id_map_free(fetch->ids);
	free(fetch);
}

#include "batch/results_fetch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "batch/batch_store.h"
#include "batch/results_file.h"
#include "batch/summary.h"
#include "store/store.h"

struct results_fetch {
	struct results_fetch_options options;
	struct event_base *base;
	struct store *store;       /* owned, as is the next */
	struct results_file *file; /* NULL: not yet */
	struct query *query;       /* lent */
	int64_t batch;
	struct summary summary;
	bool counted;
};

static void end(struct results_fetch *fetch, const struct rlmd_error *err)
{
	if (fetch->file)
		results_file_sum(fetch->file, &fetch->summary);
	fetch->options.end(fetch->options.owner, &fetch->summary, err);
}

static bool failed(struct results_fetch *fetch, const struct store_result *result)
{
	struct rlmd_error err;

	fetch->query = NULL;
	if (!result->fault)
		return false;
	batch_store_explain(result, &err);
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
	results_file_end(fetch->file);
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

static void on_news(void *owner, enum store_news news)
{
	const char *text = batch_store_news(news);

	if (text)
		on_warning(owner, text);
}

static void write_results(struct results_fetch *fetch)
{
	const struct results_file_options options = {
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

	fetch->file = results_file_new(fetch->base, &options, &err);
	if (!fetch->file)
		end(fetch, &err);
}

/* --- the batch ------------------------------------------------------------------------- */

static void on_batches(void *owner, const struct store_result *result)
{
	struct results_fetch *fetch = owner;
	const struct store_batch *batch;
	struct rlmd_error err;

	if (failed(fetch, result))
		return;
	batch = batch_store_choose(result, fetch->options.batch, &err);
	if (!batch) {
		end(fetch, &err);
		return;
	}
	fetch->batch = batch->id;
	write_results(fetch);
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
	const struct store_options store = {.existing = true, .news = on_news, .owner = fetch};

	fetch->options = *options;
	fetch->base = base;
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
	results_file_free(fetch->file);
	store_free(fetch->store);
	free(fetch);
}

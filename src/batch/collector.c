#include "batch/collector.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/money.h"
#include "base/text.h"
#include "batch/results_file.h"
#include "batch/results_line.h"
#include "batch/store_explain.h"
#include "batch/traces.h"
#include "store/store.h"

enum { AT_ONCE = 64 };

struct collector {
	struct collector_hooks hooks;
	struct store *store;
	struct results_file *file;
	struct traces *traces;
	struct query *query; /* lent: under way */
	int64_t batch;
	int64_t place; /* of the last result that is in the file */
	bool again;    /* somebody asked meanwhile */
	struct summary sum;
};

static void ask(struct collector *collector);

static bool add(struct collector *collector, const struct store_job *job, struct rlmd_error *err)
{
	auto_free char *id = xstrndup(job->custom_id.bytes, job->custom_id.size);
	auto_free char *digest = xstrndup(job->digest.bytes, job->digest.size);
	auto_free char *tenant = xstrndup(job->tenant.bytes, job->tenant.size);
	const struct results_line line = {
		.custom_id = id,
		.tenant = job->tenant.size ? tenant : NULL,
		.attempts = job->attempts,
		.mark = results_file_has(collector->file, id) ? 0 : results_line_mark(digest),
		.result = job->result,
	};

	return (!job->trace.size || !line.mark ||
		traces_put(collector->traces, id, job->trace, err)) &&
	       results_file_add(collector->file, &line, err);
}

static void count(struct summary *sum, const struct store_job *job)
{
	if (job->state == STORE_JOB_SUCCEEDED) {
		sum->succeeded++;
	} else {
		sum->failed++;
		sum->kinds[error_named(job->error)]++;
	}
	sum->cost = money_add(sum->cost, job->cost);
	sum->tokens += job->tokens;
}

static bool take(struct collector *collector, const struct store_result *result,
		 struct rlmd_error *err)
{
	if (result->fault) {
		store_explain(result, err);
		return error_context(err, "results cannot be read from the store");
	}
	for (size_t i = 0; i < result->count; i++) {
		if (!add(collector, &result->jobs[i], err))
			return false;
		count(&collector->sum, &result->jobs[i]);
		collector->place = result->jobs[i].place;
	}
	return true;
}

static void on_results(void *owner, const struct store_result *result)
{
	struct collector *collector = owner;
	struct rlmd_error err;

	collector->query = NULL;
	if (!take(collector, result, &err)) {
		collector->hooks.failed(collector->hooks.owner, &err);
		return;
	}
	if (result->count || collector->again)
		ask(collector);
	else
		collector->hooks.done(collector->hooks.owner);
}

static void ask(struct collector *collector)
{
	collector->again = false;
	collector->query = store_results(collector->store, collector->batch, collector->place,
					 AT_ONCE, false, on_results, collector);
}

struct collector *collector_new(struct store *store, int64_t batch, struct results_file *file,
				struct traces *traces, const struct collector_hooks *hooks)
{
	struct collector *collector = xcalloc(1, sizeof *collector);

	collector->hooks = *hooks;
	collector->store = store;
	collector->batch = batch;
	collector->file = file;
	collector->traces = traces;
	return collector;
}

void collector_free(struct collector *collector)
{
	if (!collector)
		return;
	store_forget(collector->query);
	free(collector);
}

void collector_look(struct collector *collector)
{
	if (collector->query)
		collector->again = true;
	else
		ask(collector);
}

void collector_sum(const struct collector *collector, struct summary *ret)
{
	ret->succeeded += collector->sum.succeeded;
	ret->failed += collector->sum.failed;
	for (int kind = 0; kind < SUMMARY_KINDS; kind++)
		ret->kinds[kind] += collector->sum.kinds[kind];
	ret->cost = money_add(ret->cost, collector->sum.cost);
	ret->tokens += collector->sum.tokens;
}

#include "batch/rewriter.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "batch/results_file.h"
#include "batch/store_explain.h"
#include "batch/traces.h"
#include "store/store.h"

enum { AT_ONCE = 64 };

struct rewriter {
	struct store *store;
	struct results_file *file;
	struct traces *traces;
	struct results_sort *sort; /* owned; NULL: it could not be begun */
	struct query *query;       /* lent */
	enum rewrite how;
	int64_t batch;
	int64_t after; /* number or place of the last job that was seen */
	rewriter_fn *done;
	void *owner;
};

static bool add(struct rewriter *rewriter, const struct store_job *job, struct rlmd_error *err)
{
	auto_free char *id = text_copy(job->custom_id);

	rewriter->after = rewriter->how == REWRITE_SORTED ? job->number : job->place;
	if (rewriter->how == REWRITE_SORTED || job->state == STORE_JOB_SUCCEEDED)
		return results_sort_add(rewriter->sort, id, err);
	traces_remove(rewriter->traces, id);
	return true;
}

static bool take(struct rewriter *rewriter, const struct store_result *result,
		 struct rlmd_error *err)
{
	if (result->fault) {
		store_explain(result, err);
		return error_context(err, "results cannot be read from the store");
	}
	if (!rewriter->sort) {
		rewriter->sort = results_sort_new(rewriter->file, err);
		if (!rewriter->sort)
			return false;
	}
	for (size_t i = 0; i < result->count; i++)
		if (!add(rewriter, &result->jobs[i], err))
			return false;
	return result->count ||
	       results_sort_commit(rewriter->sort, rewriter->how == REWRITE_SORTED, err);
}

static void ask(struct rewriter *rewriter);

static void on_results(void *owner, const struct store_result *result)
{
	struct rewriter *rewriter = owner;
	struct rlmd_error err;

	rewriter->query = NULL;
	if (!take(rewriter, result, &err))
		rewriter->done(rewriter->owner, &err);
	else if (result->count)
		ask(rewriter);
	else
		rewriter->done(rewriter->owner, NULL);
}

static void ask(struct rewriter *rewriter)
{
	rewriter->query = store_results(rewriter->store, rewriter->batch, rewriter->after, AT_ONCE,
					rewriter->how == REWRITE_SORTED, on_results, rewriter);
}

struct rewriter *rewriter_new(struct store *store, int64_t batch, struct results_file *file,
			      struct traces *traces, enum rewrite how, rewriter_fn *done,
			      void *owner)
{
	struct rewriter *rewriter = xcalloc(1, sizeof *rewriter);

	*rewriter = (struct rewriter){
		.store = store,
		.file = file,
		.traces = traces,
		.how = how,
		.batch = batch,
		.done = done,
		.owner = owner,
	};
	ask(rewriter);
	return rewriter;
}

void rewriter_free(struct rewriter *rewriter)
{
	if (!rewriter)
		return;
	store_forget(rewriter->query);
	results_sort_free(rewriter->sort);
	free(rewriter);
}

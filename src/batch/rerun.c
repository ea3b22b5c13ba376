#include "batch/rerun.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "batch/disposition.h"
#include "batch/rewriter.h"
#include "batch/store_explain.h"
#include "store/store.h"

struct rerun {
	struct store *store;
	struct rewriter *rewriter; /* owned */
	struct query *query;       /* lent */
	int64_t batch;
	int64_t jobs; /* that wait again */
	int kind;     /* of the errors that are dealt with next */
	rerun_fn *done;
	void *owner;
};

enum { KINDS = RLMD_ERROR_SCHEMA + 1 };

static void go_on(struct rerun *rerun);

static void on_rerun(void *owner, const struct store_result *result)
{
	struct rerun *rerun = owner;
	struct rlmd_error err;

	rerun->query = NULL;
	rerun->jobs += (int64_t)result->count;
	if (!result->fault) {
		go_on(rerun);
		return;
	}
	store_explain(result, &err);
	rerun->done(rerun->owner, rerun->jobs, &err);
}

/* Those that are to be asked anew, kind by kind; at last all others. */
static void go_on(struct rerun *rerun)
{
	struct rlmd_text error;

	while (rerun->kind < KINDS && !disposition_is_answered((enum rlmd_error_kind)rerun->kind))
		rerun->kind++;
	if (rerun->kind > KINDS) {
		rerun->done(rerun->owner, rerun->jobs, NULL);
		return;
	}
	error = text_of(rerun->kind < KINDS ? rlmd_error_name((enum rlmd_error_kind)rerun->kind)
					    : NULL);
	rerun->query = store_rerun(rerun->store, rerun->batch, rerun->kind < KINDS ? &error : NULL,
				   rerun->kind < KINDS, on_rerun, rerun);
	rerun->kind++;
}

static void on_rewritten(void *owner, const struct rlmd_error *err)
{
	struct rerun *rerun = owner;

	if (err)
		rerun->done(rerun->owner, 0, err);
	else
		go_on(rerun);
}

struct rerun *rerun_new(struct store *store, int64_t batch, struct results_file *file,
			struct traces *traces, rerun_fn *done, void *owner)
{
	struct rerun *rerun = xcalloc(1, sizeof *rerun);

	*rerun = (struct rerun){.store = store, .batch = batch, .done = done, .owner = owner};
	rerun->rewriter = rewriter_new(store, batch, file, traces, REWRITE_SUCCEEDED, on_rewritten,
				       rerun);
	return rerun;
}

void rerun_free(struct rerun *rerun)
{
	if (!rerun)
		return;
	store_forget(rerun->query);
	rewriter_free(rerun->rewriter);
	free(rerun);
}

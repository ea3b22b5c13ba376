/*
 * batch/rewriter.h - a results file written anew, as the store has the results.
 *
 * The new file takes the place of the old at once: whatever ends the process, one of the two is
 * there, whole.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdint.h>

struct results_file;
struct rewriter;
struct store;
struct traces;

enum rewrite {
	REWRITE_SORTED, /* all lines, in the order of the jobs file */
	/* Without the lines of jobs that failed, whose traces go, too, and without those of jobs
	 * that are not over. */
	REWRITE_SUCCEEDED,
};

/* Once: the results file is to be freed, and opened anew. `err`, or NULL: it is as it was. */
typedef void rewriter_fn(void *owner, const struct rlmd_error *err);

/* Nothing is told before it returns. All is lent; nothing is added to the file meanwhile. */
struct rewriter *rewriter_new(struct store *, int64_t batch, struct results_file *, struct traces *,
			      enum rewrite, rewriter_fn *, void *owner);
void rewriter_free(struct rewriter *); /* nothing is told any more; NULL is fine */

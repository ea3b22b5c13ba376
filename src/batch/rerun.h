/*
 * batch/rerun.h - jobs that failed wait again: their lines leave the results file, then the store
 * forgets how they ended.
 *
 * In this order whatever ends the process is fine: lines that are missing are written again from
 * the store. Who failed with what models had answered is asked anew, the others pay from where they
 * were.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdint.h>

struct rerun;
struct results_file;
struct store;
struct traces;

/* Once: the results file is to be freed, and opened anew. `jobs` wait again; `err`, or NULL: not
 * so.
 */
typedef void rerun_fn(void *owner, int64_t jobs, const struct rlmd_error *err);

/* Nothing is told before it returns. All is lent; nothing is added to the file meanwhile. */
struct rerun *rerun_new(struct store *, int64_t batch, struct results_file *, struct traces *,
			rerun_fn *, void *owner);
void rerun_free(struct rerun *); /* nothing is told any more; NULL is fine */

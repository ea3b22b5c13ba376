/*
 * engine/batch.h - the questions or the tasks of one call, as operations.
 *
 * Everything is taken out of the call, which is gone when the answers come; long texts are not
 * copied for that.
 */
#pragma once

#include <rlmd/plan.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "engine/caller.h"
#include "engine/operation.h"

struct worker_call;

/* What holds one of the call's texts: a memory file that is shared, or a copy. */
struct batch_text {
	struct memfile *file; /* referenced, or NULL */
	char *copy;           /* owned, or NULL */
};

/* Embed it; zero may be freed. */
struct batch {
	struct batch_text *texts; /* owned */
	size_t text_count;
	struct rlmd_operation *operations; /* owned, with their models */
	size_t count;
	struct rlmd_plan *plan;    /* owned */
	struct rlmd_text *earlier; /* owned: of conversations all but the last turn */
	size_t earlier_count;
	struct wishes wishes;          /* its system is owned */
	struct worker_subset *subsets; /* owned, with their ranges: of each operation; or NULL */
};

/* The call has at least one question or task. */
bool batch_read(struct batch *, const struct worker_call *, struct rlmd_plan_error *);
void batch_done(struct batch *);

/* caller_mark() of it: of all that it asks; of a context the size and how it begins. */
void batch_mark(const struct batch *, const struct worker_call *, struct caller *,
		char out[static CALLER_MARK_SIZE]);

/* What the operations need beside what their plan says; the batch must outlive them. */
void batch_equip(const struct batch *, const struct worker_call *, struct operation *operations);

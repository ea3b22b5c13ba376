/* engine/inputs.h - the inputs of a context, as a worker is given them. */
#pragma once

#include "pool/worker.h"
#include "source/context.h"

/* All lent by the context; returns how many there are. */
size_t inputs_of(const struct context *, struct worker_input ret[static WORKER_INPUTS_MAX]);

/* The part of one of them that a worker asked for, both referenced for the caller. RLMD_ERROR_INPUT
 * where there are no such files, and as context_subset() fails. */
bool inputs_part(const struct context *, const struct worker_subset *, struct memfile **ret_file,
		 struct file_index **ret_index, struct rlmd_error *);

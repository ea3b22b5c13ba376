/*
 * batch/results_merge.h - the results of several shards, or of several tries, in one file.
 *
 * Each custom_id has one line in it, where it stood first. Equal lines of one id are merged; two
 * lines of one id that say something else are an error that names both, and nothing is written. In
 * the memory of an id_map and one line, or two where they are compared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { RESULTS_MERGE_FILES_MAX = 4096 };

struct results_merge_summary {
	uint64_t lines; /* that were written */
	uint64_t again; /* that were there before, and said the same */
};

/*
 * `out` appears at the end, in the place of an older one, which may be one of `in`. Waits for the
 * disk; RLMD_ERROR_CANCELLED after a signal (base/wait.h). RLMD_ERROR_INPUT names the line that is
 * none, or not whole: then its batch is to be started again, which mends it.
 */
bool results_merge(const char *out, const char *const *in, size_t count,
		   struct results_merge_summary *ret, struct rlmd_error *);

/*
 * source/subset.h - some of the files of an input, as an input of its own.
 *
 * Neighbours, as the files of a folder are, lie in the memory of the whole and are not copied.
 */
#pragma once

#include "source/context.h"

enum { SUBSET_COPY_MAX = 64 << 20 }; /* bytes of files that are not neighbours */

/*
 * `ranges` are `count` pairs, ascending: the first file's number, and how many. `ret_file` is a
 * text as the input's, each file under its header, `ret_index` its files, with the changes of the
 * whole; both are the caller's. RLMD_ERROR_INPUT: there are no such files, they are scattered and
 * have more than SUBSET_COPY_MAX bytes, or there is no memory.
 */
bool subset_make(const struct context_input *, const size_t *ranges, size_t count,
		 struct memfile **ret_file, struct file_index **ret_index, struct rlmd_error *);

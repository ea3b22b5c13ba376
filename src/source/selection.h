/*
 * source/selection.h - which of a directory's files somebody wants: pathspecs, and a list of names.
 *
 * Paths are those from the directory on, and directories end in a slash.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct selection;

struct selection_options {
	const char *const *include, *const *exclude; /* pathspecs of git; no include: all */
	size_t include_count, exclude_count;
	const char *const *files; /* nothing but these, and what is in them; NULL: no matter */
	size_t file_count;
};

/* All is copied. RLMD_ERROR_USAGE for a pathspec that is none, RLMD_ERROR_INPUT for a name that is
 * not below the directory. */
struct selection *selection_new(const struct selection_options *, struct rlmd_error *);
void selection_free(struct selection *); /* NULL is fine */

/* Whether a file is wanted, and whether anything below a directory may be. */
bool selection_wants(const struct selection *, const char *path);
bool selection_enters(const struct selection *, const char *path);

/* Whether the list has just this file, or for a directory, something in it: no rule hides that. */
bool selection_names(const struct selection *, const char *path);

/* Once `path` was met; and afterwards the names of the list that were not, one a call; NULL: none.
 */
void selection_meet(struct selection *, const char *path);
const char *selection_missing(const struct selection *, size_t *at);

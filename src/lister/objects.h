/*
 * lister/objects.h - commits, trees and files that a repository keeps.
 *
 * Of its own objects alone, unless its alternates are allowed: those name directories anywhere.
 */
#pragma once

#include <git2.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "lister/repository.h"

struct objects;

/* The repository is lent. RLMD_ERROR_INPUT, also where there are links among the objects. */
struct objects *objects_open(const struct repository *, bool alternates, struct rlmd_error *);
void objects_free(struct objects *); /* NULL is fine */

/* The tree or file that a revision, or "REV:PATH", leads to, new. RLMD_ERROR_INPUT. */
git_object *objects_find(struct objects *, const char *revision, struct rlmd_error *);

/* The tree of where two revisions parted, new. RLMD_ERROR_INPUT. */
git_object *objects_merge_base(struct objects *, const char *one, const char *other,
			       struct rlmd_error *);

/* One below it, new; NULL: it is not there. */
git_tree *objects_subtree(struct objects *, const git_oid *);

/* A file of at most `limit` bytes, to be freed with git_odb_object_free(); NULL: it cannot be read.
 * `ret_size`: its own, where it is known. */
git_odb_object *objects_read(const struct objects *, const git_oid *, size_t limit,
			     size_t *ret_size);
struct rlmd_text objects_text(git_odb_object *); /* lent */

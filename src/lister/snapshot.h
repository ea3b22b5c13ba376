/*
 * lister/snapshot.h - the files of a tree that a repository keeps, in the order of whole paths.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lister/listing.h"
#include "lister/objects.h"

struct snapshot;

/* The entries of `tree`, taken, below the path `prefix`, which is empty or ends in a slash; the
 * paths of the entries go from there on. Both others are lent. An empty one where there is no such
 * path. */
struct snapshot *snapshot_new(struct objects *, git_tree *tree, const char *prefix,
			      struct selection *);
void snapshot_free(struct snapshot *); /* NULL is fine */

/* One step. A LISTING_FILE has no text yet, but what all have: the `id` of its contents. */
bool snapshot_next(struct snapshot *, struct listing_entry *ret);

/* Behind the last: whether it ended before its end, for it has more entries than any project, as
 * the same tree again and again makes them. RLMD_ERROR_INPUT. */
bool snapshot_failed(const struct snapshot *, struct rlmd_error *);

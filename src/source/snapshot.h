/*
 * source/snapshot.h - the files of a tree that a repository keeps, in the order of whole paths.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "source/listing.h"
#include "source/objects.h"

struct snapshot;

/* What is in `tree`, taken, below the path `prefix`, which is empty or ends in a slash; the paths
 * of the entries go from there on. Both others are lent. An empty one where there is no such path.
 */
struct snapshot *snapshot_new(const struct objects *, git_tree *tree, const char *prefix,
			      struct selection *);
void snapshot_free(struct snapshot *); /* NULL is fine */

/* One step. A LISTING_FILE has no text yet, but what all have: the `id` of its contents. */
bool snapshot_next(struct snapshot *, struct listing_entry *ret);

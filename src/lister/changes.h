/*
 * lister/changes.h - what differs between a revision and a work tree, or another revision.
 *
 * Entries are as those of a listing, but only of what changed: with their status, the hunks, and
 * the text that these are of. A file that is new, and has most lines of one that is gone, is that
 * one renamed; so does a hunk say, before the others. Another tells that it may be executed now, or
 * no more.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "lister/listing.h"

struct changes_options {
	const char *comparison; /* BASE: with the work tree; BASE..OTHER; BASE...OTHER: since they
				   parted; without OTHER it is HEAD */
	bool untracked;         /* what is not in the index, too */
	bool alternates;
	size_t max_file_size; /* of what is compared line by line */
};

struct changes;
struct ignores;

/* Of the directory `path`, in a work tree. `notes` as for a listing; RLMD_ERROR_INPUT. */
struct changes *changes_new(const char *path, const struct listing_options *,
			    const struct changes_options *, json_t *notes, struct rlmd_error *);
void changes_free(struct changes *); /* NULL is fine */

/* One step: one file or directory, or one file of the base. */
bool changes_next(struct changes *, struct listing_entry *ret);

/* Those of the older side; lent; or NULL. */
const struct ignores *changes_ignores(const struct changes *);

/* As snapshot_failed(), of either side. */
bool changes_failed(const struct changes *, struct rlmd_error *);

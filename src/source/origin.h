/*
 * source/origin.h - where the files of an input come from: a directory, what changed in it, or a
 * revision.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "source/changes.h"
#include "source/listing.h"

struct origin_options {
	struct listing_options listing;
	const char *directory; /* whose repository a revision is of */
	struct changes_options
		changes; /* without a comparison: all files, not those that changed */
};

struct origin;

/* `notes` is lent, and so is what is in the options. RLMD_ERROR_INPUT. */
struct origin *origin_directory(const char *path, const struct origin_options *, json_t *notes,
				struct rlmd_error *);

/* "REV" or "REV:PATH" of the repository that `directory` is in, which needs no work tree. */
struct origin *origin_revision(const char *revision, const struct origin_options *, json_t *notes,
			       struct rlmd_error *);
void origin_free(struct origin *); /* NULL is fine */

/* One step; false: there is nothing more. All is lent until the next. */
bool origin_next(struct origin *, struct listing_entry *ret);

/* At the end: names of the selection's list that nothing has, one a call; NULL: none. */
const char *origin_missing(struct origin *);

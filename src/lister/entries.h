/*
 * lister/entries.h - the files of an input: a directory, what changed in it, or a
 * revision.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "lister/changes.h"
#include "lister/listing.h"
#include "lister/repository.h"

struct entries_options {
	struct listing_options listing;
	struct changes_options
		changes; /* without a comparison: all files, not those that changed */
};

struct entries;

/* `notes` is lent, and so is what is in the options. RLMD_ERROR_INPUT. */
struct entries *entries_directory(const char *path, const struct entries_options *, json_t *notes,
				  struct rlmd_error *);

/* "REV" or "REV:PATH" of a repository, which is taken in any case. */
struct entries *entries_revision(const char *revision, struct repository *,
				 const struct entries_options *, json_t *notes,
				 struct rlmd_error *);
void entries_free(struct entries *); /* NULL is fine */

/* One step; false: there is nothing more. All is lent until the next. */
bool entries_next(struct entries *, struct listing_entry *ret);

/* Behind the last: whether there would be more. RLMD_ERROR_INPUT. */
bool entries_failed(const struct entries *, struct rlmd_error *);

/*
 * source/listing.h - which files of a directory are a context, and what becomes of the others.
 *
 * Those of a work tree are what "git ls-files --cached --others --exclude-standard" names and what
 * is there; all of any other directory. git says which; the walk (source/walk.h) opens them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "source/selection.h"

struct listing_options {
	struct selection *selection; /* lent: it is told what was met */
	bool recurse_submodules;
};

enum listing_kind {
	LISTING_PASSED, /* nothing of the directory's: go on */
	LISTING_FILE,
	LISTING_LINK,
	LISTING_SPECIAL,
	LISTING_UNREADABLE,
	LISTING_GENERATED, /* by its attributes, or a lock file */
	LISTING_VENDORED,
	LISTING_SUBMODULE, /* whose contents are not asked for */
};

/* All lent until the next step. */
struct listing_entry {
	enum listing_kind kind;
	const char *path; /* from the directory on */
	int fd;           /* a LISTING_FILE's, open for reading; else -1 */
};

struct listing;

/* `notes` is lent: what is not heeded of a repository's configuration is added to them.
 * RLMD_ERROR_INPUT where the directory, or its repository, cannot be read or is refused. */
struct listing *listing_new(const char *path, const struct listing_options *, json_t *notes,
			    struct rlmd_error *);
void listing_free(struct listing *); /* NULL is fine */

/* At the end: names of the selection's list that nothing has, one a call; NULL: none. */
const char *listing_missing(struct listing *);

/* One step, in the order of whole paths; false: there is nothing more. */
bool listing_next(struct listing *, struct listing_entry *ret);

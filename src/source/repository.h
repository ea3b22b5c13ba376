/*
 * source/repository.h - the git repository of a work tree: found, trusted or refused.
 *
 * What decides is read by us: where the repository is, whose it is, and its configuration. libgit2
 * reads the user's own configuration and the index; it never opens the repository as a whole, for
 * that would follow whatever is written in there.
 */
#pragma once

#include <git2.h>
#include <stdbool.h>

#include "base/error.h"

struct repository {
	char *top;          /* owned: of the work tree, absolute and without links */
	char *git, *common; /* owned: what is of this work tree, and of all of the repository */
	char *excludes;   /* owned: the user's core.excludesFile, or where it is by default; or NULL
			   */
	char *attributes; /* owned: likewise, core.attributesFile */
	char *ignored;    /* owned: settings of its own that are not heeded, for people; or NULL */
	bool fold;        /* core.ignoreCase */
	bool reftable;    /* names of revisions are kept in a form that is not read */
};

/*
 * The repository of the work tree that `path`, a directory, is in; in `ret` NULL where there is
 * none. RLMD_ERROR_INPUT where it belongs to somebody else and the user did not allow that, or
 * where what says that it is a work tree leads to a repository that does not say so.
 */
bool repository_find(const char *path, struct repository **ret, struct rlmd_error *);

/* Likewise of a repository without a work tree, and from within one; `top` is then its own. */
bool repository_find_any(const char *path, struct repository **ret, struct rlmd_error *);

/* Likewise, of `path` itself: a submodule, or a work tree in a directory that is none. */
bool repository_at(const char *path, struct repository **ret, struct rlmd_error *);
void repository_free(struct repository *); /* NULL is fine */

/* Where a directory of its work tree stands in it, new: empty, or with a slash at its end. */
char *repository_place(const struct repository *, const char *path);

/* Whether a directory that is held open is the top of a work tree, by git's own look at it. */
bool repository_begins_at(int directory);

/* New; empty where there is none yet. NULL: RLMD_ERROR_INPUT says what to do. */
git_index *repository_index(const struct repository *, struct rlmd_error *);

/* What libgit2 says of its last failure, behind "what"; false. */
bool repository_fail(struct rlmd_error *, const char *what);

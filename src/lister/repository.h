/*
 * lister/repository.h - the git repository of a work tree: found, trusted or refused.
 *
 * We read the deciding parts ourselves: where the repository is (source/top.h), whose it is, and
 * its configuration. libgit2 reads the index; it never opens the repository as a whole, for that
 * would follow whatever is written in there. The user's own configuration is there already
 * (lister/user_config.h).
 */
#pragma once

#include <git2.h>
#include <stdbool.h>

#include "base/error.h"

struct repository {
	char *top;          /* owned: of the work tree, absolute and without links */
	char *git, *common; /* owned: what is of this work tree, and of all of the repository */
	char *ignored; /* owned: settings of its own that are not heeded, for people; or NULL */
	bool fold;     /* core.ignoreCase */
	bool modeless; /* core.fileMode is off */
	bool reftable; /* names of revisions are kept in a form that is not read */
};

/*
 * The repository of the work tree that `path`, a directory, is in; in `ret` NULL where there is
 * none. RLMD_ERROR_INPUT where it belongs to somebody else and the user did not allow that, or
 * where what says that it is a work tree leads to a repository that does not say so.
 */
bool repository_find(const char *path, struct repository **ret, struct rlmd_error *);

/* As repository_find(), also of a repository without a work tree, and from within one; `top` is
 * then its own. */
bool repository_find_any(const char *path, struct repository **ret, struct rlmd_error *);

/* As repository_find(), of `path` itself: a submodule, or a work tree in a directory that is none.
 */
bool repository_at(const char *path, struct repository **ret, struct rlmd_error *);
void repository_free(struct repository *); /* NULL is fine */

/* New; empty where there is none yet. NULL: RLMD_ERROR_INPUT says what to do. */
git_index *repository_index(const struct repository *, struct rlmd_error *);

/* Sets libgit2's text of its last failure, behind "what"; false. */
bool repository_fail(struct rlmd_error *, const char *what);

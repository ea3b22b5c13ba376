/*
 * lister/refs.h - the names of commits in a repository, for libgit2 to resolve revisions by.
 *
 * Read by us, by descriptor and past no link: loose ones, packed ones and HEAD. Nothing is written.
 */
#pragma once

#include <git2.h>
#include <git2/sys/refdb_backend.h>

#include "lister/repository.h"

/* New: to be given to a git_refdb, which frees it. The repository is lent. */
git_refdb_backend *refs_new(const struct repository *);

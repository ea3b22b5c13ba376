/*
 * source/top.h - where the work tree of git that a directory is in begins, and how a directory
 * names its repository.
 *
 * Read by us, by descriptor; whether the repository may be believed is asked by
 * lister/repository.h.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* The first directory with a repository, from `path` upwards in its file system; in `ret` new, or
 * NULL where there is none. RLMD_ERROR_INPUT where a file ".git" on the way leads nowhere. */
bool top_find(const char *path, char **ret, struct rlmd_error *);

/* Where a directory of the work tree `top` stands in it, new: empty, or with a slash at its end. */
char *top_prefix(const char *top, const char *path);

/* Whether a directory that is held open is the top of a work tree, by git's own look at it. */
bool top_begins_at(int directory);

/* Whether an open directory is a repository: a HEAD, objects and refs. -1 is none. */
bool top_is_repository(int fd);

/* Whether a directory of that file system is the top of a work tree. */
bool top_has_git(const char *directory, dev_t device);

/* The path behind `prefix` in a file of one line, absolute and without links, new; NULL: there is
 * none. One that is not absolute is taken from `base` on. */
char *top_read_path(int directory, const char *name, const char *prefix, const char *base);

/*
 * lister/worktree.h - which paths git lists of a work tree: its index and its ignore rules.
 *
 * Somebody walks it from the top, and says which directory is entered and left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "lister/repository.h"
#include "lister/rules.h"

struct worktree;

/* The repository is taken in any case. RLMD_ERROR_INPUT. */
struct worktree *worktree_new(struct repository *, struct rlmd_error *);
void worktree_free(struct worktree *);                                 /* NULL is fine */
const struct repository *worktree_repository(const struct worktree *); /* lent */

/*
 * The directory `path`, empty or with a slash at its end, is entered, and is open. Where it is
 * `ignored`, files in it count as ignored unless the index has them. Left again in the reverse
 * order. False: it was not, for its ignore rules with those above it are more than RULES_MAX, or
 * are only in the index and cannot be read there. Such attributes are not heeded: they don't say
 * what is listed.
 */
bool worktree_enter(struct worktree *, const char *path, int directory, bool ignored);
void worktree_leave(struct worktree *);

/* Of what is in the directory that was entered last. */
bool worktree_lists(const struct worktree *, const char *path); /* a file or a link */

/* The entry of the index; lent, NULL: none. */
const git_index_entry *worktree_tracked(const struct worktree *, const char *path);

enum worktree_directory {
	WORKTREE_PASS,      /* nothing in it is listed */
	WORKTREE_ENTER,     /* all of it, by its rules */
	WORKTREE_TRACKED,   /* what is in the index: it is ignored itself */
	WORKTREE_OTHER,     /* it is not in the index: pass it, if it is a repository of its own */
	WORKTREE_SUBMODULE, /* it is in the index as one */
};

enum worktree_directory worktree_directory(const struct worktree *, const char *path);
enum rules_state worktree_state(const struct worktree *, const char *path, enum rules_attribute);

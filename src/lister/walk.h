/*
 * lister/walk.h - all that is below a directory, in the order of whole paths as git lists them.
 *
 * By descriptors: each step takes one name in a directory that is held open, and follows no link.
 * So whoever may change the tree meanwhile can take things away from the walk, but cannot lead it
 * anywhere else. Works in every kernel.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum walk_kind {
	WALK_FILE,      /* a regular one: walk_open() */
	WALK_LINK,      /* a symbolic link; it is not followed */
	WALK_SPECIAL,   /* a socket, a device or a FIFO */
	WALK_DIRECTORY, /* walk_enter(), or what is in it is passed over */
};

/* An entry as its directory lists it; it may have changed by now. */
struct walk_entry {
	enum walk_kind kind;
	const char *path; /* from the directory on, without "./"; lent until the next step */
	size_t depth;     /* how many directories are open; 1: it is in the first */
};

struct walk;

/*
 * `path` may be a link itself. Entries of the name ".git" are passed over. NULL and
 * RLMD_ERROR_INPUT where the directory itself cannot be read.
 */
struct walk *walk_new(const char *path, struct rlmd_error *);

/* One step; false: there is nothing more. */
bool walk_next(struct walk *, struct walk_entry *ret);

/* Of the entry at hand, and once. The file, lent until the next step; -1: it cannot be opened, or
 * is none. */
int walk_open(struct walk *);

/* Lists the directory at hand: what is in it comes next. False: it cannot be, or is too deep. */
bool walk_enter(struct walk *);

/* Passes over the rest of that directory. */
void walk_leave(struct walk *);

/* The innermost that was entered, lent until the next step. */
int walk_directory(const struct walk *);
void walk_free(struct walk *); /* NULL is fine */

/*
 * source/walk.h - all that is below a directory, in the order of whole paths as git lists them.
 *
 * By descriptors: each step takes one name in a directory that is held open, and follows no link.
 * So whoever may change the tree meanwhile can take things away from the walk, but cannot lead it
 * anywhere else. Works in every kernel.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum walk_kind {
	WALK_FILE,       /* a regular one, open for reading */
	WALK_LINK,       /* a symbolic link; it was not followed */
	WALK_SPECIAL,    /* a socket, a device or a FIFO */
	WALK_UNREADABLE, /* could not be opened or listed, or is too deep down */
	WALK_DIRECTORY,  /* what is in it comes next */
};

/* All lent until the next step. */
struct walk_entry {
	enum walk_kind kind;
	const char *path; /* from the directory on, without "./" */
	int fd;           /* a WALK_FILE's; else -1 */
};

struct walk;

/*
 * `path` may be a link itself. What is called ".git" is passed over. NULL and RLMD_ERROR_INPUT
 * where the directory itself cannot be read.
 */
struct walk *walk_new(const char *path, struct rlmd_error *);

/* One step, which lists one directory at most; false: there is nothing more. */
bool walk_next(struct walk *, struct walk_entry *ret);
void walk_free(struct walk *); /* NULL is fine */

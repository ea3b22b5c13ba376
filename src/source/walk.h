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
};

struct walk_entry {
	enum walk_kind kind;
	const char *path; /* lent to the callback: from the directory on, without "./" */
	int fd;           /* lent to the callback: a WALK_FILE's; else -1 */
};

/* False ends the walk, with the error of it. */
typedef bool walk_fn(void *owner, const struct walk_entry *, struct rlmd_error *);

/*
 * `path` may be a link itself. What is called ".git" is passed over. RLMD_ERROR_INPUT where the
 * directory itself cannot be read.
 */
bool walk_directory(const char *path, walk_fn *, void *owner, struct rlmd_error *);

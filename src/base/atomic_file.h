/*
 * base/atomic_file.h - a file that appears when it is whole, and replaces an older one at once.
 *
 * It is written without a name where the file system can do that, so that nothing
 * is left of it after any end of the program; else under a name of its own beside
 * the one that it will have. A file that replaces an older one has such a name from its link(2) to
 * its rename(2), for Linux has no single call for both: a SIGKILL between them leaves it.
 *
 * It takes the place of a regular file only, and of a link to one or to nothing: a device, a FIFO
 * or a socket that was replaced would be missed by all others who use it. Both functions fail with
 * EEXIST then, and with EISDIR where there is a directory.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct atomic_file {
	int directory;   /* lent: what the two paths start from, where they are relative */
	char *path;      /* owned */
	char *temporary; /* owned; NULL: it has no name yet */
	int fd;          /* owned: written by whoever opened it */
};

/* False: there can be none there, as errno says, and nothing is to be done. */
bool atomic_file_open(struct atomic_file *, const char *path, mode_t mode);

/* The same in a directory that is held open, whatever has its name by now; it is lent until the
 * end. */
bool atomic_file_open_in(struct atomic_file *, int directory, const char *name, mode_t mode);

/* Gives it its name, once, and before that flushes it to the disk where it is to be `durable`.
 * False: errno says why. */
bool atomic_file_commit(struct atomic_file *, bool durable);

/* Removes the temporary file, unless it was committed. */
void atomic_file_done(struct atomic_file *);

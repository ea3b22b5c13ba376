/* base/file.h - whole files, read with a limit and written all or not at all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

struct stat;

/*
 * The whole file as a new NUL-terminated string. Fails with RLMD_ERROR_INPUT and the
 * path in the text when it is missing, unreadable, no regular file, or larger
 * than `limit` bytes.
 */
char *file_read(const char *path, size_t limit, size_t *ret_size, struct rlmd_error *);

/*
 * Replaces `path` by `text`, for its owner only: a temporary file beside it is renamed, so that a
 * reader sees the old one or the new one. Not flushed to the disk. RLMD_ERROR_INPUT with the path.
 */
bool file_write(const char *path, struct rlmd_text, struct rlmd_error *);

/*
 * The next bytes of a descriptor, as many as there are, waiting where there are none yet; 0 at its
 * end. RLMD_ERROR_INPUT with the reason; RLMD_ERROR_BUDGET where `deadline` (of clock_ms(), or
 * WAIT_FOREVER) came first, and RLMD_ERROR_CANCELLED after a signal (base/wait.h), though
 * there be more to read.
 */
bool file_take_fd(int fd, char *bytes, size_t room, int64_t deadline, size_t *ret_size,
		  struct rlmd_error *);

/* Whether what takes long may go on: no signal, and not the deadline. Else as file_take_fd(). */
bool file_may_go_on(int64_t deadline, struct rlmd_error *);

/* All of `text` to a descriptor, waiting where it must, but not on after a signal that comes
 * meanwhile (base/wait.h). RLMD_ERROR_INTERNAL with the reason; RLMD_ERROR_CANCELLED for a
 * signal. */
bool file_write_fd(int fd, struct rlmd_text, struct rlmd_error *);

/* All of it, whatever signals come; false and errno. */
bool file_write_all(int fd, struct rlmd_text);

/* No more writing to a memory file, by anybody, ever; false and errno. The file must never have
 * been mapped for writing: F_SEAL_FUTURE_WRITE lets such a mapping write on, and does not look at
 * each page for it as F_SEAL_WRITE does (8 ms a gigabyte). */
bool file_seal(int fd);

/* A memory file of that name (in /proc/PID/fd) with all of `text`, to be read from its beginning
 * on. -1 and RLMD_ERROR_MACHINE where there is no descriptor for it; else as file_write_fd(). */
int file_in_memory(const char *name, struct rlmd_text, struct rlmd_error *);

/* As file_write_fd() while a run goes on, whose own the first signal is, to a reader who may have
 * stopped reading: given up once it took nothing for so long, or when a second signal comes. */
bool file_feed_fd(int fd, struct rlmd_text, int64_t patience_ms, struct rlmd_error *);

/*
 * Whether nobody else could have written what an open file says: it belongs to us or to root, and
 * neither its group nor others may write it. The error says what to do.
 */
bool file_is_ours(int fd, const char *path, enum rlmd_error_kind, struct rlmd_error *);

/*
 * A directory of ours alone, opened, and made for its owner only where it is missing. -1 and
 * RLMD_ERROR_INPUT for one that belongs to somebody else, that others may write, or that is a link;
 * the error calls it by `what` it is for ("cache").
 */
int file_own_directory(const char *path, const char *what, struct rlmd_error *);

/*
 * As file_is_ours(), of a file that a library opens by its name and which is not opened here: there
 * is none yet, or it is a regular file, not a link, and file_is_ours(). `ret_there`: whether there
 * is one.
 */
bool file_name_is_ours(const char *path, bool *ret_there, enum rlmd_error_kind,
		       struct rlmd_error *);

/*
 * Whether we may write to what `path` names, before anything is opened: there is nothing yet, or it
 * belongs to us or to root, and so does a link that leads there. A device may be anybody's, and so
 * may what whoever started us opened for us (/dev/stdout, /dev/fd/N). `ret`, zero where there is
 * nothing, is what it leads to. The error says what to do.
 */
bool file_may_write(const char *path, struct stat *ret, enum rlmd_error_kind, struct rlmd_error *);

/* The path with its directory's links and dots resolved, but not a link that it is itself, new; as
 * it is, where there is no such directory. */
char *file_real_path(const char *path);

/* "it is a FIFO": a thing that is there and is no regular file, in words; static. */
const char *file_kind(const struct stat *);

/* The process that has a lock of flock(2) on an open file, as far as /proc tells it; 0: nobody
 * knows. */
pid_t file_lock_holder(int fd);

/* The open descriptor that a path is a name for: 1 of /dev/stdout, 9 of /dev/fd/9; -1: of none. */
int file_descriptor_of(const char *path);

/*
 * The path, new, of a file that comes with the program and the library: `room` is
 * "share", "worker" or "helper". In the build tree they stand beside them; a tree that was
 * moved as a whole after it was installed still holds together.
 */
char *file_shipped(const char *room, const char *name);

/*
 * In the child of a fork, of a descriptor that the parent goes on using: puts a socket without a
 * peer in its place, so that what is said, asked or shut down there reaches nobody. A descriptor
 * below 0 is left alone.
 */
void file_cut_forked(int fd);

/* base/file.h - whole files, read with a limit and written all or not at all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * The whole file as a new NUL-terminated string. Fails with ERROR_INPUT and the
 * path in the text when it is missing, unreadable, no regular file, or larger
 * than `limit` bytes.
 */
char *file_read(const char *path, size_t limit, size_t *ret_size, struct error *);

/*
 * Replaces `path` by `text`, for its owner only: a temporary file beside it is renamed, so that a
 * reader sees the old one or the new one. Not flushed to the disk. ERROR_INPUT with the path.
 */
bool file_write(const char *path, struct text, struct error *);

/* All of `text` to a descriptor, waiting where it must. ERROR_INTERNAL with the reason. */
bool file_write_fd(int fd, struct text, struct error *);

/* The same to a reader who may have stopped reading: given up once it took nothing for so long. */
bool file_feed_fd(int fd, struct text, int64_t patience_ms, struct error *);

/*
 * Whether nobody else could have written what an open file says: it belongs to us or to root, and
 * neither its group nor others may write it. The error says what to do.
 */
bool file_is_ours(int fd, const char *path, enum error_kind, struct error *);

/*
 * The path, new, of a file that comes with the program: `room` is "share" or
 * "worker". In the build tree both stand beside the program itself.
 */
char *file_shipped(const char *room, const char *name);

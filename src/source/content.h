/*
 * source/content.h - the bytes of one file while it is read: of a descriptor, or in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

struct file_id {
	dev_t device;
	ino_t number;
};

struct file_content {
	int fd;                 /* lent; -1: it is in memory */
	struct rlmd_text whole; /* lent: all of it */
	size_t taken;           /* of all there is */
	bool regular;           /* the descriptor's: it waits for nobody, and was so large */
	off_t size;
	struct file_id id;
	off_t searched; /* content_search(): where the next look begins */
};

struct file_content content_of_fd(int fd);
struct file_content content_of_text(struct rlmd_text);

bool content_waits(const struct file_content *); /* nothing is there yet */

/* As read(2). */
ssize_t content_take(struct file_content *, char *to, size_t size);

/* Whether the file ends where it ended when it was opened, and all of it was taken. */
bool content_ends(const struct file_content *);

/* Whether it is a file of more than so many bytes, and whether it is one of these. */
bool content_is_larger(const struct file_content *, int64_t size);
bool content_is_one_of(const struct file_content *, const struct file_id *, size_t count);

/* Looks for a secret behind the first `from` bytes, in one window a call; false: there is more.
 * `ret_what` is what was found, static, or NULL. */
bool content_search(struct file_content *, size_t from, const char **ret_what);

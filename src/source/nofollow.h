/*
 * source/nofollow.h - files below a directory that is held open, past no link.
 */
#pragma once

#include <stddef.h>

/* The directory, or the regular file, that these names lead to; -1 where any of them is a link or
 * it is something else. Never waits. */
int nofollow_directory(int directory, const char *path);
int nofollow_file(int directory, const char *path);

/* All of a file, new and NUL-terminated; NULL: there is none, or it has more than `limit` bytes. */
char *nofollow_read(int directory, const char *path, size_t limit, size_t *ret_size);

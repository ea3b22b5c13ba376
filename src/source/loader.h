/*
 * source/loader.h - one variable's text, gathered from files and directories.
 *
 * Either a plain text, or a concatenation in which each file stands under the
 * line "===== PATH =====". Headers and the line feeds that part a file from the
 * next header belong to no file, so that the range noted for a file is its text,
 * exactly.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "source/context.h"

struct loader;

struct file_id {
	dev_t device;
	ino_t number;
};

/* `notes` is lent, as is the loading: what is skipped is added to the notes. All that is added
 * fails at its deadline and after a signal, as file_take_fd() does. */
struct loader *loader_new(const char *name, bool with_headers, const struct context_loading *,
			  json_t *notes);

/* These files, lent, are sources themselves: a directory that leaves one out says nothing of it. */
void loader_set_named(struct loader *, const struct file_id *, size_t count);
void loader_free(struct loader *); /* NULL is fine */

/* From where the descriptor stands to its end; `label` is the path in the header. */
bool loader_add_fd(struct loader *, const char *label, int fd, struct rlmd_error *);

/*
 * Every regular text file below `path`, in the order of their paths, without ".git" and without
 * following links, and without what looks like a secret (source/secret.h). `prefixed`: the labels
 * begin with `path`. Only with headers. RLMD_ERROR_INPUT where there is no such file.
 */
bool loader_add_directory(struct loader *, const char *path, bool prefixed, struct rlmd_error *);

/* Seals the text; nothing can be added after it. */
bool loader_finish(struct loader *, struct context_input *ret, struct rlmd_error *);

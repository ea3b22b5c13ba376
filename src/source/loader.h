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

#include "base/error.h"
#include "source/content.h"
#include "source/context.h"
#include "source/origin.h"

struct loader;

struct loader_options {
	struct origin_options origin; /* lent what is in it */
	bool allow_secrets;           /* take what looks like one, and tell */
	int64_t max_file_size;        /* bytes of a file of a directory */
	size_t max_size;              /* bytes of the variable */
	size_t taken;                 /* bytes of the variables before it */
};

/* `notes` is lent: what is skipped is added to them. */
struct loader *loader_new(const char *name, bool with_headers, const struct loader_options *,
			  json_t *notes);
void loader_free(struct loader *); /* NULL is fine */

/* These files, lent, are sources themselves: a directory that leaves one out says nothing of it. */
void loader_set_named(struct loader *, const struct file_id *, size_t count);

/* The next step of loader_step(): reads the descriptor, lent, from where it stands to its end.
 * `label` is the path in the header. */
void loader_begin_fd(struct loader *, const char *label, int fd);

/*
 * As loader_begin_fd(), for every regular text file below `path`, in the order of their paths,
 * without ".git" and without following links, and without what looks like a secret
 * (source/secret.h). `prefixed`: the labels begin with `path`. Only with headers. False where
 * nobody can be asked for them.
 */
bool loader_begin_directory(struct loader *, const char *path, bool prefixed, struct rlmd_error *);

/* As loader_begin_directory(), of a revision, "REV" or "REV:PATH" of the current directory's
 * repository; the labels are paths in that. `prefixed`: with "REV:" before them, as git names such
 * a file. */
bool loader_begin_revision(struct loader *, const char *revision, bool prefixed,
			   struct rlmd_error *);

enum loader_end {
	LOADER_GOES_ON,
	LOADER_WAITS,  /* for loader_fd(), or for what comes through its own descriptor */
	LOADER_DONE,   /* with what was begun */
	LOADER_FAILED, /* RLMD_ERROR_INPUT, as where a directory has no text file */
};

/* Never waits, and takes in a MiB at most. */
enum loader_end loader_step(struct loader *, struct rlmd_error *);

int loader_fd(const struct loader *); /* that of who lists a directory; -1: nobody does */

size_t loader_bytes(const struct loader *); /* so far, of the variable */
size_t loader_files(const struct loader *);

/* The two last steps, some milliseconds each for a large tree. The first one seals the text:
 * nothing can be added to it any more. The other one makes the input. */
bool loader_seal(struct loader *, struct rlmd_error *);
bool loader_finish(struct loader *, struct context_input *ret, struct rlmd_error *);

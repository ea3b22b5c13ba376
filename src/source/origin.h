/*
 * source/origin.h - where the files of an input come from: a directory, what changed in it, or a
 * revision.
 *
 * Another program looks at it, sealed and without our keys (source/lister.h): what breaks in there
 * is an error of the input. Nothing here waits.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "source/lister.h"
#include "source/selection.h"

struct origin_options {
	struct selection *selection; /* lent: it is told what was met */
	struct rlmd_text words;      /* lent: of origin_words() */
	const char *directory;       /* lent: whose repository a revision is of */
	bool compares;               /* not all files, but those that changed */
};

/* All lent until the next step. */
struct origin_entry {
	enum listing_kind kind;
	const char *path;      /* from the directory on */
	int fd;                /* a file's, open for reading; else -1 */
	struct rlmd_text text; /* a LISTING_FILE's without a descriptor */
	const char *status;    /* of a comparison, static; or NULL */
	json_t *hunks;         /* the same; or NULL */
};

struct origin;
struct rlmd_context_options;

/* The options that all sources of an input share, as words; new. */
char *origin_words(const struct rlmd_context_options *, size_t *ret_size);

/* `notes` is lent, and so is what is in the options. NULL where the program cannot be started. */
struct origin *origin_directory(const char *path, const struct origin_options *, json_t *notes,
				struct rlmd_error *);

/* "REV" or "REV:PATH" of the repository that the directory is in, which needs no work tree. */
struct origin *origin_revision(const char *revision, const struct origin_options *, json_t *notes,
			       struct rlmd_error *);

/* Of what somebody else says, over a socket that is taken: for tests. */
struct origin *origin_of_answers(int answers, const struct origin_options *, json_t *notes);
void origin_free(struct origin *); /* ends the program; NULL is fine */

enum origin_end {
	ORIGIN_ENTRY,  /* one file, or something that is none */
	ORIGIN_PASSED, /* nothing of it: go on */
	ORIGIN_WAITS,  /* for origin_fd(), to be readable */
	ORIGIN_OVER,
	ORIGIN_FAILED, /* RLMD_ERROR_INPUT; RLMD_ERROR_SANDBOX where the program cannot be sealed */
};

enum origin_end origin_next(struct origin *, struct origin_entry *ret, struct rlmd_error *);
int origin_fd(const struct origin *);

/* At the end: names of the selection's list that nothing has, one a call; NULL: none. */
const char *origin_missing(struct origin *);

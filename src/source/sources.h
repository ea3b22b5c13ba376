/*
 * source/sources.h - what inputs are made of, as it is named: PATH, "-", git:REV[:PATH] or NAME=
 * before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "source/loader.h"

struct source {
	char *name;           /* owned; NULL: part of `context` */
	const char *path;     /* lent: of what was given */
	bool directory;       /* or a revision */
	const char *revision; /* lent: REV or REV:PATH, of git; NULL: none */
	struct file_id file;  /* zero: standard input or a directory */
};

/* `sources`, zero, has room for all. RLMD_ERROR_USAGE for bad names and paths, RLMD_ERROR_INPUT for
 * what is no file. To be ended with sources_done() in any case. */
bool sources_parse(const char *const *given, size_t count, struct source *sources,
		   struct rlmd_error *err);
void sources_done(struct source *sources, size_t count);

/* Whether something ("context") may be called that in the session; RLMD_ERROR_USAGE. */
bool sources_check_name(const char *what, const char *name, struct rlmd_error *);
bool sources_is_identifier(const char *name); /* of ASCII; a keyword is one too */

/* Of no directory; -1: the error says why. Standard input is its own descriptor. */
int sources_open(const struct source *, struct rlmd_error *);
void sources_close(int fd); /* standard input stays open */

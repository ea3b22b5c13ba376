/*
 * review/patch_text.h - changes of a file, and how they stand in a unified diff.
 */
#pragma once

#include <stddef.h>

#include "base/text.h"
#include "review/code.h"

struct evbuffer;

enum { PATCH_HUNKS_MAX = 200 };

/* So many lines from `line` on are replaced by other lines. */
struct patch_edit {
	size_t line, removed;
	struct evbuffer *added; /* owned: lines, each with its line feed */
};

/* Of one file, in the order of their lines. */
struct patch_file {
	const struct code_file *file; /* lent */
	struct patch_edit *edits;     /* owned */
	size_t count;
};

/* All that one suggested change does. */
struct patch {
	struct patch_file *files; /* owned; none without an edit */
	size_t count;
};

void patch_free(struct patch *); /* NULL is fine */

void patch_file_add(struct patch_file *, size_t line, size_t removed, struct rlmd_text added);
void patch_file_done(struct patch_file *);

/* Appends it as git writes it, with three lines of context. */
void patch_file_write(const struct patch_file *, struct evbuffer *out);

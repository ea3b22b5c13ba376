/*
 * source/context.h - the inputs of a run: from the command line's sources to sealed memory files.
 *
 * LIB-8 to LIB-11. Each source becomes one Python variable. A directory, or
 * several sources without names, become one `context`: the concatenation, each
 * file under a header line with its path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include <jansson.h>
#include <rlmd/context.h>

#include "base/memfile.h"
#include "source/file_index.h"

enum { CONTEXT_INPUTS_MAX = RLMD_CONTEXT_INPUTS_MAX };

#define CONTEXT_SIZE_MAX ((size_t)4 << 30) /* bytes of one variable */

struct context_input {
	char *name;               /* owned: the variable's; "context" first */
	struct memfile *file;     /* referenced, sealed */
	const char *type;         /* "markdown", "code", "json", "plain"; static */
	struct file_index *files; /* referenced, sealed: what it was made of; or NULL */
	char *left_out;  /* owned: "2 binary files, 1 link ...", for the model; NULL: nothing */
	json_t *skipped; /* referenced: each of them (skipped_get()); or NULL */
};

struct context {
	struct context_input *inputs; /* owned; there may be none */
	size_t count;
	json_t *notes; /* owned array of strings for standard error: what was skipped, and why */
};

/* The handle that a caller of the library holds: the same, as long as it has references. */
struct rlmd_context {
	unsigned references;
	struct context context; /* owned */
};

struct rlmd_context *context_publish(struct context *);        /* takes what is in it */
const struct context *context_of(const struct rlmd_context *); /* lent; NULL gives NULL */

/* One text as `context`, for sub-runs and tests. */
bool context_from_text(struct rlmd_text, struct context *ret, struct rlmd_error *);
struct context_input context_input_of(const char *name, struct memfile *file); /* references it */
void context_input_done(struct context_input *);

/* The same inputs once more; without notes. `to` is empty. */
void context_share(struct context *to, const struct context *from);
void context_done(struct context *);

/* LIB-8's content type of the beginning of a text. */
const char *context_type(struct rlmd_text);

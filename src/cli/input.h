/*
 * cli/input.h - what a command line asks, and about what.
 *
 * Standard input is the task, the context or neither: `-` says which, and what
 * is piped in without a word is the context.
 */
#pragma once

#include <rlmd/context.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/config.h"

#define TASK_SIZE_MAX   ((size_t)1 << 20)
#define SCHEMA_SIZE_MAX ((size_t)64 << 10)

struct input {
	char *task; /* owned */
	size_t task_size;
	bool task_is_stdin;
	char *list;         /* owned: of --files-from */
	const char **files; /* owned: names in the list */
	size_t file_count;
	struct rlmd_context *context; /* owned */
	char *schema;                 /* owned; NULL: none */
	size_t schema_size;
};

/* How long anything may be waited for: what --max-time says, since the command began. */
struct input_time {
	int64_t allowed;  /* ms */
	int64_t deadline; /* of clock_ms() */
};

struct input_time input_time_from(int64_t allowed_ms); /* now */

/* Whether `words`, the arguments that are no options, are one task; RLMD_ERROR_USAGE. */
bool input_check_words(const struct config *, int count, char *const *words, struct rlmd_error *);

/* Options that choose among the files of a directory, where no -c names one, mean this directory:
 * -c is set to ".". To be called before anything is made of the settings. */
void input_imply_directory(struct config *);

/*
 * Neither ever waits for a terminal unless `-` says so. RLMD_ERROR_BUDGET where the time is over
 * before all is read, RLMD_ERROR_CANCELLED after a signal.
 */
bool input_task(struct input *, const struct config *, const char *word, struct input_time,
		struct rlmd_error *);
/* Whether what the command line names is there at all: input_context() says what is wrong. */
bool input_seems_there(const struct config *);
bool input_context(struct input *, const struct config *, struct input_time, struct rlmd_error *);
/* A file; RLMD_ERROR_USAGE where it cannot be read, or is empty. */
bool input_schema(struct input *, const struct config *, struct rlmd_error *);
void input_done(struct input *);

/* All of standard input, new and NUL-terminated; RLMD_ERROR_INPUT where it is larger, else as
 * above. `what` is waited for: "the task". */
char *input_stdin(const char *what, size_t limit, struct input_time, size_t *ret_size,
		  struct rlmd_error *);

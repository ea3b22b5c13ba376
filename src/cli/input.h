/*
 * cli/input.h - what a command line asks, and about what.
 *
 * Standard input is the task, the context or neither: `-` says which, and what
 * is piped in without a word is the context.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/config.h"
#include "engine/context.h"

#define TASK_SIZE_MAX ((size_t)1 << 20)

struct input {
	char *task; /* owned */
	size_t task_size;
	bool task_is_stdin;
	struct context context;
};

/* `words` are the arguments that are no options. Neither ever waits for a terminal unless `-`
 * says so. */
bool input_task(struct input *, const struct config *, int count, char *const *words,
		struct error *);
bool input_context(struct input *, const struct config *, struct error *);
void input_done(struct input *);

/* All of standard input, new and NUL-terminated; ERROR_INPUT where it is larger. `what` is waited
 * for: "the task". */
char *input_stdin(const char *what, size_t limit, size_t *ret_size, struct error *);

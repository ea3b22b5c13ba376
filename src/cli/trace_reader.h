/* cli/trace_reader.h - the lines of a trace, while they are written. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

/* Somebody who reads a trace. */
struct trace_reader {
	/* The next line, without its end, and its event; lent. NULL: it is none. False: no more. */
	bool (*line)(void *owner, struct rlmd_text line, const json_t *event);
	/* All that was there is read, and more may come. False: no more; `err` may say why. */
	bool (*idle)(void *owner, struct rlmd_error *err);
	bool (*key)(void *owner); /* `keys` has something to read. False: no more */
	int keys;                 /* lent; -1: none */
	void *owner;              /* lent */
};

/*
 * Reads `path` ("-": standard input) until its run has ended. False: it was left before, or it
 * ended; and RLMD_ERROR_INPUT, RLMD_ERROR_CANCELLED for an interruption, and those of `idle`.
 */
bool trace_reader_run(const struct trace_reader *, const char *path, struct rlmd_error *);

/* Whether a trace of another run begins with this event, in the same file. */
bool trace_reader_begins(const json_t *event);

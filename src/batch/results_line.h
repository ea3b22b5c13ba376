/*
 * batch/results_line.h - one line of a results file: whose result it is, and what the result says.
 *
 *     {"custom_id": "a-17", "tenant": "acme", "attempts": 1, "job": "5c0e...", "success": true,
 * ...}
 *
 * What follows `job` is the result object as `rlmd exec --json` has it. `job` is the beginning of
 * the job's digest, so that the result of another job of the same custom_id is known for what it
 * is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct evbuffer;

#define RESULTS_LINE_MAX ((size_t)256 << 20) /* bytes */

enum { RESULTS_DEPTH_MAX = 1000 };

struct results_line {
	const char *custom_id; /* lent, as all is */
	const char *tenant;    /* NULL: null */
	int64_t attempts;
	uint64_t mark;           /* results_line_mark() of the job's digest; 0: it is not said */
	struct rlmd_text result; /* a JSON object */
};

/* The number that stands for a job in a line and in an id_map; never 0. */
uint64_t results_line_mark(const char *digest);

/* Appends the line, with its line feed. False, and nothing is added, where the result is no object,
 * or the line would be too long: RLMD_ERROR_INTERNAL. */
bool results_line_write(const struct results_line *, struct evbuffer *out, struct rlmd_error *);

/* Whose the line is: `ret_id` is new; `ret_mark` is 0 where it is not said. RLMD_ERROR_INPUT says
 * why it is none. */
bool results_line_read(struct rlmd_text line, char **ret_id, uint64_t *ret_mark,
		       struct rlmd_error *);

/* Whether it may be what was left of a line when the machine or the disk stopped its writing: the
 * beginning of one, with or without NULs behind it. Nobody else's text is. */
bool results_line_is_rest(struct rlmd_text);

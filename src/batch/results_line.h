/*
 * batch/results_line.h - one line of a results file: whose result it is, and what the result says.
 *
 *     {"custom_id":"a-17","tenant":"acme","attempts":1,"job":"5c0e...","success":true, ...}
 *
 * After `job` comes the result object as `rlmd exec --json` has it. `job` stands for the job's
 * digest, so that the result of another job of the same custom_id is known for what it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct evbuffer;
struct store_job;
struct store_outcome;

#define RESULTS_LINE_MAX ((size_t)256 << 20) /* bytes */

enum { RESULTS_DEPTH_MAX = 1000, RESULTS_LINE_JOB = 16 };

struct results_line {
	struct rlmd_text custom_id; /* lent, as all texts are */
	struct rlmd_text tenant;    /* empty: null */
	int64_t attempts;
	char job[RESULTS_LINE_JOB + 1];
	bool success;            /* of a line that was read */
	struct rlmd_text result; /* of one that is written: a JSON object */
	/* private */
	char *owned[2];
};

/* The line of a job that is over, which lends its texts. */
struct results_line results_line_of(const struct store_job *);

/* Appends the line, with its line feed. False, and nothing is added: RLMD_ERROR_INPUT where the
 * result is not one object, or has a member of the head's, RLMD_ERROR_INTERNAL where the line would
 * be too long. */
bool results_line_write(const struct results_line *, struct evbuffer *out, struct rlmd_error *);

/* Reads a line, which lends its texts. RLMD_ERROR_INPUT says why this program has not written it:
 * each of its lines has the four members above and `success`, in any order. */
bool results_line_read(struct rlmd_text, struct results_line *ret, struct rlmd_error *);
void results_line_done(struct results_line *);

/* The end of the job, as a store keeps it, of a line that was read. `ret_result` is new, and lends
 * `ret` its result. */
bool results_line_outcome(struct rlmd_text, const struct results_line *, struct store_outcome *ret,
			  char **ret_result, struct rlmd_error *);

/* Whether a text that is no line may be the rest of one, of which the machine or a full disk has
 * kept the beginning, with or without NULs behind it. */
bool results_line_is_rest(struct rlmd_text);

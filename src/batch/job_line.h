/*
 * batch/job_line.h - one line of a jobs file, checked: a job.
 *
 *     {"custom_id": "a-17", "task": "Which host failed first?", "context_file": "logs/17.txt",
 *      "tenant": "acme", "model": "qwen3:14b", "budget": {"maxCost": 0.5}, "schema": {...}}
 *
 * custom_id and task are needed. At most one of context (a text), context_file and context_dir (a
 * directory, or git:REV[:PATH]) says what the task is about. A member that is null counts as not
 * there; one that nobody knows is an error, and so is a number that makes no sense.
 *
 * A line of OpenAI's Batch API is a job, too: the last message of the user in body.messages is the
 * task, the others are the context, each under its role. Of body, `model` and the schema of
 * `response_format` are used; what says how the model chooses its words is left out and told
 * (`ignored`); what else there is, as tools, is an error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

enum {
	JOB_LINE_ID_MAX = 1024,         /* bytes of a custom_id */
	JOB_LINE_SCHEMA_MAX = 64 << 10, /* bytes of a schema, as rlmd/job.h has it */
	JOB_LINE_UNSAID = -1,           /* of a limit */
};

enum job_line_source {
	JOB_LINE_NO_CONTEXT,
	JOB_LINE_TEXT,
	JOB_LINE_FILE,      /* `context` is its path, as it is written */
	JOB_LINE_DIRECTORY, /* likewise; or git:REV[:PATH] */
};

/* Texts are lent by the line that was read, or owned; what is not said is NULL or empty. */
struct job_line {
	char *custom_id; /* owned, as are the next two: UTF-8 */
	char *tenant;
	char *model;
	struct rlmd_text task;
	struct rlmd_text context; /* by `source`: the text, or a path */
	struct rlmd_text schema;  /* JSON */
	enum job_line_source source;
	int64_t max_cost; /* pico-dollars */
	int64_t max_tokens;
	int64_t max_time_ms;
	int64_t max_iterations;
	int64_t max_depth;
	const char *ignored; /* the first member of an OpenAI line that has no effect; static, or
				NULL */
	/* Of what the job is, not of how it is written: blanks, the order of members, escapes, and
	 * what is left out or null make no difference. Of files only their names count. */
	char digest[DIGEST_SIZE];
	/* private */
	char *owned[3];
	struct rlmd_text quoted; /* of a path, in the line, between its quotes */
};

/* Without its line feed. RLMD_ERROR_INPUT names the member, and says what to do. Of a line of n
 * bytes it takes about n bytes of memory. */
bool job_line_read(struct rlmd_text line, struct job_line *ret, struct rlmd_error *);
void job_line_done(struct job_line *);

/* Makes the job of a line that names no tenant one of this tenant, as if the line said so. */
bool job_line_give(struct job_line *, const char *tenant, struct rlmd_error *);

/*
 * Where the context of a job is, new, as `rlmd exec -c` takes it: relative paths start from
 * `directory`, that of the jobs file. NULL: it is none of a file or directory.
 */
char *job_line_path(const struct job_line *, const char *directory);

/* Whether its context is git:REV[:PATH], of the repository that the file is in. */
bool job_line_is_git(const struct job_line *);

/*
 * The line, new, as it is read elsewhere: with a relative path as seen from `directory`, which is
 * absolute. NULL: it has none, and stays as it is.
 */
char *job_line_anywhere(struct rlmd_text line, const struct job_line *, const char *directory,
			size_t *ret_size);

/* A stable number of a custom_id: shard I of N, from 1, has those where it is I - 1 modulo N. */
uint64_t job_line_hash(const char *custom_id);

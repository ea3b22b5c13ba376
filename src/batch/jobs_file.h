/*
 * batch/jobs_file.h - the jobs of a file or a stream, one a line, told as they are read.
 *
 * It is read once, in steps on the loop and in bounded memory, whatever its size: a line may have
 * 64 MiB. Empty lines are passed over, and a byte order mark in front. A file that is written to
 * meanwhile is found by its size and time before and after, and is an error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

struct event_base;
struct job_line;
struct jobs_file;

enum {
	JOBS_FILE_LINE_MAX = 64 << 20, /* bytes */
	JOBS_FILE_BAD_TOLD = 100,      /* so many bad lines are told one by one */
	JOBS_FILE_SHARDS_MAX = 1000000,
};

/* Which of the jobs: those of one of `count` shards, from 1. Zero: all. */
struct jobs_file_shard {
	uint64_t index, count;
};

struct jobs_file_summary {
	uint64_t jobs;   /* that were told */
	uint64_t others; /* of other shards */
	uint64_t lines;  /* with the empty and the bad ones */
	uint64_t bad;    /* also those that were not told */
	uint64_t bytes;
	/* The first member of an OpenAI line that has no effect (static; or NULL), in which line,
	 * and how many lines have one. */
	const char *ignored;
	uint64_t ignored_line, ignored_lines;
	/* Of the jobs that were told, in their order: it changes with them, and not with how they
	 * are written. */
	char digest[DIGEST_SIZE];
};

struct jobs_file_hooks {
	/* A job, and its line as it stands there; lent. False: no more of them before
	 * jobs_file_resume(). */
	bool (*job)(void *owner, uint64_t number, const struct job_line *, struct rlmd_text line);
	/* Whether a job may be one of the file; false: its line is a bad one. It may be given a
	 * tenant. NULL: any may. */
	bool (*check)(void *owner, struct job_line *, struct rlmd_error *);
	/* A bad line, of the first JOBS_FILE_BAD_TOLD; the error has the line's number. */
	void (*bad)(void *owner, uint64_t number, const struct rlmd_error *);
	/* Once, last. `err`, or NULL: it could not be read to its end, or is another file by now.
	 */
	void (*end)(void *owner, const struct jobs_file_summary *, const struct rlmd_error *err);
	void *owner;
};

/* "2/8": RLMD_ERROR_USAGE says what a shard is. */
bool jobs_file_parse_shard(const char *string, struct jobs_file_shard *ret, struct rlmd_error *);

/*
 * `path` "-" is standard input. Nothing is told before it returns. From inside job() and bad() it
 * must not be freed; from end() it may. NULL and RLMD_ERROR_INPUT where it cannot be opened.
 */
struct jobs_file *jobs_file_new(struct event_base *, const char *path, struct jobs_file_shard,
				const struct jobs_file_hooks *, struct rlmd_error *);
void jobs_file_resume(struct jobs_file *); /* after job() said false; else without effect */
/* It is read no further, and ends soon, with RLMD_ERROR_CANCELLED, where it has not ended yet. */
void jobs_file_stop(struct jobs_file *);
void jobs_file_free(struct jobs_file *); /* nothing is told any more; NULL is fine */

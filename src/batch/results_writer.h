/*
 * batch/results_writer.h - a batch's results file, from its opening to its last line.
 *
 *   opened -> (lines of jobs that are to be tried again taken out, and opened anew)
 *     -> what the store has written to it, as often as it is asked for -> (sorted)
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct id_map;
struct results_writer;
struct store;
struct summary;

struct results_writer_options {
	const char *path;    /* lent */
	struct store *store; /* lent, as is all that follows */
	int64_t batch;
	bool rerun_failed; /* jobs that failed wait again, before anything else */
	bool sort;         /* in the end, by the order of the jobs */
	/* What its user should know; lent. */
	void (*warn)(void *owner, const char *text);
	/* All results that there were when it was opened, or asked to look last, are in the file.
	 * It must not be freed from inside. */
	void (*done)(void *owner);
	/* Once, last: as it was asked to end (`err` NULL), or why it could not go on. */
	void (*end)(void *owner, const struct rlmd_error *err);
	void *owner;
};

/* `jobs` is owned from now on, and as results_file_new() has it. Nothing is told before it returns.
 * NULL and RLMD_ERROR_USAGE: the file cannot be used. */
struct results_writer *results_writer_new(struct event_base *,
					  const struct results_writer_options *,
					  struct id_map *jobs, struct rlmd_error *);
void results_writer_free(struct results_writer *); /* nothing is told any more; NULL is fine */

/* There may be more results. */
void results_writer_look(struct results_writer *);

/* No more are to come. */
void results_writer_end(struct results_writer *);

/* Adds what the results say that are in the file so far. */
void results_writer_sum(const struct results_writer *, struct summary *);

/*
 * batch/results_file.h - the results of a batch in a file: an export of what its store has.
 *
 * The store is the truth. A file that is there already is read first: it must have results of this
 * batch and nothing else. Results that the store does not know, as it was lost, are put into it, so
 * that their jobs are not paid again. Then the file is written anew, and takes the place of the old
 * one at once; so lines that were cut, edited or left out need no repair. Results that come later
 * are appended. The file is brought to the disk at the end: what a machine loses before, the next
 * start writes.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct results_file;
struct store;
struct summary;

/* Jobs that wait again: those that failed; those that succeeded with a degraded answer. */
struct results_rerun {
	bool failed, degraded;
};

struct results_file_options {
	const char *path;    /* lent */
	struct store *store; /* lent */
	int64_t batch;
	bool shared;                /* other machines may use the store */
	struct results_rerun rerun; /* before anything else */
	bool sort;                  /* in the end, by the order of the jobs */
	/* A warning for the user; lent. */
	void (*warn)(void *owner, const char *text);
	/* All results that there were when it was opened, or asked to look last, are in the file.
	 * It must not be freed from inside. */
	void (*done)(void *owner);
	/* Once, last: as it was asked to end (`err` NULL), or why it could not go on; it may be
	 * freed. RLMD_ERROR_INPUT: the file is not one of this batch's results, and left as it was.
	 */
	void (*end)(void *owner, const struct rlmd_error *err);
	void *owner;
};

/* Makes the file where there is none, and locks it against a second batch. Nothing is told before
 * it returns. NULL and RLMD_ERROR_USAGE: it cannot be. */
struct results_file *results_file_new(struct event_base *, const struct results_file_options *,
				      struct rlmd_error *);
void results_file_free(struct results_file *); /* nothing is told any more; NULL is fine */

/* There may be more results; only after done(). */
void results_file_look(struct results_file *);

/* No more are to come; only after done(). Where the file is not what was written to it, it is
 * written anew, with a warning. */
void results_file_end(struct results_file *);

/* Adds what the results say that are in the file so far. */
void results_file_sum(const struct results_file *, struct summary *);

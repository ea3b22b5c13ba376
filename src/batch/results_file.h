/*
 * batch/results_file.h - the file of a batch's results: one line for each custom_id, whatever
 * happens.
 *
 * It is opened to go on with. Each line is appended whole by one write; a line that the machine or
 * a full disk cut is taken away, and told. Lines are brought to the disk in groups by a thread of
 * their own (batch/syncer.h), so that the loop never waits for it: whatever is in the store and
 * not in the file is simply written again. What is no file of this batch's results is refused, and
 * left as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct event_base;
struct id_map;
struct results_file;
struct results_line;

struct results_file_hooks {
	/* Once: what was there is known; or not, and `err` (else NULL) says why: RLMD_ERROR_INPUT.
	 * `cut` bytes of an unfinished line were taken away at its end. The file may be freed. */
	void (*opened)(void *owner, uint64_t lines, uint64_t cut, const struct rlmd_error *err);
	/* So many of its lines are on the disk. With an error there may be fewer:
	 * RLMD_ERROR_INTERNAL. The file may be freed. */
	void (*kept)(void *owner, uint64_t lines, const struct rlmd_error *err);
	void *owner;
};

/*
 * Makes the file where there is none, and locks it against a second batch. `jobs` has
 * results_line_mark() of each job of the batch: the result of another is that of another batch;
 * NULL: any may be there. Lent until opened(). NULL and RLMD_ERROR_USAGE: it cannot be.
 */
struct results_file *results_file_new(struct event_base *, const char *path,
				      const struct id_map *jobs, const struct results_file_hooks *,
				      struct rlmd_error *);
void results_file_free(struct results_file *); /* waits for the disk; NULL is fine */

/* All of these only after opened(). */
bool results_file_has(const struct results_file *, const char *custom_id);
uint64_t results_file_lines(const struct results_file *);

/* Appends a line; one whose custom_id is there already is not written again. False: nothing of it
 * is in the file, and RLMD_ERROR_INTERNAL says why, as a full disk. */
bool results_file_add(struct results_file *, const struct results_line *, struct rlmd_error *);

/*
 * --sort: the same lines in the order in which their ids are said, in memory for none of them. At
 * the end the new file takes the place of the old at once, and the results file is to be freed. Ids
 * without a line are passed over; a line whose id was not said is left out, or an error at the end
 * where `all` have to be there.
 */
struct results_sort;

struct results_sort *results_sort_new(struct results_file *, struct rlmd_error *);
bool results_sort_add(struct results_sort *, const char *custom_id, struct rlmd_error *);
bool results_sort_commit(struct results_sort *, bool all, struct rlmd_error *);
void results_sort_free(struct results_sort *); /* what was not committed is gone; NULL is fine */

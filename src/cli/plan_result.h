/*
 * cli/plan_result.h - what became of a plan, as its exit status and in a sentence.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

/* How the operations of a result object ended. */
struct plan_tally {
	size_t count, succeeded, failed, cancelled;
	bool won;            /* a race that somebody won: the others' failures mean nothing */
	const json_t *first; /* lent: the first that failed of itself, or NULL */
	int cause;           /* the exit status that all such failures come to, or 0: several */
};

struct plan_tally plan_result_tally(const json_t *result);

/*
 * 0 where nothing failed, or a race was won. The status of the reason where there was one
 * for all, and either nothing succeeded or it was the budget. 3 for everything else.
 */
int plan_result_status(const struct plan_tally *);

/* "12 operations, 2 failed"; new. */
char *plan_result_text(const struct plan_tally *);

/* "2 of 12 operations failed; the first, 'x': ..." */
void plan_result_error(const struct plan_tally *, struct rlmd_error *);

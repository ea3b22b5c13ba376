/*
 * engine/answer_check.h - whether an answer will do, asked before it is taken.
 *
 * Whoever ordered an answer may want it to have a form: the hook `check` of a host
 * says so. A run that has one asks it of each answer, and what is wrong is told to
 * the model, which tries again.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

struct answer_check;
struct rlmd_job;

/* Lent to the callback. */
struct answer_verdict {
	const struct rlmd_error *error; /* it could not be checked, and never will; NULL: it was */
	struct rlmd_text
		wrong; /* what is, for the model, a line each; ends in NUL; empty: nothing */
	struct rlmd_text answer; /* where nothing is: what is to be taken for it */
};

typedef void answer_verdict_fn(void *owner, const struct answer_verdict *);

/* Whether anybody wants to see the answers of the job's own run. */
bool answer_check_wanted(const struct rlmd_job *);

/* Copies the answer. Never calls back before it returns. */
struct answer_check *answer_check_start(struct rlmd_job *, struct rlmd_text answer,
					answer_verdict_fn *, void *owner);
void answer_check_cancel(struct answer_check *); /* no callback follows; NULL is fine */

/*
 * cli/review_result.h - a review's findings in the result of its job.
 */
#pragma once

#include <jansson.h>
#include <rlmd/review.h>

#include "base/error.h"

/* The member "review" of the result, of the findings in an answer. False, with RLMD_ERROR_SCHEMA:
 * it has none. */
bool review_result_take(struct rlmd_review *, struct rlmd_context *, struct rlmd_text answer,
			json_t *result, struct rlmd_error *);

/*
 * An answer that is paid for, rlmd_review_spare(), stands where the job failed without another one.
 * The result then is a success, with a warning, which is
 * returned as a new string, and `failure` is of no kind, or why the answer cannot be taken. NULL,
 * and all is as it was: there is no such answer, or nothing is wanted of an interrupted job.
 */
char *review_result_take_spare(struct rlmd_review *, struct rlmd_context *, json_t *result,
			       struct rlmd_error *failure);

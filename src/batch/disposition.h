/*
 * batch/disposition.h - what becomes of a job that has no answer: by the kind of its error.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

enum disposition {
	DISPOSITION_FAIL,    /* it would fail again */
	DISPOSITION_RETRY,   /* later it may not */
	DISPOSITION_BREAKER, /* so would all jobs with this key: it waits until somebody mends that
			      */
	DISPOSITION_BACK,    /* nothing is wrong with it: it was stopped */
};

enum disposition disposition_of(enum rlmd_error_kind);

/* Whether it has to be asked anew if it is to end otherwise: with the answers that it has had it
 * would fail again. */
bool disposition_is_answered(enum rlmd_error_kind);

/*
 * How long to wait after so many attempts, in milliseconds: twice as long after each, from one
 * second to five minutes, less up to a half of it, as `random` says: jobs that failed at once do
 * not come back at once.
 */
int64_t disposition_delay(int64_t attempts, uint32_t random);

/*
 * batch/retry.h - what becomes of a job that has no answer: by the kind of its error.
 */
#pragma once

#include <rlmd/rlmd.h>
#include <stdbool.h>
#include <stdint.h>

enum retry {
	RETRY_NEVER,            /* it would fail again */
	RETRY_LATER,            /* later it may not */
	RETRY_WITH_ANOTHER_KEY, /* so would all jobs with this key: it waits until somebody mends
				 * that
				 */
	RETRY_WITH_FEWER,       /* later it may not, with fewer beside it: that is no attempt */
	RETRY_UNCOUNTED,        /* nothing is wrong with it: it was stopped */
};

enum retry retry_of(enum rlmd_error_kind);

/* Whether it has to be asked anew if it is to end otherwise: with the answers that it has had it
 * would fail again. */
bool retry_asks_anew(enum rlmd_error_kind);

/*
 * How long to wait after so many attempts, in milliseconds: twice as long after each, from one
 * second to five minutes, less up to a half of it, as `random` says: jobs that failed at once do
 * not come back at once.
 */
int64_t retry_delay(int64_t attempts, uint32_t random);

/*
 * async/rate.h - so many in any minute: when the next may begin.
 *
 * Pure: it is told the time. A permit counts for the whole window and up to a sixtieth of it
 * longer, so that no window of that length, wherever it begins, has more.
 */
#pragma once

#include <stdint.h>

enum { RATE_SLOTS = 60 };

/* Zero is none: it is not to be asked. */
struct rate {
	int64_t most; /* in a window; 0: there is no rate */
	/* private */
	int64_t slot_ms;
	int64_t newest; /* number of the newest slot, since the clock began */
	int64_t taken;  /* in all slots */
	int64_t slots[RATE_SLOTS + 1];
};

void rate_init(struct rate *, int64_t most, int64_t window_ms);

/* When one may be taken: not later than `now_ms`: at once. */
int64_t rate_opens(struct rate *, int64_t now_ms);
void rate_take(struct rate *, int64_t now_ms);

/* The one that was taken last was not used. */
void rate_give_back(struct rate *, int64_t now_ms);

/*
 * engine/full_reading.h - what it takes to have everything read once, and whether that fits.
 *
 * A run reads its inputs by calls of the size that its model is told to make, each with a whole
 * reply, between two turns: what somebody means to pay who has all of his files looked at.
 */
#pragma once

#include <jansson.h>

#include "engine/job.h"

/* Zeroed: nothing so far. */
struct full_reading {
	int64_t calls, tokens, cost; /* saturating */
	bool priceless;              /* a model has no price */
};

/* Calls of a model with so many tokens of input in all, and of output each. */
void full_reading_calls(struct full_reading *, const struct rlmd_job *, const char *model,
			int64_t calls, int64_t input, int64_t output);

/* A run whose first request has `first` tokens, and its inputs `inputs`. */
void full_reading_run(struct full_reading *, const struct rlmd_job *, int64_t first,
		      int64_t inputs);

/* Sets "fullReading", "fits", and "misfits", strings. */
void full_reading_tell(const struct full_reading *, const struct budget_limits *, json_t *object);

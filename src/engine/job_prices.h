/* engine/job_prices.h - whether a job can keep to its limit on cost. */
#pragma once

#include "base/error.h"

struct rlmd_job;

/*
 * Of all models that its settings name. A limit that somebody asked for is kept, or refused where
 * a model has no price (RLMD_ERROR_USAGE); one that nobody asked for is lifted then, with a
 * warning. With nothing to spend the root's model has to be free (RLMD_ERROR_BUDGET), but where it
 * is only `shown`.
 */
bool job_check_prices(struct rlmd_job *, bool asked_for, bool shown, struct rlmd_error *);

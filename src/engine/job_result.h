/* engine/job_result.h - what the result objects of all jobs have in common. */
#pragma once

#include <jansson.h>

#include "base/error.h"

struct budget;
struct rlmd_job;

/* Warnings (those that are given, then what else there was to be warned of), sandbox, models,
 * provider and prices, as members of `object`; what was used, for the getters. */
void job_result_add(struct rlmd_job *, const struct budget *account, const json_t *warnings,
		    json_t *object);

/* That of a job whose work never began, new. */
json_t *job_result_none(struct rlmd_job *, const struct rlmd_error *);

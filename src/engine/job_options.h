/* engine/job_options.h - what a job's options come to: checked, with defaults, and copied. */
#pragma once

#include <rlmd/job.h>

#include "base/error.h"

struct rlmd_job;

enum job_purpose {
	JOB_TO_RUN,
	JOB_TO_CHECK, /* it would be refused, or not */
	JOB_TO_SHOW,  /* a dry run: nobody is asked */
};

/*
 * Whom the job asks, what it works on, its settings, models, prompts and hooks; and what there is
 * to warn of before it begins. False: the errors of rlmd_job_start(). job_drop_options() has to
 * follow in either case.
 */
bool job_take_options(struct rlmd_job *, const struct rlmd_job_options *, enum job_purpose,
		      struct rlmd_error *);
void job_drop_options(struct rlmd_job *);

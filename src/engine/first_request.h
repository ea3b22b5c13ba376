/* engine/first_request.h - what a run says first, as a dry run shows it: nobody is asked. */
#pragma once

#include "engine/job.h"
#include "prompt/conversation.h"

/* Adds it, for a run of this job with this context and task, with what it has set aside and counted
 * by then; the first turn is told a stand-in for what the look at the inputs would print. */
void first_request(struct conversation *, const struct rlmd_job *, const struct context *,
		   struct rlmd_text task);

int64_t first_request_tokens(const struct conversation *);

/*
 * sandbox/trial.h - a worker that raises its walls, says which of them stand, and
 * runs nothing.
 */
#pragma once

#include "sandbox/template.h"

struct trial {
	uint32_t layers;    /* that stand, also those of its template */
	const char *fallen; /* the wall that does not stand though it must, or NULL */
	struct steps steps; /* what was refused */
	bool hapless;       /* it was killed or slow, so that another may do better */
};

/* Waits for it, without the loop. False where it did not get as far as to tell. */
bool trial_run(struct template_process *, const struct launch_request *, int patience_ms,
	       struct trial *, struct rlmd_error *);

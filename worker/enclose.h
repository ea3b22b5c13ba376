/*
 * worker/enclose.h - what is walled off once, in the template, for all its workers.
 *
 * When everything is loaded and no file is needed any more; the workers inherit
 * it. Walls that must be raised for each of them are in walls.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/steps.h"

struct enclosure {
	enum mode mode;
	uint32_t layers;    /* that stand, a bit each */
	int landlock;       /* a ruleset without a rule for the workers, or -1 */
	int proc;           /* /proc, where each of them opens its own status; or -1 */
	struct steps steps; /* `without`, and what failed */
};

/*
 * In the best of the modes that may be tried. False where it is stuck halfway or
 * a layer fails that must stand: then the process is of no use any more, and the
 * last failure says why.
 */
bool enclose(struct enclosure *, const struct launch_terms *);

/* That the end of the supervisor is ours, also if it came already. */
bool tie_to_supervisor(struct steps *);

/*
 * worker/walls.h - what stands between a worker and everything else.
 *
 * The walls are raised in the new process, after the fork and before Python
 * runs in it again, by system calls alone (the table: sandbox/walls.def).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "enclose.h"

/* A worker that is to be: the request, and what came with it: null, in, out, files. */
struct launch {
	struct launch_request request;
	int fds[LAUNCH_FDS_MAX];
	size_t fd_count;
	int handover; /* a socket, to hand its status to the template; in the worker */
};

/* In the template, once: checks the environment and takes the filter. NULL, or what is wrong. */
const char *walls_prepare(void);

/*
 * Returns the layers of the template's and its own that stand, a bit each; or ends
 * the process with WALL_EXIT and the place of the wall that does not. A trial ends
 * here in any case.
 */
uint32_t walls_raise(const struct launch *, struct enclosure *);

/*
 * worker/walls.h - what stands between a worker and everything else.
 *
 * The walls are raised in the new process, after the fork and before Python
 * runs in it again, by system calls alone (the table: sandbox/walls.def).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/launch.h"

/* A worker that is to be: the request, and the descriptors that came with it: in, out, files. */
struct launch {
	struct launch_request request;
	int fds[LAUNCH_FILES_MAX + 2];
	size_t fd_count;
};

/* ABSENT: this kernel has no such wall, and the others do without it. */
enum standing { FALLEN, ABSENT, STANDS };

/* In the template, once: checks the environment and takes the filter. NULL, or what is wrong. */
const char *walls_prepare(void);

/* Returns with all walls proven, or ends the process: WALL_EXIT and the wall's place. */
void walls_raise(const struct launch *, enum standing ret_standing[WALL_COUNT]);

/* The wall's name in results and traces; "" where it has none. */
const char *walls_layer(enum wall);

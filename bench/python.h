/* bench/python.h - a process that runs blocks and that nothing confines: bench/in_process.py, or a
 * peer that speaks as it does. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct python {
	pid_t pid;
	FILE *in, *out; /* owned */
};

struct python python_start(const char *const *argv);
struct python python_start_in_process(const char *path, const char *script); /* as workers are */
double python_time(const struct python *, const char *code); /* microseconds, as it says itself */
void python_stop(struct python *);

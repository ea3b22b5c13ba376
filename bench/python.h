/* bench/python.h - a python3 that nothing confines and that runs blocks: bench/in_process.py. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct python {
	pid_t pid;
	FILE *in, *out; /* owned */
};

struct python python_start(const char *path, const char *script);
double python_time(const struct python *, const char *code); /* microseconds, as it says itself */
void python_stop(struct python *);

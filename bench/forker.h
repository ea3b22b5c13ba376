/*
 * bench/forker.h - an interpreter with the template's things loaded that forks at each byte it
 * gets: bench/forker.py, the floor of a worker's start. Nothing confines it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct forker {
	pid_t pid;
	int in, out;
};

struct forker_config {
	const char *python, *script, *worker_dir; /* of the command line */
	const char *library; /* likewise; NULL: it is started, and forks nothing */
	bool in_bubblewrap;
};

/* `bwrap` is in PATH, and the kernel gives it the namespaces that it wants. */
bool forker_has_bubblewrap(void);

struct forker forker_start(const struct forker_config *); /* returns when it is loaded */
double forker_time(const struct forker *, char how); /* microseconds; `p` or `b`, see the script */
void forker_stop(struct forker *);

/*
 * sandbox/program.h - starts a program from a process of any size.
 *
 * Everything is computed before the vfork; between it and the exec there are
 * only system calls, and what fails there is told over a pipe that closes on exec.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define PROGRAM_FDS 8

struct program {
	const char *path;        /* lent: absolute */
	const char *const *argv; /* lent: NULL-terminated */
	const char *const *envp; /* lent: NULL-terminated */
	int fds[PROGRAM_FDS];    /* lent: what become descriptors 0, 1, ...; -1 ends the list */
};

/* The variables of these names, NULL-terminated, of our own environment, and no other: others may
 * be keys. New. */
const char **program_environment(const char *const *names);
void program_free_environment(const char **environment);

/*
 * Starts it in a session of its own, in "/", with default signals, no core files
 * and no other descriptors; it dies with the thread that called this. -1 where
 * it could not be started: RLMD_ERROR_USAGE with the path, if that is why.
 */
pid_t program_start(const struct program *, struct rlmd_error *);

/* A memory file for a program's standard error, and the end of what stands in it. */
int program_complaints(struct rlmd_error *);
void program_complaint(int complaints, char *out, size_t out_size);

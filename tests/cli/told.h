/*
 * tests/cli/told.h - what a test makes the program say on standard error.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct told {
	int before, file;
	char text[8192];
};

/* From here on standard error goes to a file. */
static inline void told_begin(struct told *told)
{
	fflush(stderr);
	told->before = dup(STDERR_FILENO);
	told->file = memfd_create("told", 0);
	if (told->before < 0 || told->file < 0 || dup2(told->file, STDERR_FILENO) < 0)
		abort();
}

/* Until now; returns what was written. */
static inline const char *told_end(struct told *told)
{
	ssize_t size;

	fflush(stderr);
	dup2(told->before, STDERR_FILENO);
	size = pread(told->file, told->text, sizeof told->text - 1, 0);
	told->text[size > 0 ? size : 0] = '\0';
	close(told->before);
	close(told->file);
	return told->text;
}

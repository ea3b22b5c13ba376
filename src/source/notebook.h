/*
 * source/notebook.h - leaves the outputs of cells out of a Jupyter notebook while it is read.
 *
 * As Jupyter writes it (nbformat 4), a member a line: of the lines of each "outputs" their blanks
 * stay, so that all other lines keep their numbers. Any other text is left as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Zeroed at the beginning of a file. */
struct notebook {
	size_t blanks;  /* at the beginning of the line at hand */
	size_t matched; /* characters behind them that are those of the member's beginning */
	bool begun;     /* there was something else than blanks in the line */
	bool inside;    /* of "outputs" ... */
	size_t indent;  /* ... whose line begins with so many blanks */
	bool dropped;   /* something was left out */
};

bool notebook_is_name(const char *path);

/* The next part of the file, in place; how many bytes are left of it. */
size_t notebook_filter(struct notebook *, char *bytes, size_t size);

/*
 * cli/progress.h - how far the work has come, in one line on standard error.
 *
 * On a terminal the line is rewritten in place several times a second, and cleared before anything
 * else is said (cli/tell.h). Where it is not, a source may tell a line of its own now and then. The
 * line consists of parts; where it is too long for the terminal the least wanted are shortened or
 * left out, and none is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct event_base;

enum {
	PROGRESS_LINE_MAX = 256, /* bytes, its end included; all of it is ASCII */
	PROGRESS_PART_MAX = 96,
	PROGRESS_PARTS_MAX = 8,
};

/* The parts of a line, from left to right. Zero when it is begun. */
struct progress_line {
	struct progress_part {
		char text[PROGRESS_PART_MAX], brief[PROGRESS_PART_MAX];
		int brief_at, gone_at;
	} parts[PROGRESS_PARTS_MAX];
	size_t count;
};

/* Shortening goes in steps, of which 0 takes nothing away. Adds a part that is gone from the step
 * `gone_at` on. */
void progress_add(struct progress_line *, int gone_at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A shorter form of the last part, which takes its place from the step `at` on. */
void progress_brief(struct progress_line *, int at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* At the first step at which it has at most so many columns; "" where nothing fits. */
void progress_format(const struct progress_line *, size_t width,
		     char out[static PROGRESS_LINE_MAX]);

/* --- the one line of the program ------------------------------------------------------ */

/* Before anything else: whether the line is rewritten, or not shown. */
void progress_setup(bool live, bool color);

/* Shows a line until the next one. */
void progress_show(const char *line);

/* How far loading is, as rlmd_context_options wants it. A signal ends it. */
bool progress_loading(void *owner, size_t bytes, size_t files);

struct progress_source {
	/* NULL: the work has nothing to show. */
	void (*describe)(const void *owner, struct progress_line *);
	/* Each second, where the line is not rewritten; NULL: nothing is told then. */
	void (*say)(void *owner);
	void *owner; /* lent */
};

/* Asks the source until progress_end(). */
void progress_start(struct event_base *, const struct progress_source *);

/* Clears the line until the next one. */
void progress_clear(void);

/* Clears the line, and ends what progress_start() began, if anything. */
void progress_end(void);

/*
 * bench/measure.h - what something costs beside a floor or a peer that is measured in turn with it,
 * and whether that meets the target of its row in docs/performance.md.
 *
 * This machine may change its speed from second to second, so that a figure by itself says little.
 * A benchmark takes samples of ours and of the floor in turn; the run is cut into up to nine parts,
 * each with a ratio of medians of its own. The row's ratio is the median of those, its spread what
 * holds it in 96 of 100 runs (the second least and the second largest of nine). Where the spread is
 * too wide or others use the machine, no figure is printed. The row has a verdict all the same
 * where the worst part of all, put wrong by twice and by as much as others are in line for each
 * core, would be on the same side of the target, and a bound with it ("holds: at least 60x"); else
 * it says that the machine is too noisy. Fewer than five samples are judged by nobody: they show
 * that the benchmark runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A benchmark's exit status. tools/bench names it; of several the largest counts. */
enum measure_status {
	MEASURE_HELD = 0,   /* what could be judged meets its target */
	MEASURE_FAILED = 1, /* the benchmark itself went wrong */
	MEASURE_MISSED = 2, /* a target is missed */
	MEASURE_NOISY = 3,  /* the machine is too noisy for a figure */
	/* A peer is not installed, or a limit of the system is in the way. For Meson: skipped. */
	MEASURE_MISSING = 77,
};

struct samples {
	const char *what; /* static */
	const char *unit; /* static; NULL: microseconds */
	double *values;   /* owned, in the order of time */
	size_t count, room;
};

double measure_now(void); /* microseconds on the monotonic clock */
double measure_cpu(void); /* microseconds of CPU that this process has used, kernel included */

void samples_add(struct samples *, double value);
double samples_median(const struct samples *);

/* A line for the samples and one for each floor, with the ratio to it. NULL ends the floors. */
void samples_print(const struct samples *, ...);
void samples_done(struct samples *);

/*
 * Each prints its samples, then a row of the table of docs/performance.md, whose `number` ("11s")
 * is its first column. The target is of the ratio, but measure_limit()'s, which is in the samples'
 * unit. Ours need not be as many as the others.
 */
void measure_at_most(const char *number, const struct samples *ours, const struct samples *floor,
		     double target); /* ours take at most `target` times as much as the floor */
void measure_at_least(const char *number, const struct samples *ours, const struct samples *peer,
		      double target); /* the peer takes at least `target` times as much as ours */
void measure_limit(const char *number, const struct samples *ours, double limit);

/* The row cannot be measured here: what is missing ("Node 20"), and how to get it. */
void measure_missing(const char *number, const char *what, const char *how);

/*
 * Raises the limit of descriptors to what the benchmark needs; false, and said as
 * measure_missing() does, where the hard limit is lower.
 */
bool measure_descriptors(const char *number, unsigned needed);

/* The return value of main(): the largest status of its rows. */
enum measure_status measure_end(void);

/* A positive number of samples from the command line. */
int measure_count(const char *argument);

/* Ends the program with MEASURE_FAILED: the benchmark cannot go on. */
void measure_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

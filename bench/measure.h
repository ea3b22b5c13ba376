/* bench/measure.h - samples of a duration, their median, and its ratio to a floor's. */
#pragma once

#include <stddef.h>

struct samples {
	const char *what; /* static */
	double *values;   /* owned: microseconds */
	size_t count, room;
};

double measure_now(void); /* microseconds on the monotonic clock */

void samples_add(struct samples *, double microseconds);
double samples_median(struct samples *); /* sorts them */

/* A line for the samples and one for each floor, with the ratio to it. NULL ends the floors. */
void samples_print(struct samples *, ...);
void samples_done(struct samples *);

/* A positive number of samples from the command line. */
int measure_count(const char *argument);

/* Ends the program: the benchmark cannot go on. */
void measure_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#include "bench/measure.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"

double measure_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void samples_add(struct samples *samples, double microseconds)
{
	if (samples->count == samples->room) {
		samples->room = samples->room ? samples->room * 2 : 256;
		samples->values = xreallocarray(samples->values, samples->room,
						sizeof *samples->values);
	}
	samples->values[samples->count++] = microseconds;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

double samples_median(struct samples *samples)
{
	assert(samples->count);
	qsort(samples->values, samples->count, sizeof *samples->values, compare);
	return samples->values[samples->count / 2];
}

static void print_line(struct samples *samples)
{
	double median = samples_median(samples);
	size_t p95 = samples->count * 95 / 100;

	printf("  %-52s %9.1f us  (%.1f-%.1f, n=%zu)", samples->what, median, samples->values[0],
	       samples->values[p95], samples->count);
}

void samples_print(struct samples *samples, ...)
{
	struct samples *floor;
	va_list floors;

	print_line(samples);
	printf("\n");
	va_start(floors, samples);
	while ((floor = va_arg(floors, struct samples *))) {
		print_line(floor);
		printf("  ratio %.2f\n", samples_median(samples) / samples_median(floor));
	}
	va_end(floors);
}

void samples_done(struct samples *samples)
{
	free(samples->values);
}

int measure_count(const char *argument)
{
	char *end;
	long count = strtol(argument, &end, 10);

	if (*end || count < 1 || count > 1000000)
		measure_fail("%s is no number of samples", argument);
	return (int)count;
}

void measure_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

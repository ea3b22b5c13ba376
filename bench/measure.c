#include "bench/measure.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
	PARTS = 9, /* of a run */
	PARTS_LEAST = 5,
	WATCHED_MS = 200, /* how long others are watched, while nothing of ours runs */
};

/* A spread may be so wide, upper end over lower, and others may use so much of one core. */
#define SPREAD_MOST 1.25
#define OTHERS_MOST 0.2

/* The factor by which a machine's own changes of speed may distort a part of a run; 1.7 was seen.
 */
#define CHANGES_MOST 2.0

static enum measure_status worst = MEASURE_HELD;

double measure_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

double measure_cpu(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

void samples_add(struct samples *samples, double value)
{
	if (samples->count == samples->room) {
		samples->room = samples->room ? samples->room * 2 : 256;
		samples->values = xreallocarray(samples->values, samples->room,
						sizeof *samples->values);
	}
	samples->values[samples->count++] = value;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* In ascending order; new. */
static double *sorted(const double *values, size_t count)
{
	double *copy = xreallocarray(NULL, count, sizeof *copy);

	assert(count);
	memcpy(copy, values, count * sizeof *copy);
	qsort(copy, count, sizeof *copy, compare);
	return copy;
}

static double median(const double *values, size_t count)
{
	double *copy = sorted(values, count), middle = copy[count / 2];

	free(copy);
	return middle;
}

double samples_median(const struct samples *samples)
{
	return median(samples->values, samples->count);
}

static const char *unit(const struct samples *samples)
{
	return samples->unit ? samples->unit : "us";
}

static void print_line(const struct samples *samples)
{
	double *values = sorted(samples->values, samples->count);

	printf("  %-52s %9.1f %s  (%.1f-%.1f, n=%zu)", samples->what, values[samples->count / 2],
	       unit(samples), values[0], values[samples->count * 95 / 100], samples->count);
	free(values);
}

void samples_print(const struct samples *samples, ...)
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

/* A ratio, or the median itself where there is nothing beside it. */
struct figure {
	double middle, least, most; /* the last two: its spread */
	double lowest, highest;     /* of all parts */
	size_t parts;
};

/* The median of one of so many parts of a run. */
static double part_median(const struct samples *samples, size_t part, size_t parts)
{
	size_t first = samples->count * part / parts, end = samples->count * (part + 1) / parts;

	return median(samples->values + first, end - first);
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

static struct figure figure_of(const struct samples *above, const struct samples *below)
{
	size_t parts = least_of(PARTS, least_of(above->count, below ? below->count : PARTS));
	double ratios[PARTS], *in_order;
	struct figure figure = {.parts = parts};

	for (size_t i = 0; i < parts; i++)
		ratios[i] = part_median(above, i, parts) /
			    (below ? part_median(below, i, parts) : 1);
	in_order = sorted(ratios, parts);
	figure.middle = in_order[parts / 2];
	figure.least = in_order[parts == PARTS];
	figure.most = in_order[parts - 1 - (parts == PARTS)];
	figure.lowest = in_order[0];
	figure.highest = in_order[parts - 1];
	free(in_order);
	return figure;
}

/* The time that all processes together have used of all cores, in seconds; the host's share too. */
static double busy_seconds(void)
{
	unsigned long long user, nice, system, idle, waiting, irq, softirq, stolen;
	FILE *file = fopen("/proc/stat", "re");
	int fields = 0;

	if (file) {
		fields = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
				&system, &idle, &waiting, &irq, &softirq, &stolen);
		fclose(file);
	}
	if (fields != 8) /* then the spread alone decides */
		return 0;
	return (double)(user + nice + system + irq + softirq + stolen) / sysconf(_SC_CLK_TCK);
}

/* Of one core, while nothing of ours runs: 1.5 is one and a half. Looked at once. */
static double used_by_others(void)
{
	static const struct timespec pause = {.tv_nsec = WATCHED_MS * 1000000L};
	static double used = -1;

	if (used < 0) {
		double before = busy_seconds();

		nanosleep(&pause, NULL);
		used = (busy_seconds() - before) / (WATCHED_MS / 1e3);
	}
	return used;
}

static void note(enum measure_status status)
{
	if (status > worst)
		worst = status;
}

/* Whether no figure can be given; why is said. */
static bool too_noisy(const char *number, const struct figure *figure)
{
	double others = used_by_others(), spread = figure->most / figure->least;

	if (others <= OTHERS_MOST && spread <= SPREAD_MOST)
		return false;
	if (getenv("BENCH_ANYWAY"))
		return true;
	fprintf(stderr,
		"bench: row %s: the machine is too noisy for a figure: others use %.0f %% of a "
		"core, and the parts of this run differ by %.0f %%. Let nothing else run, or take "
		"figures that mean little with `tools/bench --anyway`.\n",
		number, others * 100, (spread - 1) * 100);
	return true;
}

/* A target is an upper limit or a lower one. */
enum bound { AT_MOST, AT_LEAST };

static const char *verdict_of(const struct figure *figure, enum bound bound, double target)
{
	if (bound == AT_MOST ? figure->most <= target : figure->least >= target)
		return "holds";
	if (bound == AT_MOST ? figure->least <= target : figure->most >= target)
		return "undecided: the target is within the spread";
	note(MEASURE_MISSED);
	return "missed";
}

/*
 * By how much noise may have put a part of a run wrong, at most: where ours had all of it and the
 * floor nothing. A long sample waits for all that are in line for its core, and a short one perhaps
 * for nobody. The load of the last minute says how many these are, ourselves among them.
 */
static double noise_most(void)
{
	const char *given = getenv("BENCH_NOISE"); /* for tests */
	double load = 0, queue;

	if (given)
		return strtod(given, NULL);
	if (getloadavg(&load, 1) != 1)
		load = 0;
	queue = load / (double)sysconf(_SC_NPROCESSORS_ONLN);
	return CHANGES_MOST * (queue > 1 ? queue : 1);
}

/*
 * A verdict without a figure: on which side of its target each part of the run is, however wrong
 * noise has put it. Nothing where one might be on the other.
 */
static bool print_bound(const struct figure *figure, enum bound bound, double target,
			const char *unit) /* NULL: of a ratio */
{
	double highest = figure->highest * noise_most(), lowest = figure->lowest / noise_most();
	bool below = highest <= target, above = lowest >= target;
	bool holds = bound == AT_MOST ? below : above;

	if (!below && !above)
		return false;
	printf("%s: at %s %.3g%s%s, on a noisy machine |\n", holds ? "holds" : "missed",
	       below ? "most" : "least", below ? highest : lowest, unit ? " " : "x",
	       unit ? unit : "");
	if (!holds)
		note(MEASURE_MISSED);
	return true;
}

static void print_median(const struct samples *samples)
{
	double value = samples_median(samples);

	printf(": %.*f %s", value < 10 ? 2 : value < 1000 ? 1 : 0, value, unit(samples));
}

static void print_row(const char *number, const struct samples *ours, const struct samples *beside,
		      const struct figure *figure, enum bound bound, double target)
{
	const char *times = beside ? "x" : "", *word = bound == AT_MOST ? "<=" : ">=";
	bool noisy = figure->parts >= PARTS_LEAST && too_noisy(number, figure);

	printf("| %s | %s", number, ours->what);
	if (noisy && !getenv("BENCH_ANYWAY")) {
		printf(" | %s | | | %s %g%s | ", beside ? beside->what : "", word, target, times);
		if (!print_bound(figure, bound, target, beside ? NULL : unit(ours))) {
			note(MEASURE_NOISY);
			printf("not measured: too noisy |\n");
		}
		return;
	}
	print_median(ours);
	printf(" | ");
	if (beside) {
		printf("%s", beside->what);
		print_median(beside);
	}
	printf(" | %.3g%s | %.3g-%.3g | %s %g%s | ", figure->middle, times, figure->least,
	       figure->most, word, target, times);
	if (figure->parts < PARTS_LEAST)
		printf("not judged: too few samples |\n");
	else
		printf("%s%s |\n", verdict_of(figure, bound, target), noisy ? " (noisy)" : "");
}

void measure_at_most(const char *number, const struct samples *ours, const struct samples *floor,
		     double target)
{
	struct figure figure = figure_of(ours, floor);

	samples_print(ours, NULL);
	samples_print(floor, NULL);
	print_row(number, ours, floor, &figure, AT_MOST, target);
}

void measure_at_least(const char *number, const struct samples *ours, const struct samples *peer,
		      double target)
{
	struct figure figure = figure_of(peer, ours);

	samples_print(ours, NULL);
	samples_print(peer, NULL);
	print_row(number, ours, peer, &figure, AT_LEAST, target);
}

void measure_limit(const char *number, const struct samples *ours, double limit)
{
	struct figure figure = figure_of(ours, NULL);

	samples_print(ours, NULL);
	print_row(number, ours, NULL, &figure, AT_MOST, limit);
}

void measure_missing(const char *number, const char *what, const char *how)
{
	note(MEASURE_MISSING);
	fprintf(stderr, "bench: row %s is not measured, for want of %s: %s\n", number, what, how);
	printf("| %s | | %s | | | | not measured: it is missing |\n", number, what);
}

bool measure_descriptors(const char *number, unsigned needed)
{
	struct rlimit limit;
	char *what, *how;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < needed) {
		limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= needed)
		return true;
	what = xasprintf("%u descriptors (the limit is %ju)", needed, (uintmax_t)limit.rlim_max);
	how = xasprintf("raise it, as root, with `ulimit -Hn %u`", needed);
	measure_missing(number, what, how);
	free(what);
	free(how);
	return false;
}

enum measure_status measure_end(void)
{
	return worst;
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
	exit(MEASURE_FAILED);
}

/*
 * The judge of bench/measure.h for benchmarks in Python (bench/measure.py):
 *
 *   verdict at-most|at-least|limit ROW TARGET UNIT OURS [FLOOR]
 *   verdict descriptors ROW NEEDED
 *
 * Standard input has a sample a line, in the order of time: `o 12.5` is one of ours, `f 9` one of
 * the floor or the peer. The second form says whether so many descriptors may be had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"

static void read_samples(struct samples *ours, struct samples *floor)
{
	char line[100], whose;
	double value;

	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "%c %lf", &whose, &value) != 2 || !strchr("of", whose))
			measure_fail("no sample: %s", line);
		samples_add(whose == 'o' ? ours : floor, value);
	}
	if (!ours->count)
		measure_fail("there are no samples");
}

int main(int argc, char **argv)
{
	struct samples ours = {0}, floor = {0};
	char *end = NULL;
	double target = 0;
	bool alone = argc == 6;

	if (argc == 4 && !strcmp(argv[1], "descriptors")) {
		measure_descriptors(argv[2], (unsigned)measure_count(argv[3]));
		return measure_end();
	}
	if (argc == 6 || argc == 7)
		target = strtod(argv[3], &end);
	if (!end || *end || target <= 0 || alone != !strcmp(argv[1], "limit"))
		measure_fail("usage: verdict at-most|at-least|limit ROW TARGET UNIT OURS [FLOOR]");
	ours = (struct samples){.what = argv[5], .unit = argv[4]};
	floor = (struct samples){.what = argv[alone ? 5 : 6], .unit = argv[4]};
	read_samples(&ours, &floor);
	if (!alone && !floor.count)
		measure_fail("there are no samples of %s", floor.what);
	if (alone)
		measure_limit(argv[2], &ours, target);
	else if (!strcmp(argv[1], "at-most"))
		measure_at_most(argv[2], &ours, &floor, target);
	else
		measure_at_least(argv[2], &ours, &floor, target);
	samples_done(&ours);
	samples_done(&floor);
	return measure_end();
}

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST_MS 1e15 /* beyond any limit, and far from an overflow */

static int64_t read_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

struct timeval clock_timeval(int64_t ms)
{
	if (ms < 0)
		ms = 0;
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

bool clock_parse_duration(const char *string, int64_t *ret_ms, struct rlmd_error *err)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
		     {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	char *end;
	double value = strtod(string, &end);

	if (end != string && strspn(string, "0123456789.") == (size_t)(end - string))
		for (size_t i = 0; i < sizeof units / sizeof *units; i++)
			if (!strcmp(end, units[i].unit)) {
				*ret_ms = llround(fmin(value * units[i].ms, LONGEST_MS));
				return true;
			}
	return error_set(err, RLMD_ERROR_USAGE,
			 "'%s' is no duration; write 90, 90s, 5m, 7d or 250ms", string);
}

void clock_format(int64_t ms, char out[static 16])
{
	if (ms < 1000)
		snprintf(out, 16, "%" PRId64 "ms", ms < 0 ? 0 : ms);
	else if (ms < 10000)
		snprintf(out, 16, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms / 100 % 10);
	else if (ms < 60000)
		snprintf(out, 16, "%" PRId64 "s", ms / 1000);
	else
		snprintf(out, 16, "%" PRId64 "m%02" PRId64 "s", ms / 60000 % 100000,
			 ms / 1000 % 60);
}

void clock_format_date(int64_t wall_ms, char out[static CLOCK_DATE_SIZE])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm parts;
	size_t size;

	gmtime_r(&seconds, &parts);
	size = strftime(out, CLOCK_DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out + size, CLOCK_DATE_SIZE - size, ".%03dZ", (int)(wall_ms % 1000));
}

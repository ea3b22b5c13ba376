#include "llm/backoff.h"

#include <curl/curl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	BACKOFF_MAX = 30000, /* ms */
	DOUBLINGS = 6,       /* of the first wait, until that */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Reads "1.5" at the start and goes on to what follows it; no signs, no exponents. */
static bool read_decimal(const char **string, double *ret)
{
	size_t size = strspn(*string, "0123456789.");
	char *end;

	*ret = strtod(*string, &end);
	if (!size || end != *string + size)
		return false;
	*string = end;
	return true;
}

/* Seconds, or a Go duration as in x-ratelimit-reset-tokens: "6m0s", "20ms". In ms. */
static bool read_duration(const char *string, double *ret)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ms", 1}, {"us", 1e-3}, {"ns", 1e-6}, {"h", 3600e3}, {"m", 60e3}, {"s", 1e3}};
	double sum = 0, part;

	if (strspn(string, "0123456789.") == strlen(string)) {
		if (!read_decimal(&string, &part))
			return false;
		*ret = part * 1000;
		return true;
	}
	do {
		size_t i = 0;

		if (!read_decimal(&string, &part))
			return false;
		while (i < COUNT(units) && strncmp(string, units[i].unit, strlen(units[i].unit)))
			i++;
		if (i == COUNT(units))
			return false;
		sum += part * units[i].ms;
		string += strlen(units[i].unit);
	} while (*string);
	*ret = sum;
	return true;
}

static bool read_date(const char *string, int64_t wall_ms, double *ret)
{
	time_t date = curl_getdate(string, NULL);

	if (date < 0)
		return false;
	*ret = (double)date * 1000 - (double)wall_ms;
	return true;
}

int64_t backoff_delay(int attempt, const char *retry_after_ms, const char *retry_after,
		      int64_t wall_ms, double jitter)
{
	double delay = 0;
	bool told = false;

	if (retry_after_ms)
		told = read_decimal(&retry_after_ms, &delay) && !*retry_after_ms;
	if (!told && retry_after)
		told = read_duration(retry_after, &delay) ||
		       read_date(retry_after, wall_ms, &delay);
	if (told && delay > 0)
		return (int64_t)ceil(fmin(delay, (double)BACKOFF_TOLD_MAX));
	delay = attempt <= DOUBLINGS ? 500.0 * (1 << (attempt > 1 ? attempt - 1 : 0)) : BACKOFF_MAX;
	delay = delay < BACKOFF_MAX ? delay : BACKOFF_MAX;
	return (int64_t)(delay * (1 - 0.25 * jitter));
}

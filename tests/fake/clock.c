#include "fake/clock.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

static int speed = 1;
static int64_t asked;

void fake_clock_speed(int times)
{
	speed = times;
}

int64_t fake_clock_asked(void)
{
	return asked;
}

int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000) * speed;
}

int64_t clock_ms(void)
{
	return clock_us() / 1000;
}

struct timeval clock_timeval(int64_t ms)
{
	int64_t us = ms < 0 ? 0 : ms * 1000 / speed;

	asked = ms;
	return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

void clock_format(int64_t ms, char out[static 16])
{
	snprintf(out, 16, "%d ms", (int)ms);
}

/*
 * A wall clock that leaps a year to and fro each time it is read; for LD_PRELOAD.
 *
 * Other clocks are as they are.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* They stand before the C library's, whatever is hidden elsewhere in the project. */
#pragma GCC visibility push(default)

enum { YEAR = 365 * 86400 };

static time_t leap(void)
{
	static atomic_uint count;

	return atomic_fetch_add(&count, 1) % 2 ? YEAR : -YEAR;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long failed = syscall(SYS_clock_gettime, clock, now);

	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += leap();
	return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec time;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &time);
	*now = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

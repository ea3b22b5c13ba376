#include "base/wait.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"

static const struct wait_interruptions *heeded; /* lent, or NULL */

void wait_heed(const struct wait_interruptions *interruptions)
{
	heeded = interruptions;
}

int wait_interrupted(void)
{
	return heeded ? heeded->count() : 0;
}

/* With `open` as the signals that are blocked meanwhile; NULL: as they are. */
static int wait_once(struct pollfd *wanted, int64_t deadline, const sigset_t *open)
{
	int64_t left = deadline - clock_ms();
	struct timespec time;

	if (deadline == WAIT_FOREVER)
		return ppoll(wanted, 1, NULL, open);
	if (left < 0)
		left = 0;
	time = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
	return ppoll(wanted, 1, &time, open);
}

enum wait_end wait_for(int fd, short events, int64_t deadline, int known)
{
	struct pollfd wanted = {.fd = fd, .events = events};
	enum wait_end end = WAIT_INTERRUPTED;
	sigset_t open;

	if (heeded)
		sigprocmask(SIG_BLOCK, &heeded->signals, &open);
	while (wait_interrupted() <= known) {
		int ready = wait_once(&wanted, deadline, heeded ? &open : NULL);

		if (ready < 0 && errno == EINTR)
			continue;
		end = ready < 0 ? WAIT_FAILED : ready ? WAIT_READY : WAIT_LATE;
		break;
	}
	if (heeded)
		sigprocmask(SIG_SETMASK, &open, NULL);
	return end;
}

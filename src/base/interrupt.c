#include "base/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static volatile sig_atomic_t count, first;
static int notice = -1;

/* All of them are blocked meanwhile, so it is never in its own way. */
static void on_signal(int number)
{
	const uint64_t one = 1;
	int before = errno;

	if (!first)
		first = number == SIGHUP ? SIGTERM : number;
	count++;
	(void)!write(notice, &one, sizeof one);
	errno = before;
}

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < NUMBERS; i++)
		sigaddset(set, numbers[i]);
}

/* A call of ours that blocks is to come back: no SA_RESTART. */
void interrupt_install(void)
{
	struct sigaction action = {.sa_handler = on_signal}, now;

	notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fill_set(&action.sa_mask);
	for (size_t i = 0; i < NUMBERS; i++)
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

int interrupt_count(void)
{
	return count;
}

int interrupt_signal(void)
{
	return first;
}

int interrupt_fd(void)
{
	return notice;
}

void interrupt_clear(void)
{
	uint64_t number;

	(void)!read(notice, &number, sizeof number);
}

/* With signals let in for the time of the wait only, so that none comes just before it. */
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

enum wait_end interrupt_wait(int fd, short events, int64_t deadline, int known)
{
	struct pollfd wanted = {.fd = fd, .events = events};
	enum wait_end end = WAIT_INTERRUPTED;
	sigset_t ours, open;

	fill_set(&ours);
	sigprocmask(SIG_BLOCK, &ours, &open);
	while (count <= known) {
		int ready = wait_once(&wanted, deadline, &open);

		if (ready < 0 && errno == EINTR)
			continue;
		end = ready < 0 ? WAIT_FAILED : ready ? WAIT_READY : WAIT_LATE;
		break;
	}
	sigprocmask(SIG_SETMASK, &open, NULL);
	return end;
}

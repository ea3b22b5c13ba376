#include "cli/interrupt.h"

#include <errno.h>
#include <rlmd/rlmd.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/wait.h"

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, 0};

enum { NUMBERS = sizeof numbers / sizeof *numbers - 1 };

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

/* A call of ours that blocks is to come back: no SA_RESTART. */
void interrupt_install(void)
{
	static struct wait_interruptions interruptions = {.count = interrupt_count};
	struct sigaction action = {.sa_handler = on_signal}, now;

	notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NUMBERS; i++)
		sigaddset(&action.sa_mask, numbers[i]);
	interruptions.signals = action.sa_mask;
	wait_heed(&interruptions);
	rlmd_heed_signals(interrupt_count, numbers); /* the library has waits of its own */
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

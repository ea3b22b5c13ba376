/* cli/interrupt: signals that are counted and wake whoever waits. */
#include "cli/interrupt.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/wait.h"
#include "child.h"

/* In a child, for what it has counted cannot be taken back. Each step that fails has its number. */
static int in_child(int reader)
{
	signal(SIGHUP, SIG_IGN);
	interrupt_install();
	raise(SIGHUP); /* ignored by whoever started us, and still so */
	if (interrupt_count() || interrupt_signal())
		return 1;
	raise(SIGTERM);
	if (interrupt_count() != 1 || interrupt_signal() != SIGTERM)
		return 2;
	if (wait_for(reader, POLLIN, WAIT_FOREVER, 0) != WAIT_INTERRUPTED)
		return 3;
	if (wait_for(reader, POLLIN, clock_ms() + 10, 1) != WAIT_LATE)
		return 4;
	if (wait_for(interrupt_fd(), POLLIN, 0, 1) != WAIT_READY)
		return 5;
	interrupt_clear();
	if (wait_for(interrupt_fd(), POLLIN, 0, 1) != WAIT_LATE)
		return 6;
	kill(getppid(), SIGUSR1); /* now another comes, while we wait for ever */
	if (wait_for(reader, POLLIN, WAIT_FOREVER, 1) != WAIT_INTERRUPTED)
		return 7;
	return interrupt_count() == 2 && interrupt_signal() == SIGTERM ? 0 : 8;
}

static void test_signals(void **state)
{
	sigset_t ready, before;
	const struct timespec soon = {.tv_nsec = 100000000};
	int ends[2], status;
	pid_t child;

	(void)state;
	sigemptyset(&ready);
	sigaddset(&ready, SIGUSR1);
	sigprocmask(SIG_BLOCK, &ready, &before);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		child_exit(in_child(ends[0]));
	while (sigtimedwait(&ready, NULL, &soon) < 0 && waitpid(child, &status, WNOHANG) == 0)
		;
	kill(child, SIGINT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* base/glibc, which is part of a portable build alone: each does what glibc's of that name does. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_processes(void **state)
{
	pid_t child = fork();
	int pidfd, status;
	struct pollfd ended = {.events = POLLIN};

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where an assertion fails */
		pause();
		_exit(1);
	}
	pidfd = ended.fd = pidfd_open(child, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), 0);
	assert_int_equal(poll(&ended, 1, -1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), -1);
	assert_int_equal(errno, ESRCH);
	close(pidfd);
	assert_int_equal(pidfd_open(0, 0), -1);
	assert_int_equal(errno, EINVAL);
}

/* More than getrandom(2) gives at once to one whom a signal may interrupt; each byte is written. */
static void test_random_bytes(void **state)
{
	enum { SIZE = 1000, TIMES = 64 };
	unsigned char bytes[SIZE], seen[SIZE] = {0};

	(void)state;
	for (int i = 0; i < TIMES; i++) {
		memset(bytes, 0, sizeof bytes);
		arc4random_buf(bytes, sizeof bytes);
		for (size_t k = 0; k < sizeof bytes; k++)
			seen[k] |= bytes[k];
	}
	assert_null(memchr(seen, 0, sizeof seen));
	assert_true(arc4random() != arc4random() || arc4random() != arc4random());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests_name("glibc", tests, NULL, NULL);
}

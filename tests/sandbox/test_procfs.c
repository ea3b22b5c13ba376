/* The use of a process, out of the files of the kernel about it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/procfs.h"

static void lines_are_found(void **state)
{
	static const struct {
		const char *content;
		int64_t memory, threads;
	} cases[] = {
		{"Name:\tx\nRssAnon:\t     100 kB\nVmSwap:\t       0 kB\nThreads:\t7\n", 102400, 7},
		{"Name:\tx\nRssAnon:\t     100 kB\nVmSwap:\t      50 kB\nThreads:\t1\n", 153600, 1},
		{"Name:\tx\nState:\tZ (zombie)\nThreads:\t2\n", 0, 2},
		{"Name:\tRssAnon:\t9\nThreads:\t1\n", 0, 1},
		{"", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct procfs_status status_of = procfs_parse(cases[i].content);

		assert_int_equal(status_of.memory, cases[i].memory);
		assert_int_equal(status_of.threads, cases[i].threads);
	}
}

/* Of a process as it grows, and after its end, by one descriptor. */
static void a_descriptor_tells_more_than_once(void **state)
{
	enum { SIZE = 64 << 20 };
	int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	struct procfs_status before, after;
	char *place;

	(void)state;
	assert_true(procfs_read(status, &before));
	place = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(place, MAP_FAILED);
	memset(place, 1, SIZE);
	assert_true(procfs_read(status, &after));
	assert_true(after.memory - before.memory >= SIZE / 2 && after.threads == 1);
	munmap(place, SIZE);
	close(status);
	assert_false(procfs_read(-1, &after));
}

static void nothing_is_told_of_the_dead(void **state)
{
	char path[64];
	struct procfs_status status_of;
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/%d/status", child);
	status = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(procfs_read(status, &status_of) && status_of.memory > 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(procfs_read(status, &status_of));
	assert_int_equal(errno, ESRCH);
	close(status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_found),
		cmocka_unit_test(a_descriptor_tells_more_than_once),
		cmocka_unit_test(nothing_is_told_of_the_dead),
	};

	return cmocka_run_group_tests_name("procfs", tests, NULL, NULL);
}

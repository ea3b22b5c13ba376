/* The powers of the program that lists files behind its seal: what a stranger's object could make
 * it do, tried from inside. */
#include "lister/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static char place[] = "/tmp/rlmd-test-XXXXXX";

/* Each is true where the attempt is refused. */
static bool no_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 && socket(AF_UNIX, SOCK_STREAM, 0) < 0;
}

static bool no_pair(void)
{
	int ends[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0;
}

static bool no_writing(void)
{
	auto_free char *path = xasprintf("%s/file", place), *other = xasprintf("%s/new", place);

	return open(path, O_WRONLY) < 0 && open(path, O_RDWR) < 0 &&
	       open(path, O_RDONLY | O_TRUNC) < 0 && open(other, O_RDONLY | O_CREAT, 0600) < 0 &&
	       unlink(path) < 0 && rename(path, other) < 0 && mkdir(other, 0700) < 0 &&
	       chmod(path, 0777) < 0 && truncate(path, 0) < 0 && link(path, other) < 0 &&
	       symlink(path, other) < 0;
}

static bool no_process(void)
{
	char name[] = "true";
	char *const arguments[] = {name, NULL};

	return fork() < 0 && execv("/bin/true", arguments) < 0;
}

static bool no_others(void)
{
	char byte = 0;
	struct iovec part = {&byte, 1};

	return kill(getppid(), 0) < 0 && syscall(SYS_ptrace, 16, getppid(), NULL, NULL) < 0 &&
	       syscall(SYS_process_vm_readv, getppid(), &part, 1, &part, 1, 0) < 0 &&
	       syscall(SYS_pidfd_open, getppid(), 0) < 0;
}

static bool no_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED;
}

static bool no_memory_without_end(void)
{
	return mmap(NULL, SEAL_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) == MAP_FAILED;
}

/* Where the kernel has Landlock. */
static bool no_other_file(void)
{
	return open("/etc/passwd", O_RDONLY) < 0 && open("/", O_RDONLY | O_DIRECTORY) < 0;
}

static bool reads_its_own(void)
{
	auto_free char *path = xasprintf("%s/file", place);
	auto_close int file = open(path, O_RDONLY), directory = open(place, O_RDONLY | O_DIRECTORY);
	char byte;

	return read(file, &byte, 1) == 1 && directory >= 0;
}

/* In a child, which is sealed; its report is whether the seal stands and `try` was true. */
static int in_a_child(bool (*attempt)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		const char *const roots[] = {NULL, place};
		struct rlmd_error err;

		_exit(!seal(roots, 2, &err) ? 2 : attempt() ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static void test_it_reads_what_it_is_given(void **state)
{
	(void)state;
	assert_int_equal(in_a_child(reads_its_own), 0);
}

static void test_no_other_file(void **state)
{
	(void)state;
	if (!has_landlock()) {
		print_message("# skipped: this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(in_a_child(no_other_file), 0);
}

static void test_nothing_else(void **state)
{
	static bool (*const attempts[])(void) = {
		no_socket,
		no_pair,
		no_writing,
		no_process,
		no_others,
		no_code,
		no_memory_without_end,
	};

	(void)state;
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		assert_int_equal(in_a_child(attempts[i]), 0);
}

static void spin(void)
{
	seal_allow_seconds(1);
	for (volatile unsigned i = 0;; i++)
		;
}

/* By the processor's time: how busy the machine is makes no difference to it. */
static void test_its_time_ends(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		spin();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
}

static int begin(void **state)
{
	auto_free char *path = NULL;
	auto_close int fd = -1;

	(void)state;
	if (!mkdtemp(place))
		return -1;
	path = xasprintf("%s/file", place);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	return write(fd, "x", 1) == 1 ? 0 : -1;
}

static int end(void **state)
{
	auto_free char *path = xasprintf("%s/file", place);

	(void)state;
	return unlink(path) || rmdir(place) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(RLMD_COUNTED)
		cmocka_unit_test(test_it_reads_what_it_is_given),
		cmocka_unit_test(test_no_other_file),
#if !defined(RLMD_SANITIZED) /* which ask for more calls themselves: there is no filter */
		cmocka_unit_test(test_nothing_else),
#endif
#endif
		cmocka_unit_test(test_its_time_ends),
	};

	alloc_install();
#if defined(RLMD_COUNTED) || defined(RLMD_SANITIZED)
	(void)test_nothing_else;
#endif
#if defined(RLMD_COUNTED)
	(void)test_it_reads_what_it_is_given;
	(void)test_no_other_file;
#endif
	return cmocka_run_group_tests(tests, begin, end);
}

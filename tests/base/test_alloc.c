/* base/alloc: memory that is there, and the end of a program that has none. */
#include "base/alloc.h"

#include <event2/buffer.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void test_copies(void **state)
{
	auto_free char *same = xstrdup("abc"), *part = xstrndup("a\0bcd", 4);
	auto_free char *none = xstrndup(NULL, 0), *printed = xasprintf("%d-%s", 7, "x");

	(void)state;
	assert_string_equal(same, "abc");
	assert_memory_equal(part, "a\0bc", 5);
	assert_string_equal(none, "");
	assert_string_equal(printed, "7-x");
	assert_null(xstrdup(NULL));
}

/* Of nothing too, so that NULL always means something else. */
static void test_sizes(void **state)
{
	unsigned char *zero = xcalloc(3, 5);
	void *empty = xcalloc(0, 8), *grown;

	(void)state;
	for (size_t i = 0; i < 15; i++)
		assert_int_equal(zero[i], 0);
	assert_non_null(empty);
	memset(zero, 7, 15);
	grown = xreallocarray(zero, 100, 5);
	assert_int_equal(((unsigned char *)grown)[14], 7);
	grown = xreallocarray(grown, 0, 5);
	assert_non_null(grown);
	free(grown);
	free(empty);
}

enum { BY_US, BY_OVERFLOW, BY_A_LIBRARY, BY_LIBEVENT, BY_JANSSON };

/* AddressSanitizer ends a program that asks for too much, unless it is told to do as malloc(3). */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* More than any machine has. */
static const size_t huge = SIZE_MAX / 4;

static void ask(int way)
{
	static char text[64];
	struct evbuffer *buffer;

	switch (way) {
	case BY_US:
		free(xcalloc(huge, 1));
		break;
	case BY_OVERFLOW:
		free(xreallocarray(NULL, huge, 8));
		break;
	case BY_A_LIBRARY:
		xpresent(NULL);
		break;
	case BY_LIBEVENT:
		buffer = evbuffer_new();
		evbuffer_expand(buffer, huge);
		break;
	case BY_JANSSON:
		json_stringn_nocheck(text, huge);
		break;
	}
}

/* The program says so, and aborts, whichever function found no memory. */
static void test_exhaustion(void **state)
{
	(void)state;
	for (int way = BY_US; way <= BY_JANSSON; way++) {
		char said[4096] = ""; /* a sanitizer warns, too */
		size_t size = 0;
		int fds[2], status;
		pid_t child;

		assert_int_equal(pipe(fds), 0);
		child = fork();
		if (!child) {
			setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
			signal(SIGABRT, SIG_DFL);
			dup2(fds[1], STDERR_FILENO);
			alloc_install();
			ask(way);
			_exit(0);
		}
		close(fds[1]);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGABRT);
		for (ssize_t got; (got = read(fds[0], said + size, sizeof said - 1 - size)) > 0;)
			size += (size_t)got;
		assert_non_null(strstr(said, "rlmd: out of memory\n"));
		close(fds[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_exhaustion),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}

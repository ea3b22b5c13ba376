/* Buffers that find no memory end the process, and say why; with memory they are libevent's. */
#include "base/buffer.h"

#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/text.h"
#include "child.h"

static const char bytes[9000];
static bool exhausted;

static void *limited_malloc(size_t size)
{
	return exhausted ? NULL : malloc(size);
}

static void *limited_realloc(void *memory, size_t size)
{
	return exhausted ? NULL : realloc(memory, size);
}

static void make(struct evbuffer *buffer)
{
	(void)buffer;
	buffer_new();
}

static void add(struct evbuffer *buffer)
{
	buffer_add(buffer, bytes, sizeof bytes);
}

static void print(struct evbuffer *buffer)
{
	buffer_add_printf(buffer, "%9000d", 1);
}

static void lend(struct evbuffer *buffer)
{
	buffer_add_reference(buffer, bytes, sizeof bytes, NULL, NULL);
}

static void reserve(struct evbuffer *buffer)
{
	buffer_reserve(buffer, sizeof bytes);
}

static void pull_up(struct evbuffer *buffer)
{
	buffer_pullup(buffer, -1);
}

/* In a child, on a buffer of two pieces with a line in it; the child's last words into `said`,
 * and the signal that ended it. */
static int starve(void (*step)(struct evbuffer *), char *said, size_t room)
{
	int ends[2], status;
	ssize_t size;
	pid_t child;

	assert_int_equal(0, pipe(ends));
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct evbuffer *buffer = buffer_new();

		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		dup2(ends[1], STDERR_FILENO);
		buffer_add_printf(buffer, "a line\r\n");
		buffer_add_reference(buffer, bytes, sizeof bytes, NULL, NULL);
		exhausted = true;
		step(buffer);
		child_exit(0);
	}
	close(ends[1]);
	*said = '\0';
	while ((size = read(ends[0], said, room - 1)) > 0) /* libevent may say something first */
		said[size] = '\0';
	close(ends[0]);
	assert_int_equal(child, waitpid(child, &status, 0));
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_no_memory(void **state)
{
	static const struct {
		const char *name;
		void (*step)(struct evbuffer *);
	} steps[] = {
		{"buffer_new", make},         {"buffer_add", add},
		{"buffer_add_printf", print}, {"buffer_add_reference", lend},
		{"buffer_reserve", reserve},  {"buffer_pullup", pull_up},
	};

	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		char said[100];
		int signal = starve(steps[i].step, said, sizeof said);

		if (signal != SIGABRT || !strstr(said, "rlmd: out of memory\n"))
			fail_msg("%s: signal %d, \"%s\"", steps[i].name, signal, said);
	}
}

static void test_with_memory(void **state)
{
	struct evbuffer *buffer = buffer_new(), *other = buffer_new();
	struct evbuffer_iovec room;

	(void)state;
	assert_null(buffer_pullup(buffer, -1));
	buffer_add(buffer, "one ", 4);
	buffer_add_printf(buffer, "%d\r", 2);
	buffer_add_reference(buffer, "\nthree", 6, NULL, NULL);
	assert_null(buffer_pullup(buffer, 100));
	buffer_add_buffer(other, buffer);
	room = buffer_reserve(other, 5);
	assert_true(room.iov_len >= 5);
	memcpy(room.iov_base, " four", 5);
	room.iov_len = 5;
	evbuffer_commit_space(other, &room, 1);
	assert_memory_equal("one 2\r\nthree four", buffer_pullup(other, -1), 17);
	assert_int_equal(17, evbuffer_get_length(other));
	evbuffer_free(buffer);
	evbuffer_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_with_memory),
	};

	event_set_mem_functions(limited_malloc, limited_realloc, free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* batch/node: who is dead for certain, and of whom nobody knows. */
#include "batch/node.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"

static char name[NODE_NAME_SIZE];

/* The name of a process that ends; it is still to be waited for. */
static pid_t make_another(void)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		node_name_get(name);
		_exit(write(ends[1], name, sizeof name) == sizeof name ? 0 : 1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], name, sizeof name), sizeof name);
	close(ends[0]);
	return pid;
}

static void test_who_is_dead(void **state)
{
	pid_t pid;

	(void)state;
	node_name_get(name);
	assert_null(strchr(name, '-') ? strstr(name, ":-:") : NULL);
	assert_false(node_name_is_dead(text_of(name)));
	pid = make_another();
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_true(node_name_is_dead(text_of(name)));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(node_name_is_dead(text_of(name)));
}

/* Its number is another's by now. */
static void test_another_of_that_number(void **state)
{
	char *rest, other[2 * NODE_NAME_SIZE];
	int64_t start;

	(void)state;
	node_name_get(name);
	rest = strchr(strchr(name, ':') + 1, ':') + 1;
	*(rest - 1) = 0;
	start = strtoll(rest, &rest, 10);
	snprintf(other, sizeof other, "%s:%" PRId64 "%s", name, start - 1, rest);
	assert_true(node_name_is_dead(text_of(other)));
}

/* Of another machine, of this one before it was started, of another namespace. */
/* For people; whatever a store has there is cut to what there is room for. */
static void test_told(void **state)
{
	char told[NODE_TOLD_SIZE], host[300];

	(void)state;
	node_name_tell(text_of("build-7:4242:99:1:2:boot"), told);
	assert_string_equal(told, "process 4242 on build-7");
	memset(host, 'x', sizeof host);
	node_name_tell(text_from(host, sizeof host), told);
	host[sizeof host - 1] = ':';
	node_name_tell(text_from(host, sizeof host), told);
	assert_true(strlen(told) < sizeof told);
}

static void test_nobody_knows(void **state)
{
	static const char *const strange[] = {"", "node", "host:1", "host:0:1:2:3:4",
					      "host:-1:5:6:7:8"};
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
		assert_false(node_name_is_dead(text_of(strange[i])));
	waitpid(make_another(), NULL, 0);
	assert_true(node_name_is_dead(text_of(name)));
	size = strlen(name);
	name[size - 1] = name[size - 1] == '0' ? '1' : '0';
	assert_false(node_name_is_dead(text_of(name)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_dead),
		cmocka_unit_test(test_another_of_that_number),
		cmocka_unit_test(test_nobody_knows),
		cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* base/wait: the order in which a wait's ends are told, and what may interrupt it. */
#include "base/wait.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static void test_ends(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wait_for(ends[0], POLLIN, clock_ms() + 10, 0), WAIT_LATE);
	assert_int_equal(wait_for(ends[0], POLLIN, 0, 0), WAIT_LATE);
	assert_int_equal(wait_for(ends[1], POLLOUT, 0, 0), WAIT_READY);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(wait_for(ends[0], POLLIN, WAIT_FOREVER, 0), WAIT_READY);
	close(ends[0]);
	close(ends[1]);
}

static int have_come;

static int count(void)
{
	return have_come;
}

static void test_interruptions(void **state)
{
	static struct wait_interruptions interruptions = {.count = count};
	int ends[2];

	(void)state;
	assert_int_equal(wait_interrupted(), 0);
	sigemptyset(&interruptions.signals);
	wait_heed(&interruptions);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wait_for(ends[1], POLLOUT, 0, 0), WAIT_READY);
	have_come = 1;
	assert_int_equal(wait_interrupted(), 1);
	assert_int_equal(wait_for(ends[1], POLLOUT, WAIT_FOREVER, 0), WAIT_INTERRUPTED);
	assert_int_equal(wait_for(ends[1], POLLOUT, WAIT_FOREVER, 1), WAIT_READY);
	wait_heed(NULL);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_interruptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

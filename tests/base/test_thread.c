#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void *see_mask(void *owner)
{
	pthread_sigmask(SIG_SETMASK, NULL, owner);
	return owner;
}

/* All that can be blocked, and only in the thread. */
static void test_signals(void **state)
{
	sigset_t seen, mine;
	struct rlmd_error err;
	pthread_t thread;
	void *end;

	(void)state;
	assert_true(thread_start(&thread, see_mask, &seen, &err));
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_equal(end, &seen);
	assert_true(sigismember(&seen, SIGINT) && sigismember(&seen, SIGTERM) &&
		    sigismember(&seen, SIGCHLD));
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_false(sigismember(&mine, SIGINT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

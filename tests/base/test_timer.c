/* Real time passes here, a millisecond of it. */
#include "base/timer.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int fired;

static void on_time(void *owner)
{
	struct timer **timer = owner;

	fired++;
	timer_free(*timer);
	*timer = NULL;
}

/* It fires once, may be freed by its own callback, and never fires when it was freed before. */
static void test_timer(void **state)
{
	struct event_base *base = event_base_new();
	struct timer *timer = timer_after(base, 1, on_time, &timer);
	struct timer *other = timer_after(base, 0, on_time, &other);

	(void)state;
	timer_free(other);
	assert_int_equal(fired, 0);
	event_base_dispatch(base);
	assert_int_equal(fired, 1);
	assert_null(timer);
	timer_free(NULL);
	event_base_free(base);
}

static void on_turn(void *owner)
{
	(*(int *)owner)++;
}

/* It is due once for each time that it was made so, and the last word counts. */
static void test_a_timer_that_stays(void **state)
{
	struct event_base *base = event_base_new();
	int turns = 0;
	struct timer *timer = timer_new(base, on_turn, &turns);

	(void)state;
	event_base_loop(base, EVLOOP_NONBLOCK);
	assert_false(timer_waits(timer));
	timer_start(timer, 1000000);
	timer_post(timer);
	timer_post(timer);
	assert_true(timer_waits(timer));
	event_base_dispatch(base);
	assert_int_equal(turns, 1);
	timer_start(timer, 1);
	event_base_dispatch(base);
	assert_int_equal(turns, 2);
	timer_post(timer);
	timer_stop(timer);
	timer_stop(NULL);
	event_base_dispatch(base);
	assert_int_equal(turns, 2);
	timer_free(timer);
	event_base_free(base);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_a_timer_that_stays),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}

/* How much of a run's time is kept for its last answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/ask.h"
#include "engine/pace.h"

/* Before anything is known a tenth is kept, at most 15 seconds; so it is with a fast model. */
static void the_usual(void **state)
{
	struct pace pace = {.all = 60000};

	(void)state;
	assert_int_equal(pace_closing(&pace), 6000);
	assert_false(pace_too_late(&pace, 1));
	assert_true(pace_output(&pace, 1) == INT64_MAX);
	pace.all = 3600000;
	assert_int_equal(pace_closing(&pace), 15000);
	pace_learn(&pace, 1000, 100);
	assert_int_equal(pace_closing(&pace), 15000);
	assert_false(pace_too_late(&pace, 17000));
	pace_learn(&pace, 0, 100);
	assert_int_equal(pace.count, 1);
}

/* A slow one needs what its slowest turn took and a quarter more, and half of all at most. */
static void a_slow_model(void **state)
{
	struct pace pace = {.all = 360000};

	(void)state;
	pace_learn(&pace, 40000, 300);
	assert_int_equal(pace_closing(&pace), 50000);
	pace_learn(&pace, 60000, 500);
	assert_int_equal(pace_closing(&pace), 75000);
	/* Another turn takes 50 s. */
	assert_false(pace_too_late(&pace, 125000));
	assert_true(pace_too_late(&pace, 124999));
	pace_learn(&pace, 300000, 2000);
	assert_int_equal(pace_closing(&pace), 180000);
	for (int i = 0; i < PACE_TURNS; i++)
		pace_learn(&pace, 20000, 200);
	assert_int_equal(pace_closing(&pace), 25000);
}

/* Of a turn that is longer than any forced answer gets, only a part counts. */
static void a_long_turn(void **state)
{
	struct pace pace = {.all = 3600000};

	(void)state;
	pace_learn(&pace, 80000, 2 * ASK_TOKENS_FORCED);
	assert_int_equal(pace_closing(&pace), 50000);
}

/* In the time that is left so much comes as the fastest turn had. */
static void output_in_time(void **state)
{
	struct pace pace = {.all = 360000};

	(void)state;
	pace_learn(&pace, 65536, 512);
	pace_learn(&pace, 65536, 100);
	assert_int_equal(pace_output(&pace, 131072), 1024);
	assert_int_equal(pace_output(&pace, 100), 128);
	assert_int_equal(pace_output(&pace, -5), 128);
	assert_true(pace_output(&pace, INT64_MAX) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_usual),
		cmocka_unit_test(a_slow_model),
		cmocka_unit_test(a_long_turn),
		cmocka_unit_test(output_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

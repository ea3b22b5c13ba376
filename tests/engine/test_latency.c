/* How much of a run's time is kept for its last answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/ask.h"
#include "engine/latency.h"

/* Before anything is known a tenth is kept, at most 15 seconds; so it is with a fast model. */
static void the_usual(void **state)
{
	struct latency latency = {.all = 60000};

	(void)state;
	assert_int_equal(latency_closing(&latency), 6000);
	assert_false(latency_too_late(&latency, 1));
	assert_true(latency_output(&latency, 1) == INT64_MAX);
	latency.all = 3600000;
	assert_int_equal(latency_closing(&latency), 15000);
	latency_learn(&latency, 1000, 100);
	assert_int_equal(latency_closing(&latency), 15000);
	assert_false(latency_too_late(&latency, 17000));
	latency_learn(&latency, 0, 100);
	assert_int_equal(latency.count, 1);
}

/* A slow one needs what its slowest turn took and a quarter more, and half of all at most. */
static void a_slow_model(void **state)
{
	struct latency latency = {.all = 360000};

	(void)state;
	latency_learn(&latency, 40000, 300);
	assert_int_equal(latency_closing(&latency), 50000);
	latency_learn(&latency, 60000, 500);
	assert_int_equal(latency_closing(&latency), 75000);
	/* Another turn takes 50 s. */
	assert_false(latency_too_late(&latency, 125000));
	assert_true(latency_too_late(&latency, 124999));
	latency_learn(&latency, 300000, 2000);
	assert_int_equal(latency_closing(&latency), 180000);
	for (int i = 0; i < LATENCY_TURNS; i++)
		latency_learn(&latency, 20000, 200);
	assert_int_equal(latency_closing(&latency), 25000);
}

/* Of a turn that is longer than any forced answer gets, only a part counts. */
static void a_long_turn(void **state)
{
	struct latency latency = {.all = 3600000};

	(void)state;
	latency_learn(&latency, 80000, 2 * SCOPE_OUTPUT_FORCED);
	assert_int_equal(latency_closing(&latency), 50000);
}

/* In the time that is left so much comes as the fastest turn had. */
static void output_in_time(void **state)
{
	struct latency latency = {.all = 360000};

	(void)state;
	latency_learn(&latency, 65536, 512);
	latency_learn(&latency, 65536, 100);
	assert_int_equal(latency_output(&latency, 131072), 1024);
	assert_int_equal(latency_output(&latency, 100), 128);
	assert_int_equal(latency_output(&latency, -5), 128);
	assert_true(latency_output(&latency, INT64_MAX) == INT64_MAX);
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

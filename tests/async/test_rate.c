/* async/rate: no window has more, wherever it begins, and none is wasted for long. */
#include "async/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WINDOW = 60000 };

static void test_at_once_and_then_a_window_later(void **state)
{
	struct rate rate;

	(void)state;
	rate_init(&rate, 3, WINDOW);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rate_opens(&rate, 1500), 1500);
		rate_take(&rate, 1500);
	}
	assert_in_range(rate_opens(&rate, 1500), 1500 + WINDOW, 1500 + WINDOW + WINDOW / 60);
	assert_in_range(rate_opens(&rate, 61000), 1500 + WINDOW, 1500 + WINDOW + WINDOW / 60);
	assert_int_equal(rate_opens(&rate, 62000), 62000);
	rate_give_back(&rate, 1500);
	rate_take(&rate, 62000);
	assert_int_equal(rate_opens(&rate, 1 << 30), 1 << 30);
}

static void test_what_is_given_back(void **state)
{
	struct rate rate;

	(void)state;
	rate_init(&rate, 1, WINDOW);
	rate_take(&rate, 10);
	assert_true(rate_opens(&rate, 5000) > 5000);
	rate_give_back(&rate, 5000);
	assert_int_equal(rate_opens(&rate, 5000), 5000);
	rate_give_back(&rate, 5000);
	assert_int_equal(rate_opens(&rate, 5000), 5000);
}

/* It is the newest that is given back: one that was taken before counts as long as it would have.
 */
static void test_the_newest_is_given_back(void **state)
{
	struct rate rate;

	(void)state;
	rate_init(&rate, 2, WINDOW);
	rate_take(&rate, 10);
	rate_take(&rate, 30000);
	rate_give_back(&rate, 30000);
	rate_take(&rate, 40000);
	assert_in_range(rate_opens(&rate, 40000), 10 + WINDOW, 10 + WINDOW + WINDOW / 60);
}

/* A caller comes again as soon as it opens, at random times and windows. */
static void test_no_window_has_more(void **state)
{
	enum { TAKEN = 400 };
	int64_t times[TAKEN];
	uint32_t dice = 7;

	(void)state;
	for (int round = 0; round < 50; round++) {
		int64_t most = 1 + round % 9, window = 7 + 100 * round, now = round * 1000003;
		struct rate rate;

		rate_init(&rate, most, window);
		for (int i = 0; i < TAKEN; i++) {
			int64_t at;

			dice = dice * 1664525 + 1013904223;
			now += (dice >> 16) % 3 ? 0 : (int64_t)((dice >> 8) % 200);
			while ((at = rate_opens(&rate, now)) > now)
				now = at;
			rate_take(&rate, times[i] = now);
			if (i >= most)
				assert_true(times[i] - times[i - most] >= window);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once_and_then_a_window_later),
		cmocka_unit_test(test_what_is_given_back),
		cmocka_unit_test(test_the_newest_is_given_back),
		cmocka_unit_test(test_no_window_has_more),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}

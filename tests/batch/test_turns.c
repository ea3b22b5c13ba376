/* batch/turns: shares by weight, whoever comes and goes. */
#include "batch/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static struct turn *add(struct turns *turns, const char *tenant, int64_t weight)
{
	struct turn *turn = turns_get(turns, text_of(tenant));

	turn->weight = weight;
	turns_wake(turns, turn);
	return turn;
}

static void test_shares(void **state)
{
	struct turns turns = {0};
	struct turn *tenants[3];
	int had[3] = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		tenants[i] = add(&turns, (const char *const[]){"a", "b", ""}[i], 1 << i);
	assert_ptr_equal(turns_get(&turns, text_of("b")), tenants[1]);
	for (int n = 0; n < 700; n++) {
		struct turn *next = turns_next(&turns, 1);

		for (int i = 0; i < 3; i++)
			had[i] += next == tenants[i];
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(had[i], (100 << i) - 2, (100 << i) + 2);
	turns_done(&turns);
}

static void test_who_was_away_has_no_claim_to_what_was(void **state)
{
	struct turns turns = {0};
	struct turn *a = add(&turns, "a", 1), *b = add(&turns, "b", 1);
	int had = 0;

	(void)state;
	b->ready = false;
	for (int n = 0; n < 100; n++)
		assert_ptr_equal(turns_next(&turns, 1), a);
	turns_wake(&turns, b);
	for (int n = 0; n < 10; n++)
		had += turns_next(&turns, 1) == b;
	assert_in_range(had, 4, 6);
	turns_done(&turns);
}

static void test_waiting(void **state)
{
	struct turns turns = {0};
	struct turn *a = add(&turns, "a", 1), *b = add(&turns, "b", 1);

	(void)state;
	a->ready = b->ready = false;
	a->due_ms = 50;
	b->due_ms = 70;
	assert_int_equal(turns_wake_due(&turns, 40), 50);
	assert_null(turns_next(&turns, 1));
	assert_int_equal(turns_wake_due(&turns, 50), 70);
	assert_ptr_equal(turns_next(&turns, 1), a);
	turns_done(&turns);
}

static void test_stops(void **state)
{
	struct turns turns = {0};
	struct turn *a = add(&turns, "a", 1), *b = add(&turns, "b", 1);

	(void)state;
	turns_stop(&turns, a, TURN_MONEY, 50);
	turns_stop(&turns, b, TURN_KEY, INT64_MAX);
	turns_stop(&turns, b, TURN_MONEY, 50);
	assert_int_equal(b->stop, TURN_KEY);
	assert_false(turn_is_over(a));
	assert_true(turn_is_over(b));
	assert_int_equal(turns_wake_due(&turns, 40), 50);
	assert_null(turns_next(&turns, 1));
	assert_true(turns_wake_due(&turns, 50) == INT64_MAX);
	assert_ptr_equal(turns_next(&turns, 1), a);
	turns_stop(&turns, a, TURN_MONEY, INT64_MAX);
	assert_null(turns_next(&turns, 1));
	turns_stop(&turns, b, TURN_GOES_ON, 0);
	assert_ptr_equal(turns_next(&turns, 1), b);
	turns_done(&turns);
}

/* Who holds places for long takes no more than its share of them, and one is kept for who has none
 * and will want it. */
static void test_places(void **state)
{
	struct turns turns = {0};
	struct turn *a = add(&turns, "a", 1), *b = add(&turns, "b", 3), *late, *next;

	(void)state;
	for (int64_t free = 8; free; free--) {
		next = turns_next(&turns, free);
		next->at_work++;
	}
	assert_int_equal(a->at_work, 2);
	assert_int_equal(b->at_work, 6);
	b->at_work--;
	assert_ptr_equal(turns_next(&turns, 1), b);
	late = turns_get(&turns, text_of("late"));
	late->due_ms = 50;
	assert_null(turns_next(&turns, 1));
	assert_ptr_equal(turns_next(&turns, 2), b);
	turns_wake_due(&turns, 50);
	assert_ptr_equal(turns_next(&turns, 1), late);
	late->at_work++;
	turns_stop(&turns, late, TURN_KEY, INT64_MAX);
	assert_ptr_equal(turns_next(&turns, 1), b);
	turns_done(&turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_who_was_away_has_no_claim_to_what_was),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}

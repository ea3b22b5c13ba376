/* batch/fair_queue: shares by weight, whoever comes and goes. */
#include "batch/fair_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static struct fair_tenant *add(struct fair_queue *queue, const char *name, int64_t weight)
{
	struct fair_tenant *tenant = fair_queue_get(queue, text_of(name));

	tenant->weight = weight;
	fair_queue_wake(queue, tenant);
	return tenant;
}

static void test_shares(void **state)
{
	struct fair_queue queue = {0};
	struct fair_tenant *tenants[3];
	int had[3] = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		tenants[i] = add(&queue, (const char *const[]){"a", "b", ""}[i], 1 << i);
	assert_ptr_equal(fair_queue_get(&queue, text_of("b")), tenants[1]);
	for (int n = 0; n < 700; n++) {
		struct fair_tenant *next = fair_queue_next(&queue, 1);

		for (int i = 0; i < 3; i++)
			had[i] += next == tenants[i];
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(had[i], (100 << i) - 2, (100 << i) + 2);
	fair_queue_done(&queue);
}

static void test_who_was_away_has_no_claim_to_what_was(void **state)
{
	struct fair_queue queue = {0};
	struct fair_tenant *a = add(&queue, "a", 1), *b = add(&queue, "b", 1);
	int had = 0;

	(void)state;
	b->ready = false;
	for (int n = 0; n < 100; n++)
		assert_ptr_equal(fair_queue_next(&queue, 1), a);
	fair_queue_wake(&queue, b);
	for (int n = 0; n < 10; n++)
		had += fair_queue_next(&queue, 1) == b;
	assert_in_range(had, 4, 6);
	fair_queue_done(&queue);
}

static void test_waiting(void **state)
{
	struct fair_queue queue = {0};
	struct fair_tenant *a = add(&queue, "a", 1), *b = add(&queue, "b", 1);

	(void)state;
	a->ready = b->ready = false;
	a->due_ms = 50;
	b->due_ms = 70;
	fair_queue_wake_due(&queue, 40);
	assert_int_equal(fair_queue_due(&queue), 50);
	assert_null(fair_queue_next(&queue, 1));
	fair_queue_wake_due(&queue, 50);
	assert_int_equal(fair_queue_due(&queue), 70);
	assert_ptr_equal(fair_queue_next(&queue, 1), a);
	fair_queue_done(&queue);
}

static void test_stops(void **state)
{
	struct fair_queue queue = {0};
	struct fair_tenant *a = add(&queue, "a", 1), *b = add(&queue, "b", 1);

	(void)state;
	fair_queue_stop(&queue, a, TENANT_STOP_MONEY, 50);
	fair_queue_stop(&queue, b, TENANT_STOP_KEY, INT64_MAX);
	fair_queue_stop(&queue, b, TENANT_STOP_MONEY, 50);
	assert_int_equal(b->stop, TENANT_STOP_KEY);
	assert_false(fair_queue_is_over(a));
	assert_true(fair_queue_is_over(b));
	fair_queue_wake_due(&queue, 40);
	assert_int_equal(fair_queue_due(&queue), 50);
	assert_null(fair_queue_next(&queue, 1));
	fair_queue_wake_due(&queue, 50);
	assert_true(fair_queue_due(&queue) == INT64_MAX);
	assert_ptr_equal(fair_queue_next(&queue, 1), a);
	fair_queue_stop(&queue, a, TENANT_STOP_MONEY, INT64_MAX);
	assert_null(fair_queue_next(&queue, 1));
	fair_queue_stop(&queue, b, TENANT_STOP_NONE, 0);
	assert_ptr_equal(fair_queue_next(&queue, 1), b);
	fair_queue_done(&queue);
}

/* A tenant that holds places for long takes no more than its share of them, and one is kept for who
 * has none and will want it. */
static void test_places(void **state)
{
	struct fair_queue queue = {0};
	struct fair_tenant *a = add(&queue, "a", 1), *b = add(&queue, "b", 3), *late, *next;

	(void)state;
	for (int64_t free = 8; free; free--) {
		next = fair_queue_next(&queue, free);
		next->at_work++;
	}
	assert_int_equal(a->at_work, 2);
	assert_int_equal(b->at_work, 6);
	b->at_work--;
	assert_ptr_equal(fair_queue_next(&queue, 1), b);
	late = fair_queue_get(&queue, text_of("late"));
	late->due_ms = 50;
	assert_null(fair_queue_next(&queue, 1));
	assert_ptr_equal(fair_queue_next(&queue, 2), b);
	fair_queue_stop(&queue, late, TENANT_STOP_BUSY,
			50); /* what it cannot use is not kept for it */
	assert_ptr_equal(fair_queue_next(&queue, 1), b);
	fair_queue_wake_due(&queue, 50);
	assert_ptr_equal(fair_queue_next(&queue, 1), late);
	late->at_work++;
	fair_queue_stop(&queue, late, TENANT_STOP_KEY, INT64_MAX);
	assert_ptr_equal(fair_queue_next(&queue, 1), b);
	fair_queue_done(&queue);
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

	return cmocka_run_group_tests_name("fair_queue", tests, NULL, NULL);
}

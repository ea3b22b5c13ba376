/* A queue whose first is whoever comes before all others, in few steps. */
#include "base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { FEW = 60, MANY = 100000, LOG2_MANY = 17 };

struct thing {
	struct heap_entry entry;
	int rank;
	bool in_heap;
};

static long comparisons;

static bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	comparisons++;
	return ((const struct thing *)a)->rank < ((const struct thing *)b)->rank;
}

static int roll(int sides)
{
	static uint32_t dice = 1;

	dice = dice * 1664525 + 1013904223;
	return (int)((dice >> 8) % (uint32_t)sides);
}

static void add(struct heap *heap, struct thing *thing, int rank)
{
	thing->rank = rank;
	thing->in_heap = true;
	heap_add(heap, &thing->entry);
}

static void take(struct heap *heap, struct thing *thing)
{
	thing->in_heap = false;
	heap_remove(heap, &thing->entry);
}

/* The first, by looking at each. */
static void check_first(const struct heap *heap, const struct thing *things, int count)
{
	const struct thing *first = (const struct thing *)heap_first(heap);
	size_t found = 0;

	for (int i = 0; i < count; i++) {
		found += things[i].in_heap;
		if (things[i].in_heap)
			assert_true(first->rank <= things[i].rank);
	}
	assert_int_equal(found, heap->count);
	assert_true(!found == !first);
}

/* Whatever comes, leaves from the midst or changes, the first is the first. */
static void test_first(void **state)
{
	struct heap heap = {.before = before};
	struct thing things[FEW] = {0};

	(void)state;
	assert_null(heap_first(&heap));
	for (int step = 0; step < 50000; step++) {
		struct thing *thing = &things[roll(FEW)];

		if (!thing->in_heap) {
			add(&heap, thing, roll(40));
		} else if (roll(2)) {
			take(&heap, thing);
		} else {
			thing->rank = roll(40);
			heap_update(&heap, &thing->entry);
		}
		check_first(&heap, things, FEW);
	}
	heap_done(&heap);
	assert_int_equal(heap.count, 0);
	heap_done(&heap);
}

static void expect_few(long most)
{
	assert_true(comparisons <= most);
	comparisons = 0;
}

/* Of a hundred thousand each may come, change and leave within 2 log2(n) + 1 comparisons. */
static void test_steps(void **state)
{
	static struct thing things[MANY];
	struct heap heap = {.before = before};
	const long most = 2 * LOG2_MANY + 1;

	(void)state;
	comparisons = 0;
	for (int i = 0; i < MANY; i++) {
		add(&heap, &things[i], MANY - i);
		expect_few(most);
	}
	for (int i = 0; i < MANY; i++) {
		things[i].rank = roll(MANY);
		heap_update(&heap, &things[i].entry);
		expect_few(most);
	}
	for (int i = 0; i < MANY; i++) {
		take(&heap, &things[i]);
		expect_few(most);
	}
	assert_null(heap_first(&heap));
	heap_done(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}

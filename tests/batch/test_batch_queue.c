/* batch/batch_queue: the batches of a store, one after the other. */
#include "batch/batch_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "loaded_store.h"

static struct {
	struct loaded_store loaded;
	struct batch_queue *queue;
	int64_t next[4]; /* the batches that were told */
	int count;
	bool ended;
	struct rlmd_error error;
} test;

static void on_next(void *owner, int64_t batch)
{
	(void)owner;
	test.next[test.count++] = batch;
}

static void on_end(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	assert_false(test.ended);
	test.ended = true;
	if (err)
		test.error = *err;
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	loaded_store_open(&test.loaded);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	batch_queue_free(test.queue);
	loaded_store_close(&test.loaded);
	return 0;
}

static void begin(const char *name, bool wait)
{
	const struct batch_queue_options options = {
		.store = test.loaded.store,
		.name = name,
		.wait = wait,
		.next = on_next,
		.end = on_end,
	};

	test.queue = batch_queue_new(test.loaded.base, &options);
	assert_int_equal(test.count, 0);
}

/* Until so many were told, or it has ended. */
static void await_next(int count)
{
	while (test.count < count && !test.ended)
		assert_int_equal(event_base_loop(test.loaded.base, EVLOOP_ONCE), 0);
}

static void test_all_that_are_not_over(void **state)
{
	int64_t one, over, other;

	(void)state;
	one = loaded_store_add(&test.loaded, "one", "", 1);
	over = loaded_store_add(&test.loaded, "over", "", 1);
	loaded_store_end_job(&test.loaded, over, true, "{}");
	other = loaded_store_add(&test.loaded, "other", "", 1);
	begin(NULL, false);
	await_next(1);
	assert_int_equal(test.next[0], one);
	batch_queue_next(test.queue, true);
	await_next(2);
	assert_int_equal(test.next[1], other);
	batch_queue_next(test.queue, false);
	await_next(3);
	assert_true(test.ended && !test.error.kind && test.count == 2);
}

/* One that has a name is told also where it is over. */
static void test_one_by_its_name(void **state)
{
	int64_t over;

	(void)state;
	loaded_store_add(&test.loaded, "one", "", 1);
	over = loaded_store_add(&test.loaded, "over", "", 1);
	loaded_store_end_job(&test.loaded, over, true, "{}");
	begin("over", false);
	await_next(1);
	assert_int_equal(test.next[0], over);
	batch_queue_free(test.queue);
	test.count = 0;
	begin("none", false);
	await_next(1);
	assert_int_equal(test.error.kind, RLMD_ERROR_USAGE);
	assert_string_equal(test.error.text,
			    "the store has no batch 'none' that was loaded to its end");
}

/* One that waits asks again when others have written, and ends when it is drained. */
static void test_waiting(void **state)
{
	int64_t batch;

	(void)state;
	begin(NULL, true);
	DO(&test.loaded, nodes, 0);
	batch = loaded_store_add(&test.loaded, "late", "", 1);
	assert_int_equal(test.count, 0);
	batch_queue_hear(test.queue);
	await_next(1);
	assert_int_equal(test.next[0], batch);
	batch_queue_drain(test.queue);
	assert_false(test.ended);
	batch_queue_next(test.queue, false);
	await_next(2);
	assert_true(test.ended && test.count == 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_all_that_are_not_over),
		TEST(test_one_by_its_name),
		TEST(test_waiting),
	};

	alloc_install();
	return cmocka_run_group_tests_name("batch_queue", tests, NULL, NULL);
}

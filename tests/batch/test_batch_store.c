/* batch/batch_store: which batch is meant, and whose fault it is that a store does not work. */
#include "batch/batch_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void test_which_batch(void **state)
{
	const struct store_batch batches[] = {{.name = text_of("a")}, {.name = text_of("b")}};
	struct store_result result = {.count = 2, .batches = batches};
	struct rlmd_error err;

	(void)state;
	assert_ptr_equal(batch_store_choose(&result, "b", &err), &batches[1]);
	assert_null(batch_store_choose(&result, "c", &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_string_equal(err.text, "the store has no batch 'c'; it has 'a', 'b'");
	assert_null(batch_store_choose(&result, NULL, &err));
	assert_non_null(
		strstr(err.text, "has 2 batches, and --batch does not say which: 'a', 'b'"));
	result.count = 1;
	assert_ptr_equal(batch_store_choose(&result, NULL, &err), &batches[0]);
	assert_null(batch_store_choose(&result, "b", &err));
	result.count = 0;
	assert_null(batch_store_choose(&result, NULL, &err));
	assert_string_equal(err.text, "the store has no batch");
}

/* Not all of a store with thousands of batches. */
static void test_many_batches(void **state)
{
	struct store_batch batches[11];
	const struct store_result result = {.count = 11, .batches = batches};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 11; i++)
		batches[i] = (struct store_batch){.name = text_of("n")};
	assert_null(batch_store_choose(&result, "x", &err));
	assert_non_null(strstr(err.text, "'n', 'n', ..."));
}

static void test_faults(void **state)
{
	static const struct {
		enum store_fault fault;
		enum rlmd_error_kind kind;
	} table[] = {
		{STORE_LOCKED, RLMD_ERROR_USAGE},     {STORE_FOREIGN, RLMD_ERROR_USAGE},
		{STORE_NEWER, RLMD_ERROR_USAGE},      {STORE_USAGE, RLMD_ERROR_USAGE},
		{STORE_MISSING, RLMD_ERROR_INPUT},    {STORE_CORRUPT, RLMD_ERROR_INPUT},
		{STORE_REFUSED, RLMD_ERROR_INTERNAL}, {STORE_AWAY, RLMD_ERROR_INTERNAL},
		{STORE_FULL, RLMD_ERROR_INTERNAL},    {STORE_FAILED, RLMD_ERROR_INTERNAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct store_result result = {.fault = table[i].fault,
						    .error = {.text = "why"}};
		struct rlmd_error err;

		batch_store_explain(&result, &err);
		assert_int_equal(err.kind, table[i].kind);
		assert_string_equal(err.text, "why");
	}
}

static void test_news(void **state)
{
	(void)state;
	for (int news = 0; news < STORE_NEWS; news++)
		assert_int_equal(!batch_store_news((enum store_news)news), news == STORE_CHANGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_batch),
		cmocka_unit_test(test_many_batches),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_news),
	};

	return cmocka_run_group_tests_name("batch_store", tests, NULL, NULL);
}

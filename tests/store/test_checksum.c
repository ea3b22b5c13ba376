/* store/checksum: any value of a row that is another one makes another sum. */
#include "store/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static const struct store_job job = {
	.number = 1,
	.custom_id = {"ab", 2},
	.tenant = {"c", 1},
	.digest = {"d", 1},
	.line = {"d", 1},
};

/* Bytes that go from one member to the next are another row, too. */
static void test_jobs(void **state)
{
	struct store_job others[] = {job, job, job, job, job};

	(void)state;
	others[0].number = 2;
	others[1].custom_id = text_of("ax");
	others[2].tenant = text_of("x");
	others[3].digest = others[3].line = text_of("x");
	others[4].custom_id = text_of("a");
	others[4].tenant = text_of("bc");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_true(checksum_of_name(&others[i]) != checksum_of_name(&job));
		assert_true(checksum_of_line(&others[i]) != checksum_of_line(&job));
	}
	assert_true(checksum_of_name(&job) == checksum_of_name(&job));
	assert_true(checksum_of_name(&job) != checksum_of_line(&job));
	assert_true(checksum_of_name(&job) > 0);
}

static void test_ends(void **state)
{
	const struct store_outcome outcome = {
		.result = text_of("ab"),
		.error = text_of("c"),
		.cost = 1,
		.tokens = 12,
		.trace = text_of("d"),
	};
	struct store_outcome others[] = {outcome, outcome, outcome, outcome,
					 outcome, outcome, outcome};
	int64_t sum = checksum_of_end(7, STORE_JOB_SUCCEEDED, &outcome);

	(void)state;
	others[0].result = text_of("ax");
	others[1].error = text_of("x");
	others[2].cost = 2;
	others[3].tokens = 13;
	others[4].trace = text_of("x");
	others[5].cost = 11;
	others[5].tokens = 2;
	others[6].error = text_of("cd");
	others[6].trace = text_of("");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_true(checksum_of_end(7, STORE_JOB_SUCCEEDED, &others[i]) != sum);
	assert_true(checksum_of_end(8, STORE_JOB_SUCCEEDED, &outcome) != sum);
	assert_true(checksum_of_end(7, STORE_JOB_FAILED, &outcome) != sum);
	assert_true(checksum_of_end(7, STORE_JOB_SUCCEEDED, &outcome) == sum);
}

static void test_exchanges(void **state)
{
	const struct store_exchange exchange = {
		.key = text_of("k"),
		.number = 1,
		.bytes = text_of("b"),
		.cost = 2,
		.tokens = 3,
	};
	struct store_exchange others[] = {exchange, exchange, exchange, exchange, exchange};
	int64_t sum = checksum_of_exchange(7, &exchange);

	(void)state;
	others[0].key = text_of("x");
	others[1].number = 2;
	others[2].bytes = text_of("x");
	others[3].cost = 3;
	others[4].tokens = 4;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_true(checksum_of_exchange(7, &others[i]) != sum);
	assert_true(checksum_of_exchange(8, &exchange) != sum);
}

/* A row of a version without sums has none. */
static void test_none(void **state)
{
	(void)state;
	assert_true(checksum_is(0, 5));
	assert_true(checksum_is(5, 5));
	assert_false(checksum_is(6, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_exchanges),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}

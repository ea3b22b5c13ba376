/* cli/figure: counts, amounts and times as people read them. */
#include "cli/figure.h"

#include <rlmd/job.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/money.h"

static void test_counts(void **state)
{
	static const struct {
		int64_t count;
		const char *text;
	} cases[] = {{0, "0"},           {999, "999"},        {1000, "1.0k"},
		     {9949, "9.9k"},     {9950, "10k"},       {999499, "999k"},
		     {999500, "1.0M"},   {182000000, "182M"}, {INT64_C(3400000000), "3.4G"},
		     {INT64_MAX, "9.2E"}};
	char text[24];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		figure_count(cases[i].count, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_money(void **state)
{
	json_t *dollars = json_real(0.25);
	char cost[32], spent[80];

	(void)state;
	figure_cost(dollars, cost);
	assert_string_equal(cost, "$0.25");
	figure_cost(NULL, cost);
	assert_string_equal(cost, "cost unknown");
	figure_spent(MONEY_DOLLAR / 4, 5 * MONEY_DOLLAR, spent);
	assert_string_equal(spent, "$0.25 of $5.00");
	figure_spent(MONEY_DOLLAR / 4, RLMD_UNLIMITED, spent);
	assert_string_equal(spent, "$0.25");
	json_decref(dollars);
}

/* No decimals: they would flicker. */
static void test_elapsed(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {{-5, "0s"}, {999, "0s"}, {59999, "59s"}, {123000, "2m03s"}};
	char text[16];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		figure_elapsed(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_left(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {{-1, "0s"},          {59999, "59s"},     {60000, "1m"},
		     {3569000, "59m"},    {3600000, "1h00m"}, {86399000, "1d00h"},
		     {90000000, "1d01h"}, {7500000, "2h05m"}};
	char text[24];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		figure_left(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_money),
		cmocka_unit_test(test_elapsed),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

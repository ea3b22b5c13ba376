#include "base/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_good(void **state)
{
	int64_t number;

	(void)state;
	assert_true(number_parse("0", "KMG", 1000, &number) && number == 0);
	assert_true(number_parse("500", "KMG", 1000, &number) && number == 500);
	assert_true(number_parse("100k", "KMG", 1000, &number) && number == 100000);
	assert_true(number_parse("2G", "KMGT", 1024, &number) && number == INT64_C(1) << 31);
}

static void test_bad(void **state)
{
	static const char *const table[] = {"",
					    "k",
					    "-1",
					    "+1",
					    " 1",
					    "1 ",
					    "1kk",
					    "1x",
					    "1.5",
					    "9999999999G",
					    "99999999999999999999"};
	int64_t number = 7;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_false(number_parse(table[i], "KMG", 1000, &number));
	assert_int_equal(number, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

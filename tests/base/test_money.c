/* Dollars as integers: exact, saturating, readable. */
#include "base/money.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Sums and products that would overflow stay at the top. */
static void test_saturation(void **state)
{
	(void)state;
	assert_int_equal(money_add(1, 2), 3);
	assert_int_equal(money_add(MONEY_MAX, 1), MONEY_MAX);
	assert_int_equal(money_add(MONEY_MAX, MONEY_MAX), MONEY_MAX);
	assert_int_equal(money_times(15000000, 1000000), INT64_C(15000000000000));
	assert_int_equal(money_times(MONEY_MAX / 2, 3), MONEY_MAX);
	assert_int_equal(money_times(0, MONEY_MAX), 0);
	assert_int_equal(money_from_dollars(1e300), MONEY_MAX);
	assert_int_equal(money_from_dollars(-1), 0);
	assert_int_equal(money_from_dollars(0.0 / 0.0), 0);
}

/* Amounts are read exactly, to the last of twelve decimals, or refused with what is wrong. */
static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t money;
	} rows[] = {
		{"5", 5 * MONEY_DOLLAR},
		{"0.25", MONEY_DOLLAR / 4},
		{"0", 0},
		{"1e-6", 1000000},
		{"9000000", 9000000 * MONEY_DOLLAR},
		{".5", MONEY_DOLLAR / 2},
		{"5.", 5 * MONEY_DOLLAR},
		{"1e-12", 1},
		{"0.1", MONEY_DOLLAR / 10},
		{"0.000000000001", 1},
		{"123456.123456789012", INT64_C(123456123456789012)},
		{"8999999.999999999999", 9000000 * MONEY_DOLLAR - 1},
		{"5.0000000000000000000000000", 5 * MONEY_DOLLAR},
		{"0000000000000000000000005", 5 * MONEY_DOLLAR},
		{"0.00000000000000000000000000e9", 0},
		{"0e999999999999999999999", 0},
		{"0.00000000000000000005e20", 5 * MONEY_DOLLAR},
		{"500000000000000000000e-20", 5 * MONEY_DOLLAR},
		{"1E+2", 100 * MONEY_DOLLAR},
	};
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "no amount"},
		{" 5", "no amount"},
		{"5 ", "no amount"},
		{"$5", "no amount"},
		{"-1", "no amount"},
		{"-0.1", "no amount"},
		{"nan", "no amount"},
		{"inf", "no amount"},
		{"0x5", "no amount"},
		{"5,0", "no amount"},
		{"1.2.3", "no amount"},
		{".", "no amount"},
		{"e5", "no amount"},
		{"1e", "no amount"},
		{"1e-", "no amount"},
		{"1e5.5", "no amount"},
		{"1e 5", "no amount"},
		{"five", "no amount"},
		{"5USD", "no amount"},
		{"--5", "no amount"},
		{"0.0000000000001", "more than 12 decimals"},
		{"1.2345678901234567890123456789", "more than 12 decimals"},
		{"1e-13", "more than 12 decimals"},
		{"1e-99999999999999999999", "more than 12 decimals"},
		{"1e9", "more than 9000000"},
		{"1e400", "more than 9000000"},
		{"1e99999999999999999999", "more than 9000000"},
		{"9000001", "more than 9000000"},
		{"9000000.000000000001", "more than 9000000"},
		{"99999999999999999999999999999", "more than 9000000"},
	};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t money = -1;

		assert_true(money_parse(rows[i].text, &money, &err));
		assert_int_equal(money, rows[i].money);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t money = -1;

		assert_false(money_parse(bad[i].text, &money, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		if (!strstr(err.text, bad[i].why))
			fail_msg("%s", err.text);
		assert_int_equal(money, -1);
	}
}

static void test_format(void **state)
{
	static const struct {
		int64_t money;
		const char *text;
	} rows[] = {
		{0, "$0.00"},
		{5 * MONEY_DOLLAR, "$5.00"},
		{MONEY_DOLLAR / 1000 * 214, "$0.214"},
		{12000000, "$0.000012"},
		{MONEY_DOLLAR * 3 / 2, "$1.50"},
		{MONEY_DOLLAR / 10, "$0.10"},
		{MONEY_DOLLAR / 1000 * 1234, "$1.234"},
		{MONEY_DOLLAR / 1000 * 1230, "$1.23"},
		{MONEY_DOLLAR / 1000 * 12005, "$12.005"},
		{1, "$0.000000000001"},
		{123456789, "$0.000123"},
		{MONEY_MAX, "unlimited"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		money_format(rows[i].money, text);
		assert_string_equal(text, rows[i].text);
	}
}

/* As a JSON number and back nothing is lost, up to two thousand dollars. */
static void test_dollars(void **state)
{
	static const int64_t rows[] = {
		1, 7, 150000, 123456789012, 4999999999999, INT64_C(1999999999999999)};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[64];

		snprintf(text, sizeof text, "%.17g", money_to_dollars(rows[i]));
		assert_int_equal(money_from_dollars(strtod(text, NULL)), rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_dollars),
	};

	return cmocka_run_group_tests_name("money", tests, NULL, NULL);
}

/* Durations as people write and read them. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
		{"90", 90000},
		{"90s", 90000},
		{"5m", 300000},
		{"1.5h", 5400000},
		{"250ms", 250},
		{"0", 0},
		{".5s", 500},
		{"0.0004s", 0},
		{"2.5ms", 3},
		{"1.", 1000},
		{"99999999999999h", 1000000000000000},
	};
	static const char *const bad[] = {
		"",    "s",   "-5",  "+5",   " 5",  "5 s",  "5w", "5S", "1e3",
		"0x5", "inf", "nan", "1..5", "5mm", "1m30", "ms", ".",
	};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t ms = -1;

		assert_true(clock_parse_duration(rows[i].text, &ms, &err));
		assert_int_equal(ms, rows[i].ms);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		int64_t ms = -1;

		if (clock_parse_duration(bad[i], &ms, &err))
			fail_msg("'%s' was taken for %lld ms", bad[i], (long long)ms);
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_int_equal(ms, -1);
	}
}

static void test_format(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{-5, "0ms"},          {0, "0ms"},     {850, "850ms"},   {999, "999ms"},
		{1000, "1.0s"},       {4190, "4.1s"}, {9999, "9.9s"},   {10000, "10s"},
		{41900, "41s"},       {59999, "59s"}, {60000, "1m00s"}, {123456, "2m03s"},
		{7200000, "120m00s"},
	};
	char text[16];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		clock_format(rows[i].ms, text);
		assert_string_equal(text, rows[i].text);
	}
	clock_format(INT64_MAX, text);
	assert_true(strlen(text) < sizeof text);
}

static void test_format_date(void **state)
{
	char text[CLOCK_DATE_SIZE];

	(void)state;
	clock_format_date(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	clock_format_date(INT64_C(1772366400250), text);
	assert_string_equal(text, "2026-03-01T12:00:00.250Z");
}

static void test_timeval(void **state)
{
	struct timeval tv = clock_timeval(1234);

	(void)state;
	assert_int_equal(tv.tv_sec, 1);
	assert_int_equal(tv.tv_usec, 234000);
	tv = clock_timeval(-1);
	assert_int_equal(tv.tv_sec, 0);
	assert_int_equal(tv.tv_usec, 0);
}

/* The monotonic clocks agree and do not go back. */
static void test_now(void **state)
{
	int64_t ms = clock_ms(), us = clock_us();

	(void)state;
	assert_true(us / 1000 >= ms);
	assert_true(clock_ms() >= us / 1000);
	assert_true(clock_wall_ms() > INT64_C(1600000000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),       cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_date), cmocka_unit_test(test_timeval),
		cmocka_unit_test(test_now),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}

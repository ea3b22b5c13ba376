/* The fewest tokens that a text can be: below what vocabularies count, and not far below. */
#include "llm/token_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int64_t bound_of(const char *text, size_t step)
{
	struct token_bound bound = {0};
	size_t size = strlen(text);

	for (size_t at = 0; at < size; at += step) {
		size_t piece = step < size - at ? step : size - at;

		token_bound_feed(&bound, text_from(text + at, piece));
	}
	return bound.tokens;
}

/* Texts with their number of tokens in a vocabulary whose tokens are long. */
static void a_bound_of_real_texts(void **state)
{
	static const struct {
		const char *text;
		int64_t tokens; /* by the o200k vocabulary, rounded */
		int64_t part;   /* of them that is found at least, in per cent */
	} rows[] = {
		{"The quick brown fox jumps over the lazy dog, and nobody in the whole "
		 "village could remember when it had last happened.",
		 24, 75},
		{"for (size_t i = 0; i < count; i++)\n\tif (table[i].name && !strcmp(name, "
		 "table[i].name))\n\t\treturn &table[i];\n",
		 39, 40},
		{"\xe6\x88\x91\xe4\xbb\xac\xe7\x9a\x84\xe7\xa0\x94\xe7\xa9\xb6\xe8\xa1\xa8"
		 "\xe6\x98\x8e\xe8\xbf\x99\xe7\xa7\x8d\xe6\x96\xb9\xe6\xb3\x95\xe6\x98\xaf"
		 "\xe6\x9c\x89\xe6\x95\x88\xe7\x9a\x84",
		 12, 30},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t least = bound_of(rows[i].text, SIZE_MAX / 2);

		assert_in_range(least, rows[i].tokens * rows[i].part / 100, rows[i].tokens);
		for (size_t step = 1; step < 8; step++)
			assert_int_equal(bound_of(rows[i].text, step), least);
	}
}

/* The parts of long tokens are no more than they are. */
static void runs(void **state)
{
	static const struct {
		const char *unit;
		int times;
		int64_t most; /* tokens */
	} rows[] = {
		{" ", 128, 1},          {" ", 131, 2},
		{"-", 64, 1},           {"=", 1280, 10},
		{"\n", 20, 1},          {"a", 32, 1},
		{"a", 33, 2},           {"7", 16, 1},
		{"\xe4\xb8\xad", 8, 2}, {"a ", 10, 10},
		{" (", 1, 0},           {"\xd1\x8f", 16, 1},
		{"x1", 10, 20},         {"\xf0\x9f\x98\x80", 8, 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = strlen(rows[i].unit);
		char *text = xcalloc(size * (size_t)rows[i].times + 1, 1);

		for (int j = 0; j < rows[i].times; j++)
			memcpy(text + size * (size_t)j, rows[i].unit, size);
		assert_int_equal(bound_of(text, 3), rows[i].most);
		free(text);
	}
}

/* The rule as it reads, a byte at a time: for "a", "7", "," and a Chinese character. */
static int64_t least_by_the_rule(const char *text, size_t size)
{
	static const struct {
		int64_t free, longest;
	} rules[] = {['a'] = {0, 32}, ['7'] = {0, 16}, [','] = {2, 128}, ['\xe4' & 0x7f] = {0, 4}};
	int64_t tokens = 0, run = 0;
	int before = 0;

	for (size_t i = 0; i < size; i++) {
		int kind = text[i] & 0x7f;

		if ((text[i] & 0xc0) == 0x80)
			continue;
		run = kind == before ? run : 0;
		before = kind;
		if (run == rules[kind].free)
			tokens++;
		if (++run == rules[kind].free + rules[kind].longest)
			run = rules[kind].free;
	}
	return tokens;
}

/* Runs of all lengths beside each other, in pieces of all sizes. */
static void runs_in_any_order(void **state)
{
	static const char *const units[] = {"a", "7", ",", "\xe4\xb8\xad"};
	enum { RUNS = 400, LONGEST = 150, UNIT = 3 };
	char *text = xcalloc(RUNS * LONGEST * UNIT + 1, 1);
	size_t size = 0;
	uint32_t random = 1;
	int64_t expected;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		const char *unit = units[(random = random * 1664525 + 1013904223) >> 30];

		for (uint32_t left = (random >> 8) % LONGEST; left; left--) {
			memcpy(text + size, unit, strlen(unit));
			size += strlen(unit);
		}
	}
	expected = least_by_the_rule(text, size);
	for (size_t step = 1; step < 100; step += 7)
		assert_int_equal(bound_of(text, step), expected);
	assert_int_equal(bound_of(text, size), expected);
	free(text);
}

/* Nothing that any run was asked for is cut for a few tokens more. */
static void beyond(void **state)
{
	(void)state;
	assert_false(token_bound_is_beyond(0, 0));
	assert_false(token_bound_is_beyond(64, 0));
	assert_true(token_bound_is_beyond(65, 0));
	assert_false(token_bound_is_beyond(1000 + 250 + 64, 1000));
	assert_true(token_bound_is_beyond(1000 + 250 + 65, 1000));
	assert_false(token_bound_is_beyond(INT64_MAX, INT64_MAX));
}

/* 64 bytes of ASCII at once count what one after the other does, wherever they begin. */
static void blocks(void **state)
{
	static const char *const units[] = {
		"a", "Z", "7", " ", ",", "-", "x", "\n", "\xe4\xb8\xad", "\xd1\x8f"};
	unsigned random = 1;
	char text[700];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		bool ascii = round % 3;
		size_t size = 0;

		while (size < sizeof text - 150 * 3 - 1) {
			const char *unit;
			unsigned times;

			random = random * 1103515245 + 12345;
			unit = units[(random >> 16) % (ascii ? 8 : COUNT(units))];
			times = random >> 28 ? (random >> 24) % 5 + 1 : (random >> 20) % 150 + 1;
			for (; times; times--, size += strlen(unit))
				memcpy(text + size, unit, strlen(unit) + 1);
		}
		assert_int_equal(bound_of(text, 1 + random % 300), bound_of(text, 1));
		assert_int_equal(bound_of(text, SIZE_MAX / 2), bound_of(text, 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bound_of_real_texts),
		cmocka_unit_test(runs),
		cmocka_unit_test(blocks),
		cmocka_unit_test(runs_in_any_order),
		cmocka_unit_test(beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

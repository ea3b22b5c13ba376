/* pool/translate: files that code has named for a sub-run are believed only where they ascend. */
#include "pool/translate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static bool read_ranges(struct rlmd_text json, struct worker_subset *ret, struct rlmd_error *err)
{
	bool read = translate_subset(json, ret, err);

	free((size_t *)ret->ranges);
	ret->ranges = NULL;
	return read;
}

static void test_what_is_read(void **state)
{
	struct worker_subset subset = {0};

	(void)state;
	assert_true(translate_subset(text_of("[2, 0, 1, 1, 3, 9, 2147483647]"), &subset, NULL));
	assert_int_equal(subset.input, 2);
	assert_int_equal(subset.count, 3);
	assert_int_equal(subset.ranges[2], 1);
	assert_int_equal(subset.ranges[3], 3);
	assert_int_equal(subset.ranges[5], INT32_MAX);
	free((size_t *)subset.ranges);
}

static void test_what_is_refused(void **state)
{
	static const char *const rows[][2] = {
		{"", "no JSON"},
		{"[0, [1], 1]", "no JSON"},
		{"{}", "no pairs"},
		{"[]", "no pairs"},
		{"[0]", "no pairs"},
		{"[0, 1, 1, 3]", "no pairs"},
		{"[-1, 0, 1]", "no numbers"},
		{"[0, \"0\", 1]", "no numbers"},
		{"[0, 0, 2147483648]", "no numbers"},
		{"[0, 0, 0]", "do not ascend"},
		{"[0, 4, 2, 5, 1]", "do not ascend"},
		{"[0, 4, 2, 0, 1]", "do not ascend"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct worker_subset subset = {0};
		struct rlmd_error err = {0};

		assert_false(read_ranges(text_of(rows[i][0]), &subset, &err));
		if (!strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
	}
}

/* However long the text is, no more is made of it than the most files there are can need. */
static void test_how_many(void **state)
{
	enum { MOST = 200000 };
	char *text = xcalloc(MOST + 2, 20);

	(void)state;
	for (int more = 0; more < 2; more++) {
		struct worker_subset subset = {0};
		struct rlmd_error err = {0};
		char *at = stpcpy(text, "[0");

		for (int i = 0; i < MOST + more; i++)
			at += sprintf(at, ",%d,1", 2 * i);
		strcpy(at, "]");
		assert_int_equal(read_ranges(text_of(text), &subset, &err), !more);
		if (more)
			assert_non_null(strstr(err.text, "of too many parts"));
		else
			assert_int_equal(subset.count, MOST);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_read),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_how_many),
	};

	return cmocka_run_group_tests_name("translate", tests, NULL, NULL);
}

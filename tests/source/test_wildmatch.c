/* source/wildmatch: patterns beside what git's own matcher says of them (t3070-wildmatch). */
#include "source/wildmatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static bool matches(const char *pattern, const char *text, int flags)
{
	struct wildmatch *match = wildmatch_new(text_of(pattern), flags);
	bool is = wildmatch_matches(match, text_of(text));

	assert_int_equal(wildmatch_matches(match, text_of(text)), is); /* it keeps nothing */
	wildmatch_free(match);
	return is;
}

struct row {
	const char *pattern, *text;
	bool as_path, as_name; /* with and without WILDMATCH_PATH */
};

static void test_rows(void **state)
{
	static const struct row rows[] = {
		{"foo", "foo", true, true},
		{"bar", "foo", false, false},
		{"", "", true, true},
		{"", "a", false, false},
		{"???", "foo", true, true},
		{"??", "foo", false, false},
		{"*f", "foo", false, false},
		{"*foo*", "foo", true, true},
		{"*ob*a*r*", "foobar", true, true},
		{"\\*", "*", true, true},
		{"f\\*", "foo", false, false},
		{"foo\\", "foo\\", false, false}, /* broken */
		/* sets */
		{"*[al]?", "ball", true, true},
		{"[ten]", "ten", false, false},
		{"**[!te]", "ten", true, true},
		{"t[a-g]n", "ten", true, true},
		{"t[!a-g]n", "ten", false, false},
		{"t[^a-g]n", "ton", true, true},
		{"a[]]b", "a]b", true, true},
		{"a[]-]b", "a-b", true, true},
		{"a[]a-]b", "aab", true, true},
		{"]", "]", true, true},
		{"[a-c", "a", false, false}, /* never closed */
		{"[[:alpha:]][[:digit:]]", "a1", true, true},
		{"[[:upper:]]", "a", false, false},
		{"[\\-^]", "-", true, true},
		{"[,-.]", "-", true, true},
		/* slashes */
		{"foo/*", "foo/bar/baz", false, true},
		{"foo**bar", "foo/baz/bar", false, true},
		{"foo?bar", "foo/bar", false, true},
		{"foo[/]bar", "foo/bar", false, true},
		{"f[^eiu][^eiu][^eiu][^eiu][^eiu]r", "foo/bar", false, true},
		{"foo/**/bar", "foo/bar", true, false},
		{"foo/**/bar", "foo/a/b/bar", true, true},
		{"**/foo", "foo", true, false},
		{"**/foo", "a/b/foo", true, true},
		{"**/foo", "bar/bazfoo", false, false},
		{"foo/**", "foo/a/b", true, true},
		{"foo/**", "foo", false, false},
		{"**/*/a/b", "x/y/a/b", true, true},
		{"-*-*-*-*-*-*-12-*-*-*-m-*-*-*",
		 "-adobe-courier-bold-o-normal--12-120-75-75-m-70-"
		 "iso8859-1",
		 true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];

		if (matches(row->pattern, row->text, WILDMATCH_PATH) != row->as_path)
			fail_msg("as a path: %s, %s", row->pattern, row->text);
		if (matches(row->pattern, row->text, 0) != row->as_name)
			fail_msg("as a name: %s, %s", row->pattern, row->text);
	}
}

static void test_case(void **state)
{
	(void)state;
	assert_false(matches("Foo", "foO", 0));
	assert_true(matches("Foo", "foO", WILDMATCH_FOLD));
	assert_true(matches("*.[ch]", "A.C", WILDMATCH_FOLD));
	assert_true(matches("[A-C]x", "bX", WILDMATCH_FOLD));
	assert_false(matches("\xc3\x89", "\xc3\xa9", WILDMATCH_FOLD)); /* not of ASCII */
}

/* A backtracking matcher would not end on this one. */
static void test_many_stars(void **state)
{
	enum { STARS = 200, SIZE = 4000 };
	char pattern[2 * STARS + 2] = "";
	auto_free char *text = xcalloc(SIZE + 1, 1);

	(void)state;
	for (size_t i = 0; i < STARS; i++)
		memcpy(pattern + 2 * i, "*a", 3);
	memset(text, 'a', SIZE);
	assert_true(matches(pattern, text, 0));
	strcat(pattern, "b");
	assert_false(matches(pattern, text, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_case),
		cmocka_unit_test(test_many_stars),
	};

	return cmocka_run_group_tests_name("wildmatch", tests, NULL, NULL);
}

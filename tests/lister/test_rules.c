/* lister/rules: what .gitignore and .gitattributes say, as gitignore(5) has it. */
#include "lister/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static void assert_ignored(const char *file, const char *path, bool wanted)
{
	struct rules *rules = rules_new(false);
	size_t size = strlen(path);
	bool directory = path[size - 1] == '/';
	auto_free char *name = xstrndup(path, size - directory);

	assert_true(rules_add_ignores(rules, "", text_of(file)));
	if (rules_ignore(rules, name, directory) != wanted)
		fail_msg("%s of %s", path, file);
	rules_free(rules);
}

static void test_ignores(void **state)
{
	static const struct {
		const char *file, *path;
		bool ignored;
	} rows[] = {
		{"*.o\n", "a.o", true},
		{"*.o\n", "x/y/a.o", true},
		{"*.o\n", "a.c", false},
		{"/a\n", "a", true},
		{"/a\n", "x/a", false},
		{"x/a\n", "x/a", true},
		{"x/a\n", "y/x/a", false},
		{"build/\n", "build/", true},
		{"build/\n", "build", false},
		{"build/\n", "x/build/", true},
		{"a/**/b\n", "a/b", true},
		{"a/**/b\n", "a/x/y/b", true},
		{"*.o\n!keep.o\n", "keep.o", false},
		{"!keep.o\n*.o\n", "keep.o", true}, /* the last one wins */
		{"# a\n", "# a", false},
		{"\\# a\n", "# a", true},
		{"\\!a\n", "!a", true},
		{"a \n", "a", true},
		{"a\\ \n", "a ", true},
		{"a\r\n", "a", true},
		{"\xef\xbb\xbf"
		 "a",
		 "a", true},
		{"\n\na", "a", true},
		{"a[1-3]\n", "a2", true},
		{"a[1-3\n", "a2", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_ignored(rows[i].file, rows[i].path, rows[i].ignored);
}

/* Those of a directory are of what is below it, and win over those above. */
static void test_stack(void **state)
{
	struct rules *rules = rules_new(false);

	(void)state;
	assert_true(rules_add_ignores(rules, "", text_of("*.o\n")));
	assert_true(rules_add_ignores(rules, "x/", text_of("!*.o\n/a\n")));
	assert_int_equal(rules_depth(rules), 2);
	assert_true(rules_ignore(rules, "a.o", false));
	assert_false(rules_ignore(rules, "x/a.o", false));
	assert_true(rules_ignore(rules, "x/a", false));
	assert_false(rules_ignore(rules, "x/y/a", false));
	rules_cut(rules, 1);
	assert_true(rules_ignore(rules, "x/a.o", false));
	assert_false(rules_ignore(rules, "x/a", false));
	rules_free(rules);
	rules_free(NULL);
}

static void test_case(void **state)
{
	struct rules *rules = rules_new(true);

	(void)state;
	assert_true(rules_add_ignores(rules, "", text_of("*.O\n")));
	assert_true(rules_ignore(rules, "A.o", false));
	rules_free(rules);
}

static void test_marks(void **state)
{
	struct rules *rules = rules_new(false);

	(void)state;
	assert_true(rules_add_attributes(
		rules, "",
		text_of("# linguist-generated\n"
			"*.pb.c linguist-generated\n"
			"gen/** text  linguist-generated=true\tlinguist-vendored=false\n"
			"third/** linguist-vendored -linguist-generated\n"
			"[attr]linguist-generated x\n"
			"*.no linguist-generated-by-us\n")));
	assert_true(rules_add_attributes(rules, "gen/", text_of("hand.c !linguist-generated\n")));
	assert_int_equal(rules_state(rules, "x/a.pb.c", RULES_GENERATED), RULES_TRUE);
	assert_int_equal(rules_state(rules, "x/a.pb.c", RULES_VENDORED), RULES_UNSPECIFIED);
	assert_int_equal(rules_state(rules, "gen/a", RULES_GENERATED), RULES_TRUE);
	assert_int_equal(rules_state(rules, "gen/a", RULES_VENDORED), RULES_FALSE);
	assert_int_equal(rules_state(rules, "gen/hand.c", RULES_GENERATED), RULES_FALSE);
	assert_int_equal(rules_state(rules, "third/a.pb.c", RULES_GENERATED), RULES_FALSE);
	assert_int_equal(rules_state(rules, "third/a", RULES_VENDORED), RULES_TRUE);
	assert_int_equal(rules_state(rules, "a.no", RULES_GENERATED), RULES_UNSPECIFIED);
	rules_free(rules);
}

/* More than RULES_MAX at once are refused; room that was given back is room again. */
static void test_bounds(void **state)
{
	auto_free char *file = xcalloc(RULES_MAX, 1);
	struct rules *rules = rules_new(false);

	(void)state;
	memset(file, '#', RULES_MAX);
	assert_true(rules_add_ignores(rules, "", text_from(file, RULES_MAX - 1)));
	assert_true(rules_add_ignores(rules, "", text_from(file, 1)));
	assert_false(rules_add_ignores(rules, "", text_from(file, 1)));
	assert_false(rules_add_attributes(rules, "", text_from(file, 1)));
	assert_int_equal(rules_depth(rules), 2);
	rules_cut(rules, 1);
	assert_true(rules_add_attributes(rules, "", text_from(file, 1)));
	rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ignores), cmocka_unit_test(test_stack),
		cmocka_unit_test(test_case),    cmocka_unit_test(test_marks),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

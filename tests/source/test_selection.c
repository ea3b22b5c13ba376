/* source/selection: pathspecs and lists of names, and which files they want. */
#include "source/selection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SPECS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define COUNT(array) (sizeof(array) / sizeof *(array))

static size_t count(const char *const *names)
{
	size_t n = 0;

	while (names && names[n])
		n++;
	return n;
}

static struct selection *select_by(const char *const *include, const char *const *exclude,
				   const char *const *files, struct rlmd_error *err)
{
	const struct selection_options options = {
		.include = include,
		.include_count = count(include),
		.exclude = exclude,
		.exclude_count = count(exclude),
		.files = files,
		.file_count = count(files),
	};

	return selection_new(&options, err);
}

static const char *const paths[] = {"README", "a.c", "a/b.c", "a/b/c.h", "A.C", "a[1].c"};

/* Which of the paths above are wanted: one letter each. */
static void assert_wanted(const char *const *include, const char *const *exclude,
			  const char *wanted)
{
	struct rlmd_error err = {0};
	struct selection *selection = select_by(include, exclude, NULL, &err);

	if (!selection)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < COUNT(paths); i++)
		if (selection_wants(selection, paths[i]) != (wanted[i] == '+'))
			fail_msg("%s of %s: %s", paths[i], include ? include[0] : exclude[0],
				 wanted);
	assert_true(selection_enters(selection, "anything/"));
	selection_free(selection);
}

static void test_pathspecs(void **state)
{
	(void)state;
	assert_wanted(NULL, NULL, "++++++");
	assert_wanted(SPECS("*.c"), NULL, "-++--+");
	assert_wanted(SPECS("a"), NULL, "--++--");
	assert_wanted(SPECS("a/"), NULL, "--++--");
	assert_wanted(SPECS("./a"), NULL, "--++--");
	assert_wanted(SPECS("."), NULL, "++++++");
	assert_wanted(SPECS(":(glob)*.c"), NULL, "-+---+");
	assert_wanted(SPECS(":(glob)a/**"), NULL, "--++--");
	assert_wanted(SPECS(":(icase)*.c"), NULL, "-++-++");
	assert_wanted(SPECS(":(literal)a[1].c"), NULL, "-----+");
	assert_wanted(SPECS("a[1].c"), NULL, "-----+");
	assert_wanted(SPECS(":/README"), NULL, "+-----");
	assert_wanted(SPECS(":(top)README"), NULL, "+-----");
}

/* An exclusion wins, wherever it stands, and where it stands alone all else is wanted. */
static void test_exclusions(void **state)
{
	(void)state;
	assert_wanted(NULL, SPECS("*.c"), "+--++-");
	assert_wanted(SPECS("*.c"), SPECS("a"), "-+---+");
	assert_wanted(SPECS(":!a"), NULL, "++--++");
	assert_wanted(SPECS(":^a", "*.c"), NULL, "-+---+");
	assert_wanted(SPECS(":(exclude,icase)*.c"), NULL, "+--+--");
	assert_wanted(SPECS("a"), SPECS(":!a/b.c"), "--++--"); /* twice is not at all */
}

static void test_refused(void **state)
{
	static const char *const specs[] = {"", ":(nonsense)a", ":(glob,literal)a", ":(glob"};
	struct rlmd_error err = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(specs); i++) {
		assert_null(select_by(SPECS(specs[i]), NULL, NULL, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "is no pathspec"));
	}
}

/* A list wants just what it names, and what is in the directories that it names. */
static void test_list(void **state)
{
	struct selection *selection = select_by(NULL, NULL, SPECS("a/b/", "./README", "x/y"), NULL);

	(void)state;
	assert_non_null(selection);
	assert_true(selection_wants(selection, "README"));
	assert_true(selection_wants(selection, "a/b/c.h"));
	assert_false(selection_wants(selection, "a/b.c"));
	assert_false(selection_wants(selection, "README2"));
	assert_true(selection_enters(selection, "a/"));
	assert_true(selection_enters(selection, "a/b/c/"));
	assert_false(selection_enters(selection, "c/"));
	assert_true(selection_names(selection, "README"));
	assert_true(selection_names(selection, "a/"));
	assert_false(selection_names(selection, "a/b/c.h"));
	selection_free(selection);
}

static void test_names_that_nobody_met(void **state)
{
	struct selection *selection = select_by(NULL, NULL, SPECS("b", "a/x", "c", "b", "a"), NULL);
	size_t at = 0;

	(void)state;
	selection_meet(selection, "a/x/deep");
	assert_string_equal(selection_missing(selection, &at), "b"); /* once */
	assert_string_equal(selection_missing(selection, &at), "c");
	assert_null(selection_missing(selection, &at));
	selection_free(selection);
	selection_free(NULL);
}

static void test_names_outside(void **state)
{
	static const char *const names[] = {"/etc/passwd", "../x", "a/../../x", "a/.."};
	struct rlmd_error err = {0};
	struct selection *selection;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_null(select_by(NULL, NULL, SPECS(names[i]), &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		assert_non_null(strstr(err.text, "which is not below the directory"));
	}
	selection = select_by(NULL, NULL, SPECS("a/..b", "..."), NULL);
	assert_true(selection_wants(selection, "..."));
	selection_free(selection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pathspecs),
		cmocka_unit_test(test_exclusions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_names_that_nobody_met),
		cmocka_unit_test(test_names_outside),
	};

	return cmocka_run_group_tests_name("selection", tests, NULL, NULL);
}

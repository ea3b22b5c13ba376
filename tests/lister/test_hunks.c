/* lister/hunks: which lines of a text are other than before. */
#include "lister/hunks.h"

#include <git2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static void assert_hunks(const char *before, const char *after, const char *wanted)
{
	json_t *hunks = hunks_between(text_of(before), text_of(after));
	auto_free char *found = json_dumps(hunks, JSON_COMPACT);

	assert_string_equal(found, wanted);
	json_decref(hunks);
}

static void test_changes(void **state)
{
	(void)state;
	assert_hunks("a\nb\n", "a\nb\n", "[]");
	assert_hunks("", "", "[]");
	assert_hunks("a\nb\nc\n", "a\nB\nc\n",
		     "[{\"start\":1,\"end\":3,\"text\":\"@@ -1,3 +1,3 @@\\n a\\n-b\\n+B\\n c\\n\","
		     "\"changed\":[[2,2]]}]");
	assert_hunks("", "a\nb\n",
		     "[{\"start\":1,\"end\":2,\"text\":\"@@ -0,0 +1,2 @@\\n+a\\n+b\\n\","
		     "\"changed\":[[1,2]]}]");
	/* where lines are gone, those that are next to each other now */
	assert_hunks("a\nb\nc\n", "a\nc\n",
		     "[{\"start\":1,\"end\":2,\"text\":\"@@ -1,3 +1,2 @@\\n a\\n-b\\n c\\n\","
		     "\"changed\":[[1,2]]}]");
	assert_hunks("a\nb\n", "b\n",
		     "[{\"start\":1,\"end\":1,\"text\":\"@@ -1,2 +1 @@\\n-a\\n b\\n\",\"changed\":"
		     "[[1,1]]}]");
	assert_hunks("a\nb\n", "a\n",
		     "[{\"start\":1,\"end\":1,\"text\":\"@@ -1,2 +1 @@\\n a\\n-b\\n\",\"changed\":"
		     "[[1,1]]}]");
	assert_hunks("a\n", "",
		     "[{\"start\":1,\"end\":0,\"text\":\"@@ -1 +0,0 @@\\n-a\\n\",\"changed\":[]}]");
	/* two changes within one hunk */
	assert_hunks("a\nb\nc\n", "A\nb\nC\nd\n",
		     "[{\"start\":1,\"end\":4,\"text\":\"@@ -1,3 +1,4 @@\\n-a\\n+A\\n b\\n-c\\n"
		     "+C\\n+d\\n\",\"changed\":[[1,1],[3,4]]}]");
}

/* Bytes that are no text have no lines. */
static void test_binary(void **state)
{
	json_t *hunks = hunks_between(text_from("a\0b\n", 4), text_from("a\0c\n", 4));

	(void)state;
	assert_int_equal(json_array_size(hunks), 0);
	json_decref(hunks);
}

/* So many lines are not compared one by one: one hunk, from the first to the last other one. */
static void test_many_lines(void **state)
{
	enum { LINES = 60000 };
	auto_free char *before = xcalloc(2 * LINES, 1), *after = NULL, *found = NULL;
	json_t *hunks;

	(void)state;
	for (size_t i = 0; i < LINES; i++)
		memcpy(before + 2 * i, "a\n", 2);
	after = xcalloc(2 * LINES, 1);
	memcpy(after, before, 2 * LINES);
	after[2 * 9] = after[2 * 49999] = 'b';
	hunks = hunks_between(text_from(before, 2 * LINES), text_from(after, 2 * LINES));
	found = json_dumps(hunks, JSON_COMPACT);
	assert_string_equal(found, "[{\"start\":10,\"end\":50000,\"text\":\"\",\"changed\":"
				   "[[10,50000]]}]");
	json_decref(hunks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_many_lines),
	};
	int failed;

	git_libgit2_init();
	failed = cmocka_run_group_tests_name("hunks", tests, NULL, NULL);
	git_libgit2_shutdown();
	return failed;
}

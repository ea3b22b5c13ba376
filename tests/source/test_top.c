/* source/top: where a work tree begins, by what git looks at. */
#include "source/top.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

static char *place;

static int enter(void **state)
{
	char name[] = "/tmp/test_top-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(name));
	place = realpath(name, NULL);
	return chdir(place);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	(void)state;
	if (chdir("/") || nftw(place, remove_entry, 8, FTW_DEPTH | FTW_PHYS))
		return 1;
	free(place);
	return 0;
}

static void make(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void put(const char *path, const char *text)
{
	assert_true(file_write(path, text_of(text), NULL));
}

static void make_repository(const char *path)
{
	auto_free char *head = xasprintf("%s/HEAD", path), *objects = xasprintf("%s/objects", path);
	auto_free char *refs = xasprintf("%s/refs", path);

	make(path);
	put(head, "ref: refs/heads/main\n");
	make(objects);
	make(refs);
}

/* `wanted` as seen from the place; NULL: there is none. */
static void assert_top(const char *path, const char *wanted)
{
	auto_free char *top = NULL, *whole = wanted ? xasprintf("%s%s", place, wanted) : NULL;
	struct rlmd_error err = {0};

	assert_true(top_find(path, &top, &err));
	if (wanted)
		assert_string_equal(top, whole);
	else
		assert_null(top);
}

static void test_upwards(void **state)
{
	(void)state;
	make("a");
	make("a/b");
	assert_top("a/b", NULL);
	make("a/.git"); /* it is no repository yet */
	assert_top("a/b", NULL);
	rmdir("a/.git");
	make_repository("a/.git");
	assert_top("a/b", "/a");
	assert_top("a", "/a");
	assert_top(".", NULL);
	make_repository("a/b/.git");
	assert_top("a/b", "/a/b");
	assert_top("not/there", NULL);
}

/* A work tree that was added to a repository has a file with the way there. */
static void test_gitfile(void **state)
{
	auto_free char *top = NULL;
	struct rlmd_error err = {0};

	(void)state;
	make("a");
	put("a/.git", "gitdir: ../kept\n");
	assert_false(top_find("a", &top, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "a/.git leads to no repository"));
	make_repository("kept");
	assert_top("a", "/a");
}

static void test_repository(void **state)
{
	auto_close int fd = -1;

	(void)state;
	make("r");
	fd = open("r", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_false(top_is_repository(fd));
	assert_false(top_is_repository(-1));
	put("r/HEAD", "");
	assert_false(top_is_repository(fd));
	make("r/objects");
	put("r/refs", "");
	assert_false(top_is_repository(fd)); /* no directory */
	put("r/commondir", "../other\n");
	assert_true(top_is_repository(fd));
}

static void test_place(void **state)
{
	auto_free char *below = NULL, *itself = NULL;

	(void)state;
	make("a");
	make("a/b");
	below = top_prefix(place, "a/b/");
	itself = top_prefix(place, ".");
	assert_string_equal(below, "a/b/");
	assert_string_equal(itself, "");
}

static void test_path_in_a_file(void **state)
{
	auto_close int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *a = xasprintf("%s/a", place), *path = NULL, *again = NULL;

	(void)state;
	make("a");
	put("f", "to:  a \n");
	path = top_read_path(fd, "f", "to:", place);
	assert_string_equal(path, a);
	put("f", a);
	again = top_read_path(fd, "f", "", "/");
	assert_string_equal(again, a);
	assert_null(top_read_path(fd, "f", "to:", place));
	put("f", "to: b");
	assert_null(top_read_path(fd, "f", "to:", place));
	put("f", "to: ");
	assert_null(top_read_path(fd, "f", "to:", place));
	assert_null(top_read_path(fd, "none", "to:", place));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_upwards), TEST(test_gitfile),        TEST(test_repository),
		TEST(test_place),   TEST(test_path_in_a_file),
	};

	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}

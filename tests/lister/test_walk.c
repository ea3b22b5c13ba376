/*
 * engine/walk: the order of paths, what is no file, and a tree that somebody changes meanwhile.
 */
#include "lister/walk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Entries that directories tell before their disk fails; -1: it does not. */
static int healthy = -1;

/* In place of the C library's, whose other name this may be; struct dirent is the same. */
struct dirent *readdir(DIR *directory)
{
	struct dirent *(*next)(DIR *);

	*(void **)&next = dlsym(RTLD_NEXT, "readdir64");
	if (healthy) {
		healthy -= healthy > 0;
		return next(directory);
	}
	errno = EIO;
	return NULL;
}

static char room[] = "/tmp/rlmd-walk-XXXXXX";

/* The steps of a walk: "f a/b\n" for a file, and its content where it has some. */
struct told {
	char text[4096];
	const char *at;        /* the entry before which something happens, or NULL */
	void (*happens)(void); /* once the walk is there */
};

/* As a caller has it who wants all of it. */
static void note(struct told *told, struct walk *walk, const struct walk_entry *entry)
{
	static const char kinds[] = "fl*";
	size_t used = strlen(told->text);
	char bytes[32] = "", kind = '?';
	int fd;

	if (entry->kind == WALK_DIRECTORY && walk_enter(walk))
		return;
	if (entry->kind == WALK_FILE && (fd = walk_open(walk)) >= 0)
		assert_true(read(fd, bytes, sizeof bytes - 1) >= 0);
	else if (entry->kind == WALK_FILE || entry->kind == WALK_DIRECTORY)
		fd = -1;
	else
		fd = 0;
	if (fd >= 0)
		kind = kinds[entry->kind];
	snprintf(told->text + used, sizeof told->text - used, "%c %s %s\n", kind, entry->path,
		 bytes);
	if (told->at && !strcmp(told->at, entry->path))
		told->happens();
}

static bool walk_all(struct told *told, struct rlmd_error *err)
{
	struct walk *walk = walk_new("tree", err);
	struct walk_entry entry;

	if (!walk)
		return false;
	while (walk_next(walk, &entry))
		note(told, walk, &entry);
	walk_free(walk);
	return true;
}

static void put(const char *path, const char *content)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

static void make(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(strrchr(room, '-') + 1, "XXXXXX");
	if (!mkdtemp(room) || chdir(room))
		return -1;
	make("tree");
	make("outside");
	make("outside/c");
	put("outside/secret", "STOLEN");
	put("outside/c/deep", "STOLEN");
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", room);
	return chdir("/") || system(command);
}

static void assert_walk(struct told *told, const char *expected)
{
	struct rlmd_error err;

	if (!walk_all(told, &err))
		fail_msg("%s", err.text);
	assert_string_equal(told->text, expected);
}

/* A directory sorts as if its name ended in '/': the order of "git ls-files". */
static void test_order(void **state)
{
	struct told told = {.at = NULL};

	(void)state;
	make("tree/a");
	make("tree/.git");
	put("tree/.git/config", "");
	put("tree/a/x", "1");
	put("tree/a.b", "2");
	put("tree/a0", "3");
	assert_int_equal(mkfifo("tree/fifo", 0600), 0);
	assert_int_equal(symlink("/etc/passwd", "tree/link"), 0);
	assert_walk(&told, "f a.b 2\nf a/x 1\nf a0 3\n* fifo \nl link \n");
}

static void swap_ahead(void)
{
	assert_int_equal(rename("tree/b", "gone"), 0);
	assert_int_equal(symlink("../outside", "tree/b"), 0);
}

/* A directory that becomes a link before it is entered is not entered. */
static void test_swapped_before(void **state)
{
	struct told told = {.at = "a", .happens = swap_ahead};

	(void)state;
	make("tree/b");
	put("tree/a", "1");
	put("tree/b/secret", "mine");
	put("tree/c", "2");
	assert_walk(&told, "f a 1\n? b/ \nf c 2\n");
}

/* One that becomes a link while the walk is in it stays the one that it was. */
static void test_swapped_within(void **state)
{
	struct told told = {.at = "b/a", .happens = swap_ahead};

	(void)state;
	make("tree/b");
	make("tree/b/c");
	put("tree/b/a", "1");
	put("tree/b/c/deep", "mine");
	put("tree/b/secret", "mine");
	assert_walk(&told, "f b/a 1\nf b/c/deep mine\nf b/secret mine\n");
}

static void swap_file(void)
{
	assert_int_equal(unlink("tree/b") | unlink("tree/c"), 0);
	assert_int_equal(symlink("../outside/secret", "tree/b"), 0);
	assert_int_equal(mkfifo("tree/c", 0600), 0);
}

/* A file that becomes a link is not followed, one that becomes a FIFO not waited for. */
static void test_swapped_files(void **state)
{
	struct told told = {.at = "a", .happens = swap_file};

	(void)state;
	put("tree/a", "1");
	put("tree/b", "2");
	put("tree/c", "3");
	assert_walk(&told, "f a 1\n? b \n? c \n");
}

/* A tree without a bottom takes no descriptors without end. */
static void test_deep(void **state)
{
	struct told told = {.at = NULL};
	char here[sizeof room];

	(void)state;
	strcpy(here, room);
	assert_int_equal(chdir("tree"), 0);
	for (int i = 0; i < 300; i++) {
		make("d");
		assert_int_equal(chdir("d"), 0);
	}
	put("bottom", "1");
	assert_int_equal(chdir(here), 0);
	assert_true(walk_all(&told, NULL));
	assert_memory_equal(told.text, "? d/d/d", 7);
	assert_null(strstr(told.text, "bottom"));
}

/* A directory that cannot be read to its end is told, and not taken for a smaller one. */
static void test_half_listed(void **state)
{
	struct told told = {0};
	struct rlmd_error err;

	(void)state;
	make("tree/d");
	put("tree/d/a", "1");
	put("tree/d/b", "2");
	healthy = 5; /* of the tree ".", ".." and "d"; of that two */
	assert_true(walk_all(&told, NULL));
	assert_string_equal(told.text, "? d/ \n");
	healthy = 2;
	assert_false(walk_all(&told, &err));
	assert_non_null(strstr(err.text, "Input/output error"));
	healthy = -1;
}

/* A directory that nobody wants is not entered: neither listed nor opened. */
static void test_passed_over(void **state)
{
	struct walk_entry entry;
	struct walk *walk;

	(void)state;
	make("tree/a");
	put("tree/a/x", "1");
	put("tree/b", "2");
	walk = walk_new("tree", NULL);
	assert_true(walk_next(walk, &entry));
	assert_string_equal(entry.path, "a/");
	assert_int_equal(entry.depth, 1);
	assert_true(walk_next(walk, &entry));
	assert_string_equal(entry.path, "b");
	assert_false(walk_next(walk, &entry));
	walk_free(walk);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_order),         TEST(test_swapped_before), TEST(test_swapped_within),
		TEST(test_swapped_files), TEST(test_deep),           TEST(test_half_listed),
		TEST(test_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

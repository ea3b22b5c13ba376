#include "source/file_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 5000 };

/* A file of that path, whose text is its path. */
static size_t add(struct file_index *index, const char *path, size_t at)
{
	struct text_scan scan = {0};

	text_scan_feed(&scan, text_of(path));
	text_scan_end(&scan);
	file_index_add(index, path, at, at / 2, &scan, at ? "modified" : NULL);
	return at + strlen(path);
}

static void assert_entry(const struct file_index *index, size_t place, const char *path,
			 size_t first_byte)
{
	struct file_entry entry = file_index_get(index, place);

	assert_true(text_equal(entry.path, path));
	assert_int_equal(entry.first_byte, first_byte);
	assert_int_equal(entry.first_character, first_byte / 2);
	assert_int_equal(entry.bytes, strlen(path));
	assert_string_equal(entry.path.bytes, path);
	assert_string_equal(entry.status ? entry.status : "none", first_byte ? "modified" : "none");
}

/* Files keep their order. */
static void test_order(void **state)
{
	static const char *const paths[] = {"b", "a/ä", "a", "", "a-", "ab"};
	struct file_index *index = file_index_new();
	size_t at = 0, i;

	(void)state;
	for (i = 0; i < 6; i++)
		at = add(index, paths[i], at);
	assert_true(file_index_seal(index, NULL));
	assert_int_equal(file_index_count(index), 6);
	for (i = 0, at = 0; i < 6; at += strlen(paths[i++]))
		assert_entry(index, i, paths[i], at);
	assert_int_equal(file_index_get(index, 1).characters, 3);
	assert_int_equal(file_index_get(index, 1).highest, 0xe4);
	assert_int_equal(file_index_changes(index).size, 0);
	file_index_unref(index);
}

/* Of several files with one path only the last is seen. */
static void test_one_path_twice(void **state)
{
	struct file_index *index = file_index_new();

	(void)state;
	add(index, "a", 0);
	add(index, "b", 2);
	add(index, "a", 4);
	add(index, "c", 6);
	add(index, "a", 8);
	assert_int_equal(file_index_count(index), 5);
	assert_true(file_index_seal(index, NULL));
	assert_int_equal(file_index_count(index), 3);
	assert_entry(index, 0, "b", 2);
	assert_entry(index, 1, "c", 6);
	assert_entry(index, 2, "a", 8);
	file_index_unref(index);
}

static void test_nothing(void **state)
{
	struct file_index *index = file_index_new();

	(void)state;
	assert_true(file_index_seal(index, NULL));
	assert_int_equal(file_index_count(index), 0);
	assert_true(memfile_size(file_index_file(index)) > 0);
	file_index_unref(index);
	assert_int_equal(file_index_count(NULL), 0);
	assert_null(file_index_ref(NULL));
	file_index_unref(NULL);
	index = file_index_new(); /* and one that was given up */
	add(index, "a", 0);
	file_index_set_changes(index, text_of("[]"));
	assert_ptr_equal(file_index_ref(index), index);
	file_index_unref(index);
	file_index_unref(index);
}

/* More than what lies on the heap; the changes come with it. */
static void test_many(void **state)
{
	struct file_index *index = file_index_new();
	size_t at = 0, i;
	char path[32];

	(void)state;
	for (i = 0; i < MANY; i++) {
		snprintf(path, sizeof path, "d%zu/f%zu", i % 7, i * 7919 % MANY);
		at = add(index, path, at);
	}
	file_index_set_changes(index, text_of("[{\"path\": \"ä\"}]"));
	assert_true(file_index_seal(index, NULL));
	assert_true(memfile_size(file_index_file(index)) > MEMFILE_HEAP_MAX);
	for (i = 0, at = 0; i < MANY; i++, at += strlen(path)) {
		snprintf(path, sizeof path, "d%zu/f%zu", i % 7, i * 7919 % MANY);
		assert_entry(index, i, path, at);
	}
	assert_true(text_equal(file_index_changes(index), "[{\"path\": \"ä\"}]"));
	file_index_unref(index);
}

/* The line that stands before a file's text. */
static void test_header(void **state)
{
	(void)state;
	assert_int_equal(file_index_header(strlen("a/b")), strlen("===== a/b =====\n"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),   cmocka_unit_test(test_one_path_twice),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_many),
		cmocka_unit_test(test_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

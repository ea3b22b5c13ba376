/* What code was told that a clock has a part in: kept, told again, and never with a key in it. */
#include "llm/told.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "llm/key.h"

#define KEY "sk-live-0123456789"

enum { FILES_MAX = 1 << 20 };

static char directory[64];
static struct keys keys;

/* Calls `fn` for each file that is kept; how many there are. */
static size_t for_each_file(void (*fn)(const char *path))
{
	DIR *listing = opendir(directory);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(listing);
	while ((entry = readdir(listing))) {
		auto_free char *path = xasprintf("%s/%s", directory, entry->d_name);

		if (*entry->d_name == '.')
			continue;
		count++;
		if (fn)
			fn(path);
	}
	closedir(listing);
	return count;
}

static void remove_file(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/rlmd-told-XXXXXX");
	keys_add(&keys, KEY);
	return !mkdtemp(directory);
}

static int teardown(void **state)
{
	(void)state;
	for_each_file(remove_file);
	keys_done(&keys);
	return rmdir(directory);
}

static void assert_told(struct told *told, const char *asked, const char *now, const char *expected)
{
	struct llm_told name;
	struct rlmd_text words = text_of(now);
	char *before;

	told_name(told, text_of(asked), &name);
	before = told_find(told, &name, &words.size);
	if (before)
		words.bytes = before;
	told_keep(told, &name, words);
	assert_int_equal(words.size, strlen(expected));
	assert_memory_equal(words.bytes, expected, words.size);
	free(before);
}

/* Without directories the words are what they are. */
static void test_off(void **state)
{
	struct told *told = told_new(NULL, NULL, &keys);

	(void)state;
	assert_told(told, "time", "9 s left", "9 s left");
	assert_told(told, "time", "8 s left", "8 s left");
	told_free(told);
	told_free(NULL);
}

/* Each question has its answers in the order in which it was asked; what was not recorded is told
 * as it is now. */
static void test_record_and_replay(void **state)
{
	struct told *told = told_new(NULL, directory, &keys);

	(void)state;
	assert_told(told, "time", "9 s left", "9 s left");
	assert_told(told, "budget", "$1\n\"left\" \xe2\x82\xac", "$1\n\"left\" \xe2\x82\xac");
	assert_told(told, "time", "8 s left", "8 s left");
	assert_told(told, "empty", "", "");
	told_free(told);
	assert_int_equal(for_each_file(NULL), 4);

	told = told_new(directory, NULL, &keys);
	assert_told(told, "budget", "$0", "$1\n\"left\" \xe2\x82\xac");
	assert_told(told, "time", "1 s left", "9 s left");
	assert_told(told, "time", "1 s left", "8 s left");
	assert_told(told, "time", "1 s left", "1 s left");
	assert_told(told, "empty", "full", "");
	assert_told(told, "weather", "rain", "rain");
	told_free(told);
	assert_int_equal(for_each_file(NULL), 4);
}

/* Both at once: what was told again is kept again. */
static void test_recorded_again(void **state)
{
	struct told *told = told_new(NULL, directory, &keys);

	(void)state;
	assert_told(told, "time", "9 s left", "9 s left");
	told_free(told);
	told = told_new(directory, directory, &keys);
	assert_told(told, "time", "5 s left", "9 s left");
	assert_told(told, "time", "4 s left", "4 s left");
	told_free(told);
	told = told_new(directory, NULL, &keys);
	assert_told(told, "time", "", "9 s left");
	assert_told(told, "time", "", "4 s left");
	told_free(told);
}

static void assert_keyless(const char *path)
{
	size_t size;
	auto_free char *bytes = file_read(path, FILES_MAX, &size, NULL);

	assert_non_null(bytes);
	assert_null(memmem(bytes, size, KEY, strlen(KEY)));
	assert_non_null(memmem(bytes, size, "before ", 7));
	assert_non_null(memmem(bytes, size, " after", 6));
}

static void test_no_key_is_kept(void **state)
{
	struct told *told = told_new(NULL, directory, &keys);

	(void)state;
	assert_told(told, "env", "before " KEY " after", "before " KEY " after");
	told_free(told);
	assert_int_equal(for_each_file(assert_keyless), 1);
}

static const char *spoilt;

static void spoil(const char *path)
{
	assert_true(file_write(path, text_of(spoilt), NULL));
}

/* A file that is none of ours tells nothing. */
static void test_spoilt(void **state)
{
	static const char *const contents[] = {
		"", "{", "[]", "{\"told\": 1}", "{\"other\": \"x\"}", "{\"told\": \"\xff\"}"};
	struct told *told = told_new(NULL, directory, &keys);

	(void)state;
	assert_told(told, "time", "9 s left", "9 s left");
	told_free(told);
	for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
		spoilt = contents[i];
		assert_int_equal(for_each_file(spoil), 1);
		told = told_new(directory, NULL, &keys);
		assert_told(told, "time", "3 s left", "3 s left");
		told_free(told);
	}
}

/* What cannot be kept is told all the same. */
static void test_nowhere_to_keep(void **state)
{
	auto_free char *nowhere = xasprintf("%s/absent", directory);
	struct told *told = told_new(nowhere, nowhere, &keys);

	(void)state;
	assert_told(told, "time", "9 s left", "9 s left");
	told_free(told);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_off),
		TEST(test_record_and_replay),
		TEST(test_recorded_again),
		TEST(test_no_key_is_kept),
		TEST(test_spoilt),
		TEST(test_nowhere_to_keep),
	};

	return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}

/* Values that code got from a clock or the host: recorded, found again, never with a key in them.
 */
#include "llm/recording.h"

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
#include "base/loop.h"
#include "llm/kept.h"

#define KEY "sk-live-0123456789"

enum { FILES_MAX = 1 << 20 };

static char directory[64];
static struct event_base *base;
static struct kept kept;

/* A job that replays the one directory and records into the other. */
static void begin(const char *replay, const char *record)
{
	kept = (struct kept){.seen = json_object()};
	key_list_add(&kept.keys, KEY);
	if (replay || record)
		kept.recording = recording_new(base, record, replay, &kept.keys, NULL);
	assert_true(kept.recording || (!replay && !record));
}

static void end(void)
{
	kept_done(&kept);
}

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
	base = loop_new();
	return !mkdtemp(directory);
}

static int teardown(void **state)
{
	(void)state;
	for_each_file(remove_file);
	event_base_free(base);
	return rmdir(directory);
}

static void assert_told(const char *asked, const char *now, const char *expected)
{
	struct kept_value value;
	struct rlmd_text words = text_of(now);
	char *before;

	kept_value_name(&kept, text_of(asked), &value);
	before = kept_value_find(&kept, &value, &words.size);
	if (before)
		words.bytes = before;
	kept_value_keep(&kept, &value, words, before);
	assert_int_equal(words.size, strlen(expected));
	assert_memory_equal(words.bytes, expected, words.size);
	free(before);
}

/* Without directories the words are what they are. */
static void test_off(void **state)
{
	(void)state;
	begin(NULL, NULL);
	assert_told("time", "9 s left", "9 s left");
	assert_told("time", "8 s left", "8 s left");
	end();
}

/* Each question has its answers in the order in which it was asked; what was not recorded is told
 * as it is now. */
static void test_record_and_replay(void **state)
{
	(void)state;
	begin(NULL, directory);
	assert_told("time", "9 s left", "9 s left");
	assert_told("budget", "$1\n\"left\" \xe2\x82\xac", "$1\n\"left\" \xe2\x82\xac");
	assert_told("time", "8 s left", "8 s left");
	assert_told("empty", "", "");
	end();
	assert_int_equal(for_each_file(NULL), 4);

	begin(directory, NULL);
	assert_told("budget", "$0", "$1\n\"left\" \xe2\x82\xac");
	assert_told("time", "1 s left", "9 s left");
	assert_told("time", "1 s left", "8 s left");
	assert_told("time", "1 s left", "1 s left");
	assert_told("empty", "full", "");
	assert_told("weather", "rain", "rain");
	end();
	assert_int_equal(for_each_file(NULL), 4);
}

/* Both at once: what was told again is kept again. */
static void test_recorded_again(void **state)
{
	(void)state;
	begin(NULL, directory);
	assert_told("time", "9 s left", "9 s left");
	end();
	begin(directory, directory);
	assert_told("time", "5 s left", "9 s left");
	assert_told("time", "4 s left", "4 s left");
	end();
	begin(directory, NULL);
	assert_told("time", "", "9 s left");
	assert_told("time", "", "4 s left");
	end();
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
	(void)state;
	begin(NULL, directory);
	assert_told("env", "before " KEY " after", "before " KEY " after");
	end();
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
	(void)state;
	begin(NULL, directory);
	assert_told("time", "9 s left", "9 s left");
	end();
	for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
		spoilt = contents[i];
		assert_int_equal(for_each_file(spoil), 1);
		begin(directory, NULL);
		assert_told("time", "3 s left", "3 s left");
		end();
	}
}

/* An answer that cannot be kept is told all the same. */
static void test_nowhere_to_keep(void **state)
{
	auto_free char *nowhere = xasprintf("%s/absent", directory);
	(void)state;
	begin(NULL, nowhere);
	assert_int_equal(rmdir(nowhere), 0);
	assert_told("time", "9 s left", "9 s left");
	end();
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

	return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}

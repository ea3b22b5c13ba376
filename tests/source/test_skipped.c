/* source/skipped: what is told about the files that were left out. */
#include "source/skipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void assert_note(const json_t *notes, size_t index, const char *wanted)
{
	assert_string_equal(json_string_value(json_array_get(notes, index)), wanted);
}

static void test_notes(void **state)
{
	struct skipped skipped = {0};
	json_t *notes = json_array();
	auto_free char *left_out = NULL;

	(void)state;
	skipped_add(&skipped, SKIP_BINARY, "a.png", NULL);
	skipped_add(&skipped, SKIP_SECRET, "id_rsa", "an SSH key");
	skipped_add(&skipped, SKIP_BINARY, "b\033.png", NULL);
	skipped_add(&skipped, SENT_SECRET, ".env", "an environment");
	skipped_tell(&skipped, "src", notes, &left_out);
	assert_int_equal(json_array_size(notes), 3);
	assert_note(notes, 0,
		    "src: skipped 1 file that looks like a secret: id_rsa (an SSH key); "
		    "to send one, name it itself");
	assert_note(notes, 1, "src: skipped 2 binary files: a.png, b\\x1b.png");
	assert_note(notes, 2,
		    "src: sends 1 file that looks like a secret: .env (an environment); "
		    "allow-secrets says so");
	/* without the one that was sent */
	assert_string_equal(left_out, "1 file that looks like a secret, 2 binary files");
	skipped_done(&skipped);
	json_decref(notes);
}

/* All by name, with a word for the reason; those that were sent are none of them. */
static void test_list(void **state)
{
	struct skipped skipped = {0};
	const char *path, *reason;

	(void)state;
	assert_false(skipped_get(skipped.all, 0, &path, &reason));
	for (int i = 0; i < 30; i++)
		skipped_add(&skipped, SKIP_SECRET, ".env", "an environment");
	skipped_add(&skipped, SENT_SECRET, "id_rsa", "an SSH key");
	skipped_add(&skipped, SKIP_MISSING, "caf\xe9", NULL);
	assert_true(skipped_get(skipped.all, 29, &path, &reason));
	assert_string_equal(path, ".env");
	assert_string_equal(reason, "secret");
	assert_true(skipped_get(skipped.all, 30, &path, &reason));
	assert_string_equal(path, "caf\xef\xbf\xbd");
	assert_string_equal(reason, "missing");
	assert_false(skipped_get(skipped.all, 31, &path, &reason));
	skipped_done(&skipped);
}

/* Five names are enough, but of secrets, which somebody has to look at. */
static void test_many(void **state)
{
	struct skipped skipped = {0};
	json_t *notes = json_array();
	auto_free char *left_out = NULL;
	char name[16];

	(void)state;
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof name, "%d", i);
		skipped_add(&skipped, SKIP_LINK, name, NULL);
		skipped_add(&skipped, SKIP_SECRET, name, NULL);
	}
	skipped_tell(&skipped, ".", notes, &left_out);
	assert_note(notes, 0,
		    ".: skipped 7 files that look like secrets: 0, 1, 2, 3, 4, 5, 6; to "
		    "send one, name it itself");
	assert_note(notes, 1, ".: skipped 7 symbolic links: 0, 1, 2, 3, 4, ...");
	skipped_done(&skipped);
	json_decref(notes);
}

/* Several directories are told of one by one, and add up to one phrase. */
static void test_again(void **state)
{
	struct skipped skipped = {0};
	json_t *notes = json_array();
	auto_free char *left_out = NULL;

	(void)state;
	skipped_tell(&skipped, "none", notes, &left_out);
	assert_int_equal(json_array_size(notes), 0);
	assert_null(left_out);
	skipped_add(&skipped, SKIP_LARGE, "a", NULL);
	skipped_tell(&skipped, "x", notes, &left_out);
	skipped_add(&skipped, SKIP_LARGE, "b", NULL);
	skipped_tell(&skipped, "y", notes, &left_out);
	assert_note(notes, 1,
		    "y: skipped 1 large file: b; to send larger ones, give a higher "
		    "max-file-size");
	assert_string_equal(left_out, "1 large file, 1 large file");
	skipped_done(&skipped);
	json_decref(notes);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(skipped_kind(LISTING_LINK), SKIP_LINK);
	assert_int_equal(skipped_kind(LISTING_SUBMODULE), SKIP_SUBMODULE);
	assert_int_equal(skipped_kind(LISTING_GENERATED), SKIP_GENERATED);
	assert_int_equal(skipped_kind(LISTING_IGNORED), SKIP_IGNORED);
	assert_int_equal(skipped_kind(LISTING_UNREADABLE), SKIP_UNREADABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes), cmocka_unit_test(test_list),
		cmocka_unit_test(test_many),  cmocka_unit_test(test_again),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests_name("skipped", tests, NULL, NULL);
}

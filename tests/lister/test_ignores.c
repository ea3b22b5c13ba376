/* lister/ignores: the file .rlmdignore at the top of a directory. */
#include "lister/ignores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"

struct place {
	char directory[32];
	char *file; /* owned */
	json_t *notes;
};

static int make_place(void **state)
{
	struct place *place = xcalloc(1, sizeof *place);

	snprintf(place->directory, sizeof place->directory, "/tmp/ignores.XXXXXX");
	if (!mkdtemp(place->directory))
		return -1;
	place->file = xasprintf("%s/.rlmdignore", place->directory);
	place->notes = json_array();
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;

	unlink(place->file);
	rmdir(place->directory);
	json_decref(place->notes);
	free(place->file);
	free(place);
	return 0;
}

static struct ignores *with(struct place *place, const char *prefix, const char *text)
{
	FILE *file = fopen(place->file, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return ignores_of_directory(place->directory, prefix, place->notes);
}

static void test_files(void **state)
{
	static const struct {
		const char *rules, *prefix, *path;
		bool ignored;
	} rows[] = {
		{"*.min.js\n", "", "a/b.min.js", true},
		{"*.min.js\n", "", "a/b.js", false},
		{"/vendor/\n", "", "vendor/a/b.c", true},
		{"/vendor/\n", "", "src/vendor/b.c", false},
		{"vendor/\n", "", "src/vendor/b.c", true},
		{"vendor/\n", "", "vendor", false},
		{"/src/old/\n", "src/", "old/a.c", true},
		{"/old/\n", "src/", "old/a.c", false},
		{"*\n!*.c\n", "", "a.c", false},
		{"*\n!*.c\n", "", "a.h", true},
		{"/a\n!/a/b.c\n", "", "a/b.c", true}, /* its directory is ignored */
		{"# a\n\n", "", "a", false},
		{"日本/\n", "", "日本/x", true},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ignores *ignores = with(*state, rows[i].prefix, rows[i].rules);

		assert_non_null(ignores);
		if (ignores_file(ignores, rows[i].path) != rows[i].ignored)
			fail_msg("%s of %s", rows[i].path, rows[i].rules);
		ignores_free(ignores);
	}
	assert_false(ignores_file(NULL, "a"));
}

static void test_none(void **state)
{
	struct place *place = *state;

	assert_null(ignores_of_directory(place->directory, "", place->notes));
	assert_null(ignores_of_directory("/nowhere", "", place->notes));
	assert_int_equal(json_array_size(place->notes), 0);
	assert_int_equal(symlink("/etc/passwd", place->file), 0);
	assert_null(ignores_of_directory(place->directory, "", place->notes));
	assert_int_equal(json_array_size(place->notes), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files, make_place, remove_place),
		cmocka_unit_test_setup_teardown(test_none, make_place, remove_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

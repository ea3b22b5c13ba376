/* batch/traces: a file for each id, whatever an id has in it, in a directory of our own. */
#include "batch/traces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

struct traces_test {
	char directory[32];
	char *results, *path; /* owned: of the results, of the traces */
	struct traces *traces;
};

static struct traces_test test;

static int set_up(void **state)
{
	(void)state;
	test = (struct traces_test){.directory = "/tmp/rlmd-traces-XXXXXX"};
	assert_non_null(mkdtemp(test.directory));
	test.results = xasprintf("%s/r", test.directory);
	test.path = xasprintf("%s.traces", test.results);
	test.traces = traces_new(test.results);
	return 0;
}

static int tear_down(void **state)
{
	auto_free char *command = xasprintf("rm -r %s", test.directory);

	(void)state;
	traces_free(test.traces);
	free(test.results);
	free(test.path);
	return system(command);
}

static void assert_trace(const char *name, const char *wanted)
{
	auto_free char *path = xasprintf("%s/%s", test.path, name);
	struct rlmd_error err;
	auto_free char *bytes = file_read(path, 1000, NULL, &err);

	if (!wanted) {
		assert_null(bytes);
		return;
	}
	assert_non_null(bytes);
	assert_string_equal(bytes, wanted);
}

static void test_names(void **state)
{
	static const char *const table[][2] = {
		{"a-1_b.c", "a-1_b.c.jsonl"},
		{".", "%2E.jsonl"},
		{"..", "%2E..jsonl"},
		{"../x", "%2E.%2Fx.jsonl"},
		{"\xc3\xa9 ", "%C3%A9%20.jsonl"},
	};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		assert_true(traces_put(test.traces, table[i][0], text_of(table[i][0]), &err));
		assert_trace(table[i][1], table[i][0]);
	}
}

/* Two that differ only behind what a name has room for. */
static void test_long_ids(void **state)
{
	char one[400], other[400];
	struct rlmd_error err;

	(void)state;
	memset(one, 'x', sizeof one);
	one[399] = 0;
	memcpy(other, one, sizeof one);
	other[398] = 'y';
	assert_true(traces_put(test.traces, one, text_of("1"), &err));
	assert_true(traces_put(test.traces, other, text_of("2"), &err));
	traces_remove(test.traces, one);
	traces_remove(test.traces, other);
	assert_int_equal(rmdir(test.path), 0);
}

static void test_replaced_and_removed(void **state)
{
	struct rlmd_error err;

	(void)state;
	traces_remove(test.traces, "a");
	assert_int_equal(access(test.path, F_OK), -1);
	assert_true(traces_put(test.traces, "a", text_of("1"), &err));
	assert_true(traces_put(test.traces, "a", text_of("2"), &err));
	assert_trace("a.jsonl", "2");
	traces_remove(test.traces, "a");
	assert_trace("a.jsonl", NULL);
}

/* Others who can write there, or who made it a link, could have us write anywhere. */
static void test_a_directory_of_others(void **state)
{
	struct rlmd_error err;

	(void)state;
	assert_int_equal(symlink("/tmp", test.path), 0);
	assert_false(traces_put(test.traces, "a", text_of("1"), &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_int_equal(unlink(test.path), 0);
	assert_int_equal(mkdir(test.path, 0700), 0);
	assert_int_equal(chmod(test.path, 0777), 0);
	assert_false(traces_put(test.traces, "a", text_of("1"), &err));
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_long_ids),
		TEST(test_replaced_and_removed),
		TEST(test_a_directory_of_others),
	};

	alloc_install();
	return cmocka_run_group_tests_name("traces", tests, NULL, NULL);
}

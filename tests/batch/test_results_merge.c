/* batch/results_merge: one line for each custom_id, or no file at all. */
#include "batch/results_merge.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define HEAD(id)                                                                                   \
	"\"custom_id\":\"" id "\",\"tenant\":null,\"attempts\":1,\"job\":\"00000000000000ab\","    \
	"\"success\":true"
#define LINE(id, rest) "{" HEAD(id) ",\"output\":" rest "}\n"

static char *directory; /* owned; of the whole program */
static char *out;       /* owned: a path in it */

static char *put(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", directory, name);

	assert_true(file_write(path, text_of(text), NULL));
	return path;
}

static void assert_content(const char *path, const char *wanted)
{
	struct rlmd_error err;
	auto_free char *bytes = file_read(path, 1 << 20, NULL, &err);

	assert_non_null(bytes);
	assert_string_equal(bytes, wanted);
}

static bool merge(const char *const *in, size_t count, struct results_merge_summary *ret,
		  struct rlmd_error *err)
{
	return results_merge(out, in, count, ret, err);
}

static void test_shards(void **state)
{
	auto_free char *one = put("1", LINE("a", "1") LINE("c", "\"x\""));
	auto_free char *two = put("2", "\n" LINE("b", "{\"k\":[1,2],\"l\":3}"));
	auto_free char *again = put("3", "{\"output\" : {\"l\":3, \"k\":[1, 2]}, " HEAD(
						 "\\u0062") "}\n" LINE("a", "1"));
	const char *const in[] = {one, two, again};
	struct results_merge_summary summary;
	struct rlmd_error err;

	(void)state;
	unlink(out);
	assert_true(merge(in, 3, &summary, &err));
	assert_content(out, LINE("a", "1") LINE("c", "\"x\"") LINE("b", "{\"k\":[1,2],\"l\":3}"));
	assert_int_equal(summary.lines, 3);
	assert_int_equal(summary.again, 2);
}

/* The output may be one of the inputs: what was there twice is there once. */
static void test_in_place(void **state)
{
	const char *const in[] = {out};
	struct results_merge_summary summary;
	struct rlmd_error err;
	struct stat st;

	(void)state;
	free(put("out", LINE("a", "1") LINE("b", "2") LINE("a", "1")));
	assert_int_equal(chmod(out, 0640), 0);
	assert_true(merge(in, 1, &summary, &err));
	assert_content(out, LINE("a", "1") LINE("b", "2"));
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_empty(void **state)
{
	auto_free char *one = put("1", "");
	const char *const in[] = {one};
	struct results_merge_summary summary;
	struct rlmd_error err;

	(void)state;
	assert_true(merge(in, 1, &summary, &err));
	assert_content(out, "");
	assert_int_equal(summary.lines, 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *one, *two, *why;
	} table[] = {
		{LINE("x", "0") LINE("a", "1"), LINE("b", "1") LINE("a", "2"),
		 "/1:2 and %s/2:2 have different results of 'a'"},
		{LINE("a", "1"), LINE("a", "1.0"), "/1:1 and %s/2:1 have different"},
		{LINE("a", "1") LINE("a", "2"), "", "/1:1 and %s/1:2 have different"},
		{LINE("a", "1"), "{\"custom_id\":\"b\"", "/2:1 is not whole: its batch was killed"},
		{LINE("a", "1"), "{\"custom_id\":\"a\",\"output\":1}", "/2:1 is not whole"},
		{"notes\n", "", "/1:1 is no line of results: not JSON"},
		{LINE("a", "1"), "{}\n", "/2:1 is no line of results: has no custom_id"},
		{LINE("a", "1"), "{\"custom_id\":\"a\",\"task\":\"t\"}\n",
		 "/2:1 is no line of results: has no 'tenant'"},
	};

	(void)state;
	free(put("out", LINE("z", "0")));
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		auto_free char *one = put("1", table[i].one), *two = put("2", table[i].two);
		const char *const in[] = {one, two};
		struct results_merge_summary summary;
		struct rlmd_error err;
		char why[600], *at;

		assert_false(merge(in, 2, &summary, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		at = strstr(table[i].why, "%s");
		snprintf(why, sizeof why, "%s%.*s%s%s", directory,
			 at ? (int)(at - table[i].why) : (int)strlen(table[i].why), table[i].why,
			 at ? directory : "", at ? at + 2 : "");
		if (!strstr(err.text, why))
			fail_msg("'%s' is not in '%s'", why, err.text);
		assert_content(out, LINE("z", "0"));
	}
}

/* A file of jobs, or of anything else, is not replaced by results. */
static void test_other_files_stay(void **state)
{
	static const char *const contents[] = {"notes", "{\"custom_id\":\"a\",\"task\":\"t\"}\n"};
	auto_free char *one = put("1", LINE("a", "1"));
	const char *const in[] = {one};
	struct results_merge_summary summary;
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		free(put("out", contents[i]));
		assert_false(merge(in, 1, &summary, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, "is there and has no results"));
		assert_content(out, contents[i]);
	}
}

/* Bytes that this process has read so far; -1: the kernel does not tell. */
static long long bytes_read(void)
{
	auto_file FILE *file = fopen("/proc/self/io", "re");
	long long bytes;

	return file && fscanf(file, "rchar: %lld", &bytes) == 1 ? bytes : -1;
}

/* A line that is there again in other words is compared with that line, not with all before it. */
static void test_many_again(void **state)
{
	enum { LINES = 4000, ROOM = 128 };
	auto_free char *first = xcalloc(LINES, ROOM), *second = xcalloc(LINES, ROOM);
	auto_free char *one = NULL, *two = NULL;
	struct results_merge_summary summary;
	long long before = bytes_read();
	char *a = first, *b = second;
	struct rlmd_error err;

	(void)state;
	if (before < 0) {
		print_message("/proc/self/io cannot be read\n");
		skip();
	}
	for (int i = 0; i < LINES; i++) {
		a += sprintf(a, LINE("%d", "1"), i);
		b += sprintf(b, "{\"output\":1," HEAD("%d") "}\n", i);
	}
	one = put("1", first);
	two = put("2", second);
	unlink(out);
	assert_true(merge((const char *[]){one, two}, 2, &summary, &err));
	assert_int_equal(summary.lines, LINES);
	assert_int_equal(summary.again, LINES);
	/* One piece for each. */
	assert_true(bytes_read() - before < (long long)LINES * (16 << 10));
}

static void test_files_refused(void **state)
{
	static const char *const names[] = {"/nowhere/x", "/tmp", "/dev/null"};
	auto_free char *one = put("1", LINE("a", "1"));
	struct results_merge_summary summary;
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const char *const in[] = {one, names[i]};

		assert_false(merge(in, 2, &summary, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		assert_false(results_merge(names[i], in, 1, &summary, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, names[i]));
	}
	assert_false(results_merge(out, names, RESULTS_MERGE_FILES_MAX + 1, &summary, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

static void test_full_disk(void **state)
{
	auto_free char *one = put("1", LINE("a", "1"));
	const char *const in[] = {one};
	struct results_merge_summary summary;
	struct rlmd_error err;

	(void)state;
	free(put("out", LINE("z", "0")));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){5, RLIM_INFINITY}), 0);
	assert_false(merge(in, 1, &summary, &err));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}),
			 0);
	assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
	assert_content(out, LINE("z", "0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shards),        cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_empty),         cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many_again),    cmocka_unit_test(test_other_files_stay),
		cmocka_unit_test(test_files_refused), cmocka_unit_test(test_full_disk),
	};
	int failed;

	alloc_install();
	directory = xstrdup("/tmp/rlmd-merge-XXXXXX");
	if (!mkdtemp(directory))
		return 1;
	out = xasprintf("%s/out", directory);
	failed = cmocka_run_group_tests_name("results_merge", tests, NULL, NULL);
	for (const char *const *name = (const char *const[]){"1", "2", "3", "out", NULL}; *name;
	     name++) {
		auto_free char *path = xasprintf("%s/%s", directory, *name);

		unlink(path);
	}
	rmdir(directory);
	free(out);
	free(directory);
	return failed;
}

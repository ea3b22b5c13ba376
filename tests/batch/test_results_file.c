/* batch/results_file: gone on with after anything, and never with what is somebody else's. */
#include "batch/results_file.h"

#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "base/loop.h"
#include "batch/id_map.h"
#include "batch/results_line.h"

#define LINE(id) "{\"custom_id\":\"" id "\",\"tenant\":null,\"attempts\":1,\"success\":true}\n"

struct results_test {
	struct event_base *base;
	struct results_file *file;
	struct rlmd_error error;
	uint64_t lines, cut, kept;
	bool opened;
	char *path;
};

static void on_opened(void *owner, uint64_t lines, uint64_t cut, const struct rlmd_error *err)
{
	struct results_test *test = owner;

	assert_false(test->opened);
	test->opened = true;
	test->lines = lines;
	test->cut = cut;
	if (err)
		test->error = *err;
}

static void on_kept(void *owner, uint64_t lines, const struct rlmd_error *err)
{
	struct results_test *test = owner;

	assert_null(err);
	assert_true(lines > test->kept);
	test->kept = lines;
}

static void begin(struct results_test *test, const char *bytes, size_t size)
{
	auto_close int fd = -1;

	*test = (struct results_test){.base = loop_new(),
				      .path = xstrdup("/tmp/rlmd-results-XXXXXX")};
	fd = mkostemp(test->path, O_CLOEXEC);
	assert_int_equal(write(fd, bytes, size), size);
}

static void open_results(struct results_test *test, const struct id_map *jobs)
{
	const struct results_file_hooks hooks = {on_opened, on_kept, test};
	struct rlmd_error err;

	test->opened = false;
	test->kept = 0;
	test->file = results_file_new(test->base, test->path, jobs, &hooks, &err);
	if (!test->file)
		fail_msg("%s", err.text);
	while (!test->opened)
		assert_int_equal(event_base_loop(test->base, EVLOOP_ONCE), 0);
}

static void finish(struct results_test *test)
{
	results_file_free(test->file);
	event_base_free(test->base);
	unlink(test->path);
	free(test->path);
}

static bool add(struct results_test *test, const char *id, struct rlmd_error *err)
{
	const struct results_line line = {
		.custom_id = id, .attempts = 1, .result = text_of("{\"success\":true}")};

	return results_file_add(test->file, &line, err);
}

static void assert_content(struct results_test *test, const char *wanted)
{
	struct rlmd_error err;
	auto_free char *bytes = file_read(test->path, 1 << 20, NULL, &err);

	assert_string_equal(bytes, wanted);
}

static void await_kept(struct results_test *test, uint64_t lines)
{
	while (test->kept < lines)
		assert_int_equal(event_base_loop(test->base, EVLOOP_ONCE), 0);
	assert_int_equal(test->kept, lines);
}

static void test_new(void **state)
{
	struct results_test test;
	struct rlmd_error err;

	(void)state;
	begin(&test, "", 0);
	unlink(test.path);
	open_results(&test, NULL);
	assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
	assert_true(add(&test, "a", &err) && add(&test, "b", &err) && add(&test, "a", &err));
	assert_true(results_file_has(test.file, "a"));
	assert_false(results_file_has(test.file, "c"));
	assert_int_equal(results_file_lines(test.file), 2);
	assert_content(&test, LINE("a") LINE("b"));
	await_kept(&test, 2);
	finish(&test);
}

static void test_go_on(void **state)
{
	static const char before[] = LINE("a") "\n" LINE("b");
	struct results_test test;
	struct rlmd_error err;

	(void)state;
	begin(&test, before, sizeof before - 1);
	open_results(&test, NULL);
	assert_int_equal(test.lines, 2);
	assert_int_equal(test.cut, 0);
	assert_true(add(&test, "b", &err) && add(&test, "c", &err));
	assert_content(&test, LINE("a") "\n" LINE("b") LINE("c"));
	await_kept(&test, 3);
	finish(&test);
}

/* Whatever byte was the last that was written. */
static void test_torn(void **state)
{
	static const char whole[] = LINE("a") LINE("b");
	size_t first = strlen(LINE("a"));

	(void)state;
	for (size_t size = 0; size < sizeof whole - 1; size++) {
		struct results_test test;
		struct rlmd_error err;

		begin(&test, whole, size);
		open_results(&test, NULL);
		assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
		assert_int_equal(test.lines, size >= first);
		assert_int_equal(test.cut, size % first);
		assert_true(add(&test, "a", &err) && add(&test, "b", &err));
		assert_content(&test, whole);
		finish(&test);
	}
}

/* What a file system leaves of the end where the power failed: NULs, and later bytes behind them.
 */
static void test_nuls(void **state)
{
	static const char *const table[] = {"", "{\"custom_id\":\"b\",\"ten"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct results_test test;
		char bytes[400] = LINE("a");
		size_t size = strlen(strncat(bytes, table[i % 2], 100)) + 9;

		if (i < 2)
			size += (size_t)snprintf(bytes + size, 200, "ll}\n%s", LINE("c"));
		begin(&test, bytes, size);
		open_results(&test, NULL);
		assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
		assert_int_equal(test.lines, 1);
		assert_int_equal(test.cut, size - strlen(LINE("a")));
		assert_content(&test, LINE("a"));
		finish(&test);
	}
}

static void assert_refused(const char *bytes, size_t size, const struct id_map *jobs,
			   const char *why)
{
	struct results_test test;
	auto_free char *left = NULL;
	struct rlmd_error err;
	size_t left_size;

	begin(&test, bytes, size);
	open_results(&test, jobs);
	assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
	if (!strstr(test.error.text, why))
		fail_msg("%s", test.error.text);
	left = file_read(test.path, 1 << 20, &left_size, &err);
	assert_int_equal(left_size, size);
	assert_memory_equal(left, bytes, size);
	finish(&test);
}

#define MARKED(id, mark) "{\"custom_id\":\"" id "\",\"job\":\"" mark "\"}\n"

static void test_refused(void **state)
{
	static const struct {
		const char *bytes, *why;
	} table[] = {
		{"my notes", ":1: no line of results"},
		{"my notes\n", ":1: no line of results; name another file with -o"},
		{LINE("a") "my notes", ":2: no line of results"},
		{LINE("a") "{}\n", ":2: no line of results"},
		{LINE("a") "{\"cust\n" LINE("b"), ":2: no line of results"},
		{LINE("a") LINE("b") LINE("a"), ":3: has 'a' a second time; 'rlmd merge -o /tmp/"},
		{LINE("b") LINE("x"),
		 ":2: has a result of 'x', which no job has: it is the file of"},
		{MARKED("a", "00000000000000aa"),
		 ":1: has a result of 'a', which was another job then"},
	};
	struct id_map *jobs = id_map_new();
	struct results_test test;

	(void)state;
	*id_map_add(jobs, "a", NULL) = 0xab;
	*id_map_add(jobs, "b", NULL) = 0xcd;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_refused(table[i].bytes, strlen(table[i].bytes), jobs, table[i].why);
	assert_refused("notes\0\0", 7, NULL, ":1: no line of results");
	begin(&test, MARKED("a", "00000000000000ab"), strlen(MARKED("a", "00000000000000ab")));
	open_results(&test, jobs);
	assert_int_equal(test.lines, 1);
	finish(&test);
	id_map_free(jobs);
}

/* Two batches that write to one file would be one each other's torn lines. */
static void test_locked(void **state)
{
	struct results_file_hooks hooks = {on_opened, on_kept, NULL};
	struct results_test test;
	struct rlmd_error err;

	(void)state;
	begin(&test, "", 0);
	open_results(&test, NULL);
	assert_null(results_file_new(test.base, test.path, NULL, &hooks, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(err.text, "another rlmd writes to"));
	finish(&test);
}

static void test_no_file(void **state)
{
	static const char *const table[][2] = {
		{"/dev/null", "it is no regular file"},
		{"/tmp", "cannot write results to /tmp"},
		{"/nowhere/x", "cannot write results to /nowhere/x"}};
	struct results_file_hooks hooks = {on_opened, on_kept, NULL};
	struct event_base *base = loop_new();
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_null(results_file_new(base, table[i][0], NULL, &hooks, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		if (!strstr(err.text, table[i][1]))
			fail_msg("%s", err.text);
	}
	event_base_free(base);
}

static void limit_files(rlim_t size)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){size, RLIM_INFINITY}), 0);
}

/* At every byte of a line: the file stays whole, and takes the line when there is room again. */
static void test_full_disk(void **state)
{
	size_t size = strlen(LINE("a"));
	struct results_test test;
	struct rlmd_error err;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	for (size_t room = 0; room < size; room += 7) {
		begin(&test, LINE("a"), size);
		open_results(&test, NULL);
		limit_files(size + room);
		assert_false(add(&test, "b", &err));
		assert_false(add(&test, "b", &err));
		limit_files(RLIM_INFINITY);
		assert_int_equal(err.kind, RLMD_ERROR_INTERNAL);
		assert_non_null(strstr(err.text, "cannot write to /tmp/rlmd-results-"));
		assert_false(results_file_has(test.file, "b"));
		assert_content(&test, LINE("a"));
		assert_true(add(&test, "b", &err));
		assert_content(&test, LINE("a") LINE("b"));
		finish(&test);
	}
}

static void test_sort(void **state)
{
	static const char before[] = LINE("c") LINE("a");
	static const char *const order[] = {"a", "missing", "b", "a", "c"};
	struct results_sort *sort;
	struct results_test test;
	struct rlmd_error err;
	struct stat st;

	(void)state;
	begin(&test, before, sizeof before - 1);
	chmod(test.path, 0640);
	open_results(&test, NULL);
	assert_true(add(&test, "b", &err));
	sort = results_sort_new(test.file, &err);
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		assert_true(results_sort_add(sort, order[i], &err));
	assert_content(&test, LINE("c") LINE("a") LINE("b"));
	assert_true(results_sort_commit(sort, true, &err));
	results_sort_free(sort);
	assert_content(&test, LINE("a") LINE("b") LINE("c"));
	assert_int_equal(stat(test.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	finish(&test);
}

/* Nothing is lost by an order that leaves something out, nor by a full disk. */
static void test_sort_refused(void **state)
{
	static const char before[] = LINE("c") LINE("a");
	struct results_sort *sort;
	struct results_test test;
	struct rlmd_error err;

	(void)state;
	begin(&test, before, sizeof before - 1);
	open_results(&test, NULL);
	sort = results_sort_new(test.file, &err);
	assert_true(results_sort_add(sort, "a", &err));
	assert_false(results_sort_commit(sort, true, &err));
	assert_non_null(strstr(err.text, "has 2 results, of which 1 are of jobs"));
	results_sort_free(sort);

	sort = results_sort_new(test.file, &err);
	assert_true(results_sort_add(sort, "a", &err) && results_sort_add(sort, "c", &err));
	limit_files(10);
	assert_false(results_sort_commit(sort, true, &err));
	limit_files(RLIM_INFINITY);
	results_sort_free(sort);
	assert_content(&test, before);
	finish(&test);
	results_sort_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),     cmocka_unit_test(test_go_on),
		cmocka_unit_test(test_torn),    cmocka_unit_test(test_nuls),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_locked),
		cmocka_unit_test(test_no_file), cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_sort),    cmocka_unit_test(test_sort_refused),
	};

	alloc_install();
	return cmocka_run_group_tests_name("results_file", tests, NULL, NULL);
}

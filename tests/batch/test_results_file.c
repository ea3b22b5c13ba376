/* batch/results_file: what the store has, in a file, after anything; never over what is somebody
 * else's. */
#include "batch/results_file.h"

#include <event2/event.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/loop.h"
#include "batch/summary.h"
#include "loaded_store.h"

#define HEAD(id, job)                                                                              \
	"{\"custom_id\":\"" id "\",\"tenant\":null,\"attempts\":1,\"job\":\"" job "\","
#define SUCCESS       "\"success\":true,\"stopReason\":\"final\",\"output\":\"x\"}"
#define FAILURE       "\"success\":false,\"error\":{\"kind\":\"network\"}}"
#define LINE(id)      HEAD(id, "00000000000000ab") SUCCESS "\n"
#define FAILED(id)    HEAD(id, "00000000000000ab") FAILURE "\n"
#define EDITED(id)    HEAD(id, "00000000000000ab") "\"success\":true}\n"
#define FROM(id, job) HEAD(id, job) SUCCESS "\n"

static atomic_int syncs;

/* Replaces the system's, which a test could not see. */
int fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return fsync(fd);
}

/* A batch of the jobs a, b, c and d, and its file. */
struct results_test {
	struct loaded_store loaded;
	int64_t batch;
	struct results_file *file;
	struct results_file_options options;
	int dones;
	bool ended;
	struct rlmd_error error;
	struct evbuffer *warnings;
	char *path;
};

static struct results_test test;

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	buffer_add_printf(test.warnings, "%s\n", text);
}

static void on_done(void *owner)
{
	(void)owner;
	test.dones++;
}

static void on_end(void *owner, const struct rlmd_error *err)
{
	(void)owner;
	assert_false(test.ended);
	test.ended = true;
	test.error = err ? *err : (struct rlmd_error){0};
}

static int set_up(void **state)
{
	(void)state;
	test = (struct results_test){.warnings = buffer_new()};
	loaded_store_open(&test.loaded);
	test.batch = loaded_store_add(&test.loaded, "batch", "", 4);
	test.path = xasprintf("%s/r", test.loaded.directory);
	test.options = (struct results_file_options){
		.path = test.path,
		.store = test.loaded.store,
		.batch = test.batch,
		.warn = on_warning,
		.done = on_done,
		.end = on_end,
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	results_file_free(test.file);
	loaded_store_close(&test.loaded);
	evbuffer_free(test.warnings);
	free(test.path);
	return 0;
}

/* The next job of the file ends: with success, or with a failure. */
static void end_job(bool succeeded)
{
	loaded_store_end_job(&test.loaded, test.batch, succeeded,
			     succeeded ? "{" SUCCESS : "{" FAILURE);
}

/* Waits until all that the store has is in the file, or it cannot be. */
static void await_done(void)
{
	int before = test.dones;

	while (test.dones == before && !test.ended)
		assert_int_equal(event_base_loop(test.loaded.base, EVLOOP_ONCE), 0);
}

static void open_results(void)
{
	struct rlmd_error err;

	results_file_free(test.file);
	test.ended = false;
	test.error = (struct rlmd_error){0};
	evbuffer_drain(test.warnings, evbuffer_get_length(test.warnings));
	test.file = results_file_new(test.loaded.base, &test.options, &err);
	if (!test.file)
		fail_msg("%s", err.text);
	await_done();
}

static void end_results(void)
{
	results_file_end(test.file);
	assert_false(test.ended);
	await_done();
	assert_true(test.ended);
}

static void put(const char *bytes, size_t size)
{
	struct rlmd_error err;

	assert_true(file_write(test.path, text_from(bytes, size), &err));
}

static void assert_content(const char *wanted)
{
	struct rlmd_error err;
	auto_free char *bytes = file_read(test.path, 1 << 20, NULL, &err);

	assert_non_null(bytes);
	assert_string_equal(bytes, wanted);
}

static void assert_good(void)
{
	if (test.error.kind)
		fail_msg("%s", test.error.text);
}

static void assert_warned(const char *text)
{
	auto_free char *all = text_copy(text_in(test.warnings));

	if (*text ? !strstr(all, text) : *all)
		fail_msg("'%s' in: %s", text, all);
}

static void assert_trace(const char *id, bool there)
{
	auto_free char *path = xasprintf("%s.traces/%s.jsonl", test.path, id);

	assert_int_equal(!access(path, F_OK), there);
}

/* --- what the store has ----------------------------------------------------------------- */

static void test_results_as_they_end(void **state)
{
	struct summary sum = {0};

	(void)state;
	end_job(true);
	end_job(false);
	open_results();
	assert_content(LINE("a") FAILED("b"));
	assert_trace("b", true);
	results_file_look(test.file);
	results_file_look(test.file);
	await_done();
	end_job(true);
	results_file_look(test.file);
	await_done();
	assert_content(LINE("a") FAILED("b") LINE("c"));
	results_file_sum(test.file, &sum);
	assert_int_equal(sum.succeeded, 2);
	assert_int_equal(sum.failed, 1);
	assert_int_equal(sum.kinds[RLMD_ERROR_NETWORK], 1);
	atomic_store(&syncs, 0);
	end_results();
	assert_good();
	assert_true(atomic_load(&syncs) > 0);
	assert_warned("");
}

/* Whatever byte was the last that was written. */
static void test_a_torn_line(void **state)
{
	static const char whole[] = LINE("a") FAILED("b");
	size_t first = strlen(LINE("a"));

	(void)state;
	end_job(true);
	end_job(false);
	for (size_t size = 0; size < sizeof whole; size++) {
		bool whole_line = whole[size] == '\n' || size == 0 || whole[size - 1] == '\n';

		put(whole, size);
		open_results();
		assert_good();
		assert_content(LINE("a") FAILED("b"));
		assert_warned(whole_line ? "" : "unfinished line");
	}
	put(whole, first + 9);
	open_results();
	assert_warned("/r: an unfinished line at its end, of 9 bytes, was taken away");
}

/* A file system leaves this where the power failed: NULs, and later bytes behind them. */
static void test_nuls(void **state)
{
	static const char *const table[] = {"", "{\"custom_id\":\"b\",\"ten"};

	(void)state;
	end_job(true);
	for (size_t i = 0; i < 4; i++) {
		char bytes[400] = LINE("a");
		size_t size = strlen(strncat(bytes, table[i % 2], 100)) + 9;

		if (i < 2)
			size += (size_t)snprintf(bytes + size, 200, "ll}\n%s", LINE("a"));
		put(bytes, size);
		open_results();
		assert_good();
		assert_content(LINE("a"));
	}
}

/* Another machine had the job tried again after its line was written. */
static void test_a_job_that_ended_twice(void **state)
{
	(void)state;
	end_job(false);
	end_job(true);
	open_results();
	DO(&test.loaded, rerun, test.batch, NULL, true);
	end_job(true);
	results_file_look(test.file);
	await_done();
	end_results();
	assert_good();
	assert_content(LINE("b") LINE("a"));
}

static void test_sorted(void **state)
{
	auto_free char *link = xasprintf("%s/link", test.loaded.directory);
	struct stat st;

	(void)state;
	end_job(false);
	end_job(true);
	DO(&test.loaded, rerun, test.batch, NULL, true);
	end_job(true);
	put("", 0);
	assert_int_equal(chmod(test.path, 0640), 0);
	assert_int_equal(symlink("r", link), 0);
	test.options.path = link;
	test.options.sort = true;
	open_results();
	assert_content(LINE("b") LINE("a"));
	end_results();
	assert_good();
	assert_content(LINE("a") LINE("b"));
	assert_int_equal(stat(test.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	results_file_free(take_pointer(&test.file));
	test.options.path = test.path;
}

/* Their lines and traces go, before the store forgets how they ended. */
static void test_failed_jobs_are_rerun(void **state)
{
	(void)state;
	end_job(true);
	end_job(false);
	open_results();
	assert_trace("b", true);
	test.options.rerun.failed = true;
	open_results();
	assert_good();
	assert_content(LINE("a"));
	assert_trace("b", false);
	end_job(true);
	results_file_look(test.file);
	await_done();
	assert_content(LINE("a") LINE("b"));
}

/* --- what others did ------------------------------------------------------------------ */

static void test_a_lost_store(void **state)
{
	static const char before[] = LINE("c") FAILED("a");

	(void)state;
	put(before, sizeof before - 1);
	test.options.rerun.degraded = true;
	open_results();
	assert_int_equal(test.error.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(test.error.text, "2 jobs that are not over in the store: start"));
	assert_content(before);
	test.options.rerun.degraded = false;
	open_results();
	assert_good();
	assert_warned("2 results that the store does not know");
	assert_content(before);
	DO(&test.loaded, counts, test.batch);
	assert_int_equal(test.loaded.told.counts[0].jobs[STORE_JOB_SUCCEEDED], 1);
	assert_int_equal(test.loaded.told.counts[0].jobs[STORE_JOB_FAILED], 1);
	open_results();
	assert_warned("");
	assert_content(before);
}

/* Another machine may have put the job back. */
static void test_a_failure_in_a_shared_store(void **state)
{
	static const char before[] = FAILED("a") LINE("b");

	(void)state;
	put(before, sizeof before - 1);
	test.options.shared = true;
	open_results();
	assert_good();
	assert_warned("1 results that the store does not know");
	assert_content(LINE("b"));
}

static void test_edited_lines(void **state)
{
	static const char edited[] = EDITED("a") LINE("b") LINE("b");

	(void)state;
	end_job(true);
	end_job(true);
	put(edited, sizeof edited - 1);
	open_results();
	assert_warned("1 of its lines said something else");
	assert_content(LINE("a") LINE("b"));
}

static void test_a_file_that_others_changed(void **state)
{
	(void)state;
	end_job(true);
	for (int how = 0; how < 3; how++) {
		open_results();
		if (how == 0)
			assert_int_equal(truncate(test.path, 10), 0);
		else
			assert_int_equal(unlink(test.path), 0);
		if (how == 2)
			put("x", 1);
		end_results();
		if (how == 2)
			break;
		assert_good();
		assert_warned(how ? "was taken away by somebody" : "was changed by somebody");
		assert_content(LINE("a"));
	}
	assert_int_equal(test.error.kind, RLMD_ERROR_INTERNAL);
	assert_non_null(strstr(test.error.text, "is another file by now"));
	assert_content("x");
}

/* --- what is refused -------------------------------------------------------------------- */

static void test_refused(void **state)
{
	static const struct {
		const char *bytes, *why;
	} table[] = {
		{"my notes", ":1: no line of results"},
		{"my notes\n", ":1: no line of results; name another file with -o"},
		{LINE("a") "my notes", ":2: no line of results"},
		{LINE("a") "{}\n", ":2: no line of results"},
		{LINE("a") "{\"custom_id\":\"b\",\"task\":\"t\"}\n", ":2: no line of results"},
		{LINE("a") "{\"custom_id\":\"b\",\"task\":\"t\"}", ":2: no line of results"},
		{LINE("a") "{\"cust\n" LINE("b"), ":2: no line of results"},
		{LINE("b") LINE("x"),
		 ":2: has a result of 'x', which no job has: it is the file of"},
		{FROM("a", "00000000000000aa"),
		 ":1: has a result of 'a', which was another job then"},
		{FROM("c", "00000000000000aa"),
		 ":1: has a result of 'c', which was another job then"},
	};

	(void)state;
	end_job(true);
	end_job(true);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		put(table[i].bytes, strlen(table[i].bytes));
		open_results();
		assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
		if (!strstr(test.error.text, table[i].why))
			fail_msg("%s", test.error.text);
		assert_content(table[i].bytes);
	}
	put("notes\0\0", 7);
	open_results();
	assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
}

/* Two batches that write to one file would be one each other's torn lines. */
static void test_locked(void **state)
{
	struct rlmd_error err;
	char who[40];

	(void)state;
	snprintf(who, sizeof who, "process %ld, writes to", (long)getpid());
	for (int i = 0; i < 2; i++) {
		open_results();
		assert_null(results_file_new(test.loaded.base, &test.options, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		assert_non_null(strstr(err.text, who));
	}
}

static void test_no_file(void **state)
{
	static const char *const table[][2] = {
		{"/dev/null", "it is a device, and no regular file"},
		{"/tmp", "cannot write results to /tmp"},
		{"/nowhere/x", "cannot write results to /nowhere/x"}};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		test.options.path = table[i][0];
		assert_null(results_file_new(test.loaded.base, &test.options, &err));
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		if (!strstr(err.text, table[i][1]))
			fail_msg("%s", err.text);
	}
}

static void limit_files(rlim_t size)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){size, RLIM_INFINITY}), 0);
}

/* At any byte of a line that is appended, and of the file that is written anew: the next start has
 * all of it. */
static void test_a_full_disk(void **state)
{
	size_t size = strlen(LINE("a"));

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	end_job(true);
	open_results();
	end_job(true);
	limit_files(size + size / 2);
	results_file_look(test.file);
	await_done();
	limit_files(RLIM_INFINITY);
	assert_int_equal(test.error.kind, RLMD_ERROR_INTERNAL);
	assert_non_null(strstr(test.error.text, "cannot write to /tmp/rlmd-batch-"));
	for (size_t room = 0; room < 2 * size; room += 31) {
		auto_free char *before = NULL;
		struct rlmd_error err;

		before = file_read(test.path, 1 << 20, NULL, &err);
		results_file_free(take_pointer(&test.file));
		limit_files(room);
		open_results();
		limit_files(RLIM_INFINITY);
		assert_int_equal(test.error.kind, RLMD_ERROR_INTERNAL);
		assert_content(before);
	}
	open_results();
	assert_good();
	assert_content(LINE("a") LINE("b"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_results_as_they_end),
		TEST(test_a_torn_line),
		TEST(test_nuls),
		TEST(test_a_job_that_ended_twice),
		TEST(test_sorted),
		TEST(test_failed_jobs_are_rerun),
		TEST(test_a_lost_store),
		TEST(test_a_failure_in_a_shared_store),
		TEST(test_edited_lines),
		TEST(test_a_file_that_others_changed),
		TEST(test_refused),
		TEST(test_locked),
		TEST(test_no_file),
		TEST(test_a_full_disk),
	};

	alloc_install();
	return cmocka_run_group_tests_name("results_file", tests, NULL, NULL);
}

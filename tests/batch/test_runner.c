/* batch/runner: from a jobs file to a results file, and on from there; the engine is the test's. */
#include "batch/runner.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/text.h"
#include "batch/scoreboard.h"
#include "batch/tenants.h"
#include "fake_engine.h"

static struct {
	struct event_base *base;
	struct tenants tenants;
	struct runner *runner;
	char directory[32], jobs[64], results[64], store[64];
	struct runner_options options;
	int ended, warnings;
	struct summary summary;
	struct rlmd_error error;
	char warning[512]; /* the last one */
} test;

static void on_warn(void *owner, const char *text)
{
	(void)owner;
	test.warnings++;
	strncpy(test.warning, text, sizeof test.warning - 1);
}

static void on_end(void *owner, const struct summary *summary, const struct rlmd_error *err)
{
	(void)owner;
	test.ended++;
	test.summary = *summary;
	test.error = err ? *err : (struct rlmd_error){.kind = RLMD_ERROR_NONE};
}

static void write_jobs(const char *text)
{
	FILE *file = fopen(test.jobs, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	memset(&fake_engine, 0, sizeof fake_engine);
	strcpy(test.directory, "/tmp/rlmd-batch-XXXXXX");
	assert_non_null(mkdtemp(test.directory));
	snprintf(test.jobs, sizeof test.jobs, "%s/jobs.jsonl", test.directory);
	snprintf(test.results, sizeof test.results, "%s/results.jsonl", test.directory);
	snprintf(test.store, sizeof test.store, "%s/store", test.directory);
	test.base = fake_engine.base = loop_new();
	test.options = (struct runner_options){
		.jobs = test.jobs,
		.results = test.results,
		.store = test.store,
		.max_jobs = 1,
		.max_attempts = 1,
		.lease_ms = 60000,
		.job = {.provider = "openai"},
		.limit = {RLMD_UNLIMITED, RLMD_UNLIMITED},
		.tenants = &test.tenants,
		.tenancies = {.tenants = &test.tenants,
			      .kind = "openai",
			      .sandbox = fake_engine_sandbox},
		.warn = on_warn,
		.end = on_end,
	};
	write_jobs("{\"custom_id\":\"1\",\"task\":\"a\"}\n{\"custom_id\":\"2\",\"task\":\"b\"}\n");
	return 0;
}

static void end(void)
{
	runner_free(take_pointer(&test.runner));
}

static int tear_down(void **state)
{
	auto_free char *command = xasprintf("rm -r %s", test.directory);

	(void)state;
	end();
	tenants_done(&test.tenants);
	event_base_free(test.base);
	assert_int_equal(system(command), 0);
	return 0;
}

static void begin(void)
{
	struct rlmd_error err;

	end();
	test.ended = test.warnings = 0;
	memset(fake_engine.tasks, 0, sizeof fake_engine.tasks);
	test.runner = runner_new(test.base, &test.options, &err);
	assert_non_null(test.runner);
}

static void turn(void)
{
	event_base_loop(test.base, EVLOOP_ONCE);
}

static void await_end(void)
{
	while (!test.ended)
		turn();
	assert_int_equal(test.ended, 1);
}

static void run(void)
{
	begin();
	await_end();
}

/* The results, or "" without a file. */
static char *results(void)
{
	auto_close int fd = open(test.results, O_RDONLY | O_CLOEXEC);
	char *text = xcalloc(1, 8192);

	if (fd >= 0)
		assert_true(read(fd, text, 8191) >= 0);
	return text;
}

static int lines_of(const char *text)
{
	int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static struct fake_answer second_fails(const char *task)
{
	return (struct fake_answer){.error = *task == 'b' ? RLMD_ERROR_SCHEMA : RLMD_ERROR_NONE,
				    .cost = 5};
}

/* Each job has a line, and the next start begins none of them. */
static void test_once(void **state)
{
	auto_free char *first = NULL, *again = NULL;

	(void)state;
	fake_engine.answer = second_fails;
	run();
	assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
	assert_string_equal(fake_engine.tasks, "ab");
	assert_int_equal(test.summary.succeeded, 1);
	assert_int_equal(test.summary.failed, 1);
	assert_int_equal(test.summary.kinds[RLMD_ERROR_SCHEMA], 1);
	assert_int_equal(test.summary.cost, 10);
	assert_int_equal(test.summary.added, 2);
	first = results();
	assert_int_equal(lines_of(first), 2);
	run();
	assert_string_equal(fake_engine.tasks, "");
	assert_int_equal(test.summary.added, 0);
	assert_int_equal(test.summary.succeeded, 1);
	again = results();
	assert_string_equal(first, again);
}

static void test_failed_ones_again(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	fake_engine.answer = second_fails;
	run();
	fake_engine.answer = NULL;
	test.options.rerun.failed = true;
	run();
	assert_string_equal(fake_engine.tasks, "b");
	assert_int_equal(test.summary.succeeded, 2);
	text = results();
	assert_int_equal(lines_of(text), 2);
}

/* A bad line: nothing runs, and nothing is written. */
static void test_a_bad_line(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	write_jobs("{\"custom_id\":\"1\",\"task\":\"a\"}\n{\"custom_id\":\"2\"}\n");
	run();
	assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
	assert_string_equal(fake_engine.tasks, "");
	text = results();
	assert_string_equal(text, "");
}

static void test_a_file_that_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(unlink(test.jobs), 0);
	run();
	assert_true(test.error.kind);
	assert_non_null(strstr(test.error.text, "jobs.jsonl"));
}

static void test_a_store_that_is_none(void **state)
{
	struct rlmd_error err;

	(void)state;
	test.options.store = "mysql://host/name";
	assert_null(runner_new(test.base, &test.options, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

/* Loaded by one process, carried out by another, written by the first. */
static void test_submit_and_work(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	test.options.submit = true;
	run();
	assert_string_equal(fake_engine.tasks, "");
	assert_int_equal(test.summary.pending, 2);
	test.options.submit = false;
	test.options.jobs = test.options.results = NULL;
	run();
	assert_string_equal(fake_engine.tasks, "ab");
	assert_int_equal(test.summary.succeeded, 2);
	test.options.jobs = test.jobs;
	test.options.results = test.results;
	run();
	assert_string_equal(fake_engine.tasks, "");
	text = results();
	assert_int_equal(lines_of(text), 2);
}

static void await_job(void)
{
	while (!fake_engine.now)
		turn();
}

static void test_drain(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin();
	await_job();
	runner_drain(test.runner);
	fake_engine_end(fake_engine.started[0], (struct fake_answer){0});
	await_end();
	assert_string_equal(fake_engine.tasks, "a");
	assert_int_equal(test.summary.succeeded, 1);
	assert_int_equal(test.summary.pending, 1);
}

static void test_stop(void **state)
{
	auto_free char *text = NULL;

	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin();
	await_job();
	assert_string_equal(runner_name(test.runner), "jobs.jsonl");
	assert_int_equal(scoreboard_sum(runner_scoreboard(test.runner), 0).at_work, 1);
	runner_stop(test.runner);
	await_end();
	assert_int_equal(test.summary.pending, 2);
	text = results();
	assert_string_equal(text, "");
	fake_engine.answer = NULL;
	run();
	assert_string_equal(fake_engine.tasks, "ab");
}

static void test_freed_at_work(void **state)
{
	(void)state;
	fake_engine.answer = fake_engine_stays;
	begin();
	await_job();
	end();
	assert_int_equal(fake_engine.now, 0);
	assert_int_equal(test.ended, 0);
}

static struct fake_answer refused(const char *task)
{
	(void)task;
	return (struct fake_answer){.error = RLMD_ERROR_AUTH};
}

/* The key may be another one at the next start. */
static void test_a_refused_key(void **state)
{
	(void)state;
	fake_engine.answer = refused;
	run();
	assert_true(test.summary.refused);
	assert_int_equal(test.summary.pending, 2);
	assert_int_equal(summary_exit_status(&test.summary), 4);
	assert_non_null(strstr(test.warning, "the key: "));
	fake_engine.answer = NULL;
	run();
	assert_int_equal(test.summary.succeeded, 2);
}

static void test_halted(void **state)
{
	(void)state;
	fake_engine.answer = second_fails;
	write_jobs("{\"custom_id\":\"1\",\"task\":\"b\"}\n{\"custom_id\":\"2\",\"task\":\"a\"}\n");
	test.options.halt.failures = 1;
	run();
	assert_true(test.summary.halted);
	assert_non_null(strstr(test.warning, "1 of 1 jobs that are over have failed"));
	assert_int_equal(test.summary.pending, 1);
}

/* Several tenants want L3, or a word that less will do. */
static void test_tenants_apart(void **state)
{
	(void)state;
	write_jobs("{\"custom_id\":\"1\",\"task\":\"a\",\"tenant\":\"ada\"}\n"
		   "{\"custom_id\":\"2\",\"task\":\"b\",\"tenant\":\"bob\"}\n");
	fake_engine.level = "L2";
	run();
	assert_int_equal(test.error.kind, RLMD_ERROR_SANDBOX);
	assert_string_equal(fake_engine.tasks, "");
	test.options.tenancies.require = "L2";
	run();
	assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
	assert_int_equal(test.summary.succeeded, 2);
	assert_string_equal(test.summary.level, "L2");
	assert_non_null(strstr(test.warning, "L2"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_once),
		TEST(test_failed_ones_again),
		TEST(test_a_bad_line),
		TEST(test_a_file_that_is_not_there),
		TEST(test_a_store_that_is_none),
		TEST(test_submit_and_work),
		TEST(test_drain),
		TEST(test_stop),
		TEST(test_freed_at_work),
		TEST(test_a_refused_key),
		TEST(test_halted),
		TEST(test_tenants_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

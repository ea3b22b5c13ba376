/* batch/job_loader: a jobs file as a batch of a store: all of it or nothing, and once. */
#include "batch/job_loader.h"

#include <event2/event.h>
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
#include "batch/tenants.h"
#include "loaded_store.h"

static struct loaded_store store;

static struct {
	int ends, warnings;
	struct loaded loaded;
	enum rlmd_error_kind kind;
	char error[600], warning[300];
} heard;

static int set_up(void **state)
{
	(void)state;
	loaded_store_open(&store);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	loaded_store_close(&store);
	return 0;
}

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	heard.warnings++;
	snprintf(heard.warning, sizeof heard.warning, "%s", text);
}

static void on_end(void *owner, const struct loaded *loaded, const struct rlmd_error *err)
{
	(void)owner;
	heard.ends++;
	heard.loaded = *loaded;
	if (err) {
		heard.kind = err->kind;
		snprintf(heard.error, sizeof heard.error, "%s", err->text);
	}
}

/* A file of these lines; to be told of it. */
static void load(const char *lines, const struct job_loader_options *given, bool stopped)
{
	static const struct tenants none;
	auto_free char *path = xasprintf("%s/jobs", store.directory);
	struct job_loader_options options = *given;
	struct job_loader *loader;

	assert_true(file_write(path, text_of(lines), NULL));
	options.path = path;
	options.name = "batch";
	options.directory = store.directory;
	options.warn = on_warning;
	options.end = on_end;
	if (!options.tenants)
		options.tenants = &none;
	memset(&heard, 0, sizeof heard);
	loader = job_loader_new(store.base, store.store, &options);
	assert_int_equal(heard.ends, 0);
	if (stopped)
		job_loader_stop(loader);
	while (!heard.ends)
		event_base_loop(store.base, EVLOOP_ONCE);
	assert_int_equal(heard.ends, 1);
	job_loader_free(loader);
}

#define LINE(id, task) "{\"custom_id\": \"" id "\", \"task\": \"" task "\"}\n"

static int64_t pending(void)
{
	int64_t jobs = 0;

	DO(&store, counts, heard.loaded.batch);
	for (size_t i = 0; i < store.told.count; i++)
		jobs += store.told.counts[i].jobs[STORE_JOB_PENDING];
	return jobs;
}

static void assert_error(enum rlmd_error_kind kind, const char *words)
{
	assert_int_equal(heard.kind, kind);
	if (!strstr(heard.error, words))
		fail_msg("%s", heard.error);
}

static const struct job_loader_options usual;

/* The same file again is compared, however it is written; another one is refused. */
static void test_again(void **state)
{
	(void)state;
	load(LINE("a", "1") LINE("b", "2"), &usual, false);
	assert_string_equal(heard.error, "");
	assert_int_equal(heard.loaded.jobs, 2);
	assert_int_equal(heard.loaded.added, 2);
	assert_false(heard.loaded.again);
	assert_int_equal(pending(), 2);
	load("\n{\"task\":\"1\",\"custom_id\":\"a\"}\n" LINE("b", "2"), &usual, false);
	assert_string_equal(heard.error, "");
	assert_true(heard.loaded.again);
	assert_int_equal(heard.loaded.added, 0);
	load(LINE("a", "1") LINE("b", "other"), &usual, false);
	assert_error(RLMD_ERROR_USAGE, "b");
	load(LINE("a", "1") LINE("b", "2") LINE("c", "3"), &usual, false);
	assert_error(RLMD_ERROR_USAGE, "c");
	load(LINE("a", "1") LINE("b", "2") LINE("c", "3"),
	     &(struct job_loader_options){.add = true}, false);
	assert_string_equal(heard.error, "");
	assert_int_equal(heard.loaded.added, 1);
	assert_int_equal(pending(), 3);
}

/* A file with a bad line runs none of its jobs, unless the others are to run. */
static void test_bad_lines(void **state)
{
	static const char lines[] = LINE("a", "1") "no JSON\n" LINE("b", "2");

	(void)state;
	load(LINE("x", "1") LINE("x", "2"), &usual, false); /* an id is one job's */
	assert_error(RLMD_ERROR_INPUT, "x");
	load(lines, &usual, false);
	assert_int_equal(heard.kind, RLMD_ERROR_INPUT);
	assert_int_equal(heard.warnings, 1);
	assert_non_null(strstr(heard.warning, "2"));
	assert_int_equal(heard.loaded.bad, 1);
	DO(&store, counts, heard.loaded.batch);
	assert_int_equal(store.told.count, 0);
	load(lines, &(struct job_loader_options){.skip_bad = true}, false);
	assert_string_equal(heard.error, "");
	assert_int_equal(heard.loaded.bad, 1);
	assert_int_equal(pending(), 2);
}

static void test_shards(void **state)
{
	auto_free char *whole = job_loader_batch("b", &(struct jobs_file_shard){0});
	auto_free char *part = job_loader_batch("b", &(struct jobs_file_shard){2, 8});

	(void)state;
	assert_string_equal(whole, "b");
	assert_string_equal(part, "b 2/8");
}

static void test_tenants(void **state)
{
	struct tenants tenants = {0};
	struct job_loader_options options = {.tenants = &tenants};
	struct rlmd_error err;

	(void)state;
	assert_true(tenants_set(&tenants, "acme", "weight", "1", &err));
	load(LINE("a", "1"), &options, false);
	assert_int_equal(heard.kind, RLMD_ERROR_INPUT);
	options.default_tenant = "acme";
	load(LINE("a", "1"), &options, false);
	assert_string_equal(heard.error, "");
	DO(&store, counts, heard.loaded.batch);
	assert_string_equal(store.told.tenants[0], "acme");
	tenants_done(&tenants);
}

/* Others would begin jobs whose results are here already. */
static void test_results_without_a_batch(void **state)
{
	auto_free char *results = xasprintf("%s/results", store.directory);
	const struct job_loader_options options = {.for_others = true, .results = results};

	(void)state;
	assert_true(file_write(results, text_of("{}\n"), NULL));
	load(LINE("a", "1"), &options, false);
	assert_error(RLMD_ERROR_USAGE, "has results, and the store knows no batch 'batch'");
}

static void test_stopped(void **state)
{
	(void)state;
	load(LINE("a", "1"), &usual, true);
	assert_int_equal(heard.kind, RLMD_ERROR_CANCELLED);
	load(LINE("a", "1"), &usual, false); /* nothing stands in its way */
	assert_string_equal(heard.error, "");
	assert_int_equal(heard.loaded.added, 1);
	job_loader_free(NULL);
}

static void assert_split(const char *path, const char *directory, const char *name)
{
	auto_free char *found_directory = NULL, *found_name = NULL;

	job_loader_split(path, &found_directory, &found_name);
	assert_string_equal(found_directory, directory);
	assert_string_equal(found_name, name);
}

static void test_paths(void **state)
{
	auto_free char *here = getcwd(NULL, 0);
	auto_free char *below = xasprintf("%s/x", here), *itself = xasprintf("%s/.", here);

	(void)state;
	assert_split("/a/b/jobs.jsonl", "/a/b", "jobs.jsonl");
	assert_split("x/jobs", below, "jobs");
	assert_split("jobs", itself, "jobs");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_again),
		TEST(test_bad_lines),
		TEST(test_tenants),
		TEST(test_results_without_a_batch),
		TEST(test_stopped),
		cmocka_unit_test(test_shards),
		cmocka_unit_test(test_paths),
	};

	alloc_install();
	return cmocka_run_group_tests_name("job_loader", tests, NULL, NULL);
}

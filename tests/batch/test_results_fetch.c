/* batch/results_fetch: what a store has of a batch, in a file that may be gone on with. */
#include "batch/results_fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "batch/summary.h"
#include "loaded_store.h"

#define LINE(id)                                                                                   \
	"{\"custom_id\":\"" id "\",\"tenant\":\"acme\",\"attempts\":1,"                            \
	"\"job\":\"00000000000000ab\",\"success\":true}\n"

static struct {
	struct loaded_store loaded;
	char *path; /* owned */
	bool ended;
	struct summary summary;
	struct rlmd_error error;
} test;

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	fail_msg("%s", text);
}

static void on_end(void *owner, const struct summary *summary, const struct rlmd_error *err)
{
	(void)owner;
	test.ended = true;
	test.summary = *summary;
	test.error = err ? *err : (struct rlmd_error){0};
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	loaded_store_open(&test.loaded);
	test.path = xasprintf("%s/r", test.loaded.directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(test.path);
	loaded_store_close(&test.loaded);
	return 0;
}

static void fetch(const char *batch)
{
	const struct results_fetch_options options = {
		.store = test.loaded.place,
		.batch = batch,
		.path = test.path,
		.warn = on_warning,
		.end = on_end,
	};
	struct results_fetch *fetching;
	struct rlmd_error err;

	test.ended = false;
	fetching = results_fetch_new(test.loaded.base, &options, &err);
	assert_non_null(fetching);
	while (!test.ended)
		assert_int_equal(event_base_loop(test.loaded.base, EVLOOP_ONCE), 0);
	results_fetch_free(fetching);
}

static void assert_content(const char *wanted)
{
	struct rlmd_error err;
	auto_free char *bytes = file_read(test.path, 1000, NULL, &err);

	assert_non_null(bytes);
	assert_string_equal(bytes, wanted);
}

static void test_as_jobs_end(void **state)
{
	int64_t batch;

	(void)state;
	batch = loaded_store_add(&test.loaded, "one", "acme", 2);
	for (int i = 0; i < 3; i++) {
		fetch(NULL);
		assert_int_equal(test.error.kind, RLMD_ERROR_NONE);
		assert_int_equal(test.summary.succeeded, i);
		assert_int_equal(test.summary.pending, 2 - i);
		assert_content(i == 0 ? "" : i == 1 ? LINE("a") : LINE("a") LINE("b"));
		if (i < 2)
			loaded_store_end_job(&test.loaded, batch, true, "{\"success\":true}");
	}
}

static void test_refused(void **state)
{
	struct rlmd_error err;

	(void)state;
	loaded_store_add(&test.loaded, "one", "acme", 1);
	fetch("two");
	assert_int_equal(test.error.kind, RLMD_ERROR_USAGE);
	assert_string_equal(test.error.text, "the store has no batch 'two'; it has 'one'");
	assert_true(file_write(test.path, text_of("notes\n"), &err));
	fetch("one");
	assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
	assert_content("notes\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_as_jobs_end),
		TEST(test_refused),
	};

	alloc_install();
	return cmocka_run_group_tests_name("results_fetch", tests, NULL, NULL);
}

/* batch/store_status: how the batches of a store stand, as data. */
#include "batch/store_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "loaded_store.h"

static struct {
	struct loaded_store loaded;
	json_t *status; /* owned */
	bool done;
	struct rlmd_error error;
} test;

static void on_warning(void *owner, const char *text)
{
	(void)owner;
	fail_msg("%s", text);
}

static void on_done(void *owner, json_t *status, const struct rlmd_error *err)
{
	(void)owner;
	test.done = true;
	test.status = json_incref(status);
	if (err)
		test.error = *err;
}

static int set_up(void **state)
{
	(void)state;
	memset(&test, 0, sizeof test);
	loaded_store_open(&test.loaded);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(test.status);
	loaded_store_close(&test.loaded);
	return 0;
}

static void look(const char *place, const char *batch)
{
	const struct store_status_options options = {
		.store = place, .batch = batch, .warn = on_warning, .done = on_done};
	struct store_status *status;
	struct rlmd_error err;

	test.done = false;
	json_decref(take_pointer(&test.status));
	status = store_status_new(test.loaded.base, &options, &err);
	assert_non_null(status);
	while (!test.done)
		assert_int_equal(event_base_loop(test.loaded.base, EVLOOP_ONCE), 0);
	store_status_free(status);
}

static void assert_status(const char *wanted)
{
	json_auto_t *object = json_read(text_of(wanted), 9, NULL);

	assert_non_null(object);
	if (!json_equal(test.status, object)) {
		auto_free char *found = json_to_string(test.status);

		fail_msg("%s", found);
	}
}

#define COUNTS(pending, succeeded, failed, cost, tokens)                                           \
	"\"pending\":" pending ",\"running\":0,\"succeeded\":" succeeded ",\"failed\":" failed     \
	",\"degraded\":0,\"cost\":" cost ",\"tokens\":" tokens

static void test_batches(void **state)
{
	int64_t batch;

	(void)state;
	batch = loaded_store_add(&test.loaded, "one", "acme", 3);
	loaded_store_end_job(&test.loaded, batch, true, "{}");
	loaded_store_end_job(&test.loaded, batch, false, "{}");
	loaded_store_add(&test.loaded, "two", "", 1);
	look(test.loaded.place, NULL);
	assert_status(
		"{\"batches\":[{\"batch\":\"one\",\"jobs\":3," COUNTS("1", "1", "1", "2e-6", "14") ",\"tenants\":[{\"tenant\":\"acme\"," COUNTS(
			"1", "1", "1", "2e-6",
			"14") "}],\"breakers\":[],\"nodes\":[]},"
			      "{\"batch\":\"two\",\"jobs\":1," COUNTS(
				      "1", "0", "0", "0.0",
				      "0") ",\"tenants\":[{\"tenant\":\"\"," COUNTS("1", "0", "0",
										    "0.0",
										    "0") "}],\"breakers\":[],\"nodes\":[]}]}");
	look(test.loaded.place, "two");
	assert_int_equal(json_array_size(json_object_get(test.status, "batches")), 1);
}

/* The nodes that work on a batch, and the keys that were refused. */
static void test_nodes_and_breakers(void **state)
{
	const json_t *batch, *node, *breaker;
	int64_t id;

	(void)state;
	id = loaded_store_add(&test.loaded, "one", "acme", 1);
	DO(&test.loaded, claim, id, NULL, text_of("build-7:42:x"), 1, 50000);
	DO(&test.loaded, breaker_open, id, text_of("acme"), text_of("openai"), text_of("no"));
	look(test.loaded.place, "one");
	batch = json_array_get(json_object_get(test.status, "batches"), 0);
	node = json_array_get(json_object_get(batch, "nodes"), 0);
	assert_string_equal(json_get_string(node, "host"), "build-7");
	assert_int_equal(json_get_integer(node, "pid", 0), 42);
	assert_int_equal(json_get_integer(node, "jobs", 0), 1);
	assert_in_range(json_get_integer(node, "leaseSeconds", 0), 1, 50);
	breaker = json_array_get(json_object_get(batch, "breakers"), 0);
	assert_string_equal(json_get_string(breaker, "tenant"), "acme");
	assert_string_equal(json_get_string(breaker, "provider"), "openai");
	assert_string_equal(json_get_string(breaker, "why"), "no");
}

static void test_none(void **state)
{
	auto_free char *nowhere = xasprintf("%s/none", test.loaded.directory);

	(void)state;
	look(test.loaded.place, "one");
	assert_null(test.status);
	assert_string_equal(test.error.text, "the store has no batch");
	look(nowhere, NULL);
	assert_null(test.status);
	assert_int_equal(test.error.kind, RLMD_ERROR_INPUT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_batches),
		TEST(test_nodes_and_breakers),
		TEST(test_none),
	};

	alloc_install();
	return cmocka_run_group_tests_name("store_status", tests, NULL, NULL);
}

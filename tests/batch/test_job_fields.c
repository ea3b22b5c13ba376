/* batch/job_fields: which members an object has, and what is told about those that are wrong. */
#include "batch/job_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum { NAME, COUNT, KIND, MEMBERS };

static const char *const names[MEMBERS] = {"name", "count", "kind"};
static const struct job_fields fields = {"a thing", "thing.", names, MEMBERS};

static void read_fields(const char *object, struct json_view views[static MEMBERS])
{
	struct rlmd_error err = {0};

	if (!job_fields_read(&fields, text_of(object), views, &err))
		fail_msg("%s: %s", object, err.text);
}

static void test_members(void **state)
{
	struct json_view views[MEMBERS];

	(void)state;
	read_fields(" {\"count\": 3, \"na\\u006de\": \"a\", \"kind\": null}", views);
	assert_true(json_view_equal(&views[NAME], "a"));
	assert_int_equal(views[COUNT].kind, JSON_VIEW_INTEGER);
	assert_int_equal(views[KIND].kind, JSON_VIEW_NONE);
	read_fields("{}", views);
	for (size_t i = 0; i < MEMBERS; i++)
		assert_int_equal(views[i].kind, JSON_VIEW_NONE);
}

static void test_refused(void **state)
{
	static const char *const table[][2] = {
		{"{\"nam\": 1}", "thing.nam: a thing has no such key; it has name, count, kind"},
		{"{\"nam\": null}", "thing.nam: a thing has no such key"},
		{"[]", "a thing must be an object, this is an array"},
		{"7", "a thing must be an object, this is a number"},
		{"null", "a thing must be an object, this is null"},
		{"{\"name\": 1, \"name\": 2}", "duplicate object key"},
		{"{\"name\": 1", ""},
		{"{\"name\": 1} x", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct json_view views[MEMBERS];
		struct rlmd_error err = {0};

		assert_false(job_fields_read(&fields, text_of(table[i][0]), views, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		if (!strstr(err.text, table[i][1]))
			fail_msg("of %s: %s", table[i][0], err.text);
	}
}

static void test_kinds(void **state)
{
	struct json_view views[MEMBERS];
	struct rlmd_error err = {0};

	(void)state;
	read_fields("{\"name\": \"a\", \"kind\": {}}", views);
	assert_true(job_fields_is(&views[NAME], JSON_VIEW_STRING, "thing.name", &err));
	assert_true(job_fields_is(&views[COUNT], JSON_VIEW_STRING, "thing.count", &err));
	assert_false(job_fields_is(&views[KIND], JSON_VIEW_ARRAY, "thing.kind", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_string_equal(err.text, "thing.kind: must be an array, not an object");
}

static void assert_string(const char *object, const char *wanted, const char *why)
{
	struct json_view views[MEMBERS];
	struct rlmd_error err = {0};
	auto_free char *string = NULL;
	bool good;

	read_fields(object, views);
	good = job_fields_string(&views[NAME], "thing.name", 4, &string, &err);
	assert_int_equal(good, !why);
	if (why)
		assert_string_equal(err.text, why);
	if (wanted)
		assert_string_equal(string, wanted);
	else
		assert_null(string);
}

static void test_strings(void **state)
{
	(void)state;
	assert_string("{\"name\": \"a\\tbc\"}", "a\tbc", NULL);
	assert_string("{}", NULL, NULL);
	assert_string("{\"name\": \"\"}", NULL, "thing.name: is empty; say what it is to be");
	assert_string("{\"name\": \"abcde\"}", NULL, "thing.name: has 5 bytes; at most 4 may be");
	assert_string("{\"name\": \"a\\u0000\"}", NULL,
		      "thing.name: has a NUL character; leave it out");
	assert_string("{\"name\": true}", NULL, "thing.name: must be a string, not true");
}

static void assert_count(const char *number, int64_t wanted, const char *why)
{
	auto_free char *object = xasprintf("{\"count\": %s}", number);
	struct json_view views[MEMBERS];
	struct rlmd_error err = {0};
	int64_t count = -7;

	read_fields(object, views);
	assert_int_equal(job_fields_count(&views[COUNT], "thing.count", 1, 1000, &count, &err),
			 !why);
	assert_int_equal(count, wanted);
	if (why)
		assert_string_equal(err.text, why);
}

static void test_counts(void **state)
{
	(void)state;
	assert_count("1", 1, NULL);
	assert_count("1e3", 1000, NULL);
	assert_count("2.0", 2, NULL);
	assert_count("null", -7, NULL);
	assert_count("0", -7, "thing.count: 0 is no whole number from 1 to 1000");
	assert_count("1001", -7, "thing.count: 1001 is no whole number from 1 to 1000");
	assert_count("1.5", -7, "thing.count: 1.5 is no whole number from 1 to 1000");
	assert_count("\"1\"", -7, "thing.count: must be a number, not a string");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_kinds),   cmocka_unit_test(test_strings),
		cmocka_unit_test(test_counts),
	};

	alloc_install();
	return cmocka_run_group_tests_name("job_fields", tests, NULL, NULL);
}

/* trace/result: the parts of the result object. */
#include "trace/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* Takes the object. */
static void assert_json(json_t *object, const char *wanted)
{
	auto_free char *found = json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY);

	assert_string_equal(found, wanted);
	json_decref(object);
}

static void test_cost(void **state)
{
	(void)state;
	assert_json(result_cost(true, INT64_C(250000000000)), "0.25");
	assert_json(result_cost(true, 0), "0.0");
	assert_json(result_cost(false, 7), "null");
}

static void test_error(void **state)
{
	struct rlmd_error err = {.kind = RLMD_ERROR_AUTH, .text = "no \xff key"};

	(void)state;
	assert_json(result_error(&err, NULL),
		    "{\"kind\":\"auth\",\"message\":\"no \xef\xbf\xbd key\"}");
	err.http_status = 401;
	assert_json(
		result_error(&err, "openai"),
		"{\"kind\":\"auth\",\"message\":\"no \xef\xbf\xbd key\",\"provider\":\"openai\","
		"\"httpStatus\":401}");
}

static const char *const usual[] = {
	"cost",     "tokens",   "inputTokens",     "outputTokens", "duration",  "iterations",
	"subcalls", "llmCalls", "maxDepthReached", "cachedTokens", "estimated", "costComplete",
};

enum { USUAL = sizeof usual / sizeof *usual };

/* Members that most runs have nothing to say in are left out. */
static void test_usage(void **state)
{
	static const struct budget_limits limits = {
		.cost = BUDGET_UNLIMITED,
		.tokens = BUDGET_UNLIMITED,
		.time_ms = 3600000,
		.max_depth = 2,
		.max_iterations = 7,
		.calls = BUDGET_UNLIMITED,
		.subruns = BUDGET_UNLIMITED,
	};
	struct budget_usage call = {
		.cost = INT64_C(500000000000),
		.tokens = 30,
		.input_tokens = 10,
		.output_tokens = 20,
		.llm_calls = 1,
		.cost_complete = true,
	};
	struct budget *budget = budget_new(&limits, NULL, NULL);
	json_t *usage = result_usage(budget);

	(void)state;
	assert_int_equal(json_object_size(usage), USUAL);
	for (size_t i = 0; i < USUAL; i++)
		assert_non_null(json_object_get(usage, usual[i]));
	json_decref(usage);
	budget_count_call(budget, &call);
	usage = result_usage(budget);
	assert_true(json_real_value(json_object_get(usage, "cost")) == 0.5);
	assert_int_equal(json_integer_value(json_object_get(usage, "tokens")), 30);
	assert_int_equal(json_integer_value(json_object_get(usage, "inputTokens")), 10);
	assert_int_equal(json_integer_value(json_object_get(usage, "outputTokens")), 20);
	assert_int_equal(json_integer_value(json_object_get(usage, "llmCalls")), 1);
	assert_true(json_is_true(json_object_get(usage, "costComplete")));
	assert_int_equal(json_object_size(usage), USUAL);
	json_decref(usage);
	call.cached_calls = 1;
	budget_count_call(budget, &call);
	usage = result_usage(budget);
	assert_int_equal(json_integer_value(json_object_get(usage, "cachedCalls")), 1);
	assert_int_equal(json_object_size(usage), USUAL + 1);
	json_decref(usage);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_usage),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}

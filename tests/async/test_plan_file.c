/* The file form of a plan (ASY-19): what it says, and where it is wrong. */
#include <rlmd/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static struct rlmd_plan_file *load(const char *json, struct rlmd_error *err)
{
	return rlmd_plan_file_new((struct rlmd_text){json, strlen(json)}, err);
}

static struct rlmd_plan_file *load_or_fail(const char *json)
{
	struct rlmd_error err = {0};
	struct rlmd_plan_file *file = load(json, &err);

	if (!file)
		fail_msg("%s", err.text);
	return file;
}

static void assert_text(struct rlmd_text text, const char *expected)
{
	assert_int_equal(text.size, strlen(expected));
	assert_memory_equal(text.bytes, expected, text.size);
}

/* Everything that there is to say. */
static void test_everything(void **state)
{
	struct rlmd_plan_file *file = load_or_fail(
		"{\"strategy\":\"Sequential\",\"partialFailure\":\"ContinueOnError\","
		"\"maxParallel\":7,\"timeoutPerOp\":5000.0,\"operations\":["
		"{\"id\":\"a\",\"type\":\"Verify\",\"mode\":\"rlm\",\"input\":\"x\\u0000y\","
		"\"context\":\"text\",\"priority\":-3,\"timeout\":9,\"metadata\":{\"k\":\"v\"}},"
		"{\"dependsOn\":[\"a\"],\"id\":\"b\",\"input\":\"\",\"context\":{\"n\":[1]},"
		"\"mode\":\"llm\",\"model\":\"m\",\"timeout\":0}]}");
	const struct rlmd_plan_config *config = rlmd_plan_file_config(file);
	const struct rlmd_operation *operations = rlmd_plan_operation(rlmd_plan_file_plan(file), 0);

	(void)state;
	assert_int_equal(config->max_parallel, 7);
	assert_int_equal(config->timeout_ms, 5000);
	assert_int_equal(config->partial_failure, RLMD_PLAN_CONTINUE_ON_ERROR);
	assert_int_equal(rlmd_plan_count(rlmd_plan_file_plan(file)), 2);
	assert_string_equal(operations[0].id, "a");
	assert_int_equal(operations[0].type, RLMD_OPERATION_VERIFY);
	assert_int_equal(operations[0].mode, RLMD_OPERATION_RUN);
	assert_int_equal(operations[0].input.size, 3);
	assert_memory_equal(operations[0].input.bytes, "x\0y", 3);
	assert_text(operations[0].context, "text");
	assert_false(operations[0].context_is_json);
	assert_int_equal(operations[0].priority, -3);
	assert_int_equal(operations[0].timeout_ms, 9);
	assert_text(operations[0].metadata, "{\"k\":\"v\"}");
	assert_text(operations[1].context, "{\"n\":[1]}");
	assert_true(operations[1].context_is_json);
	assert_int_equal(operations[1].mode, RLMD_OPERATION_CALL);
	assert_string_equal(operations[1].model, "m");
	assert_null(operations[0].model);
	assert_int_equal(operations[1].depends_count, 1);
	assert_string_equal(operations[1].depends_on[0], "a");
	rlmd_plan_file_free(file);
}

/* As little as there is to say: the defaults (ASY-28). */
static void test_defaults(void **state)
{
	struct rlmd_plan_file *file = load_or_fail(
		"{\"operations\":[{\"id\":\"a\",\"input\":\"{{\"}]}");
	const struct rlmd_operation *operations = rlmd_plan_operation(rlmd_plan_file_plan(file), 0);
	const struct rlmd_plan_config zero = RLMD_PLAN_CONFIG_INIT;

	(void)state;
	assert_memory_equal(rlmd_plan_file_config(file), &zero, sizeof zero);
	assert_int_equal(operations[0].type, RLMD_OPERATION_QUERY);
	assert_int_equal(operations[0].mode, RLMD_OPERATION_CALL);
	assert_null(operations[0].context.bytes);
	rlmd_plan_file_free(file);
	rlmd_plan_file_free(NULL);
}

#define ONE(members)  "{\"operations\":[{\"id\":\"a\",\"input\":\"\"," members "}]}"
#define PLAN(members) "{\"operations\":[{\"id\":\"a\",\"input\":\"\"}]," members "}"

static const struct {
	const char *json, *why;
} bad[] = {
	{"", "the plan is not JSON: "},
	{"{\"operations\":[]", "the plan is not JSON: "},
	{"{\"operations\":[],\"operations\":[]}", "the plan is not JSON: duplicate object key"},
	{"{\"operations\":[\"\xff\"]}", "the plan is not JSON: "},
	{"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0", "the plan is JSON nested more than 32 deep"},
	{"[]", "the plan must be an object"},
	{"{}", "operations: is missing"},
	{"{\"operations\":{}}", "operations: must be an array"},
	{"{\"operations\":[]}", "operations: there are none"},
	{"{\"operations\":[1]}", "operations[0]: must be an object"},
	{"{\"operations\":[{\"input\":\"\"}]}", "operations[0].id: is missing"},
	{"{\"operations\":[{\"id\":\"a\"}]}", "operations[0].input: is missing"},
	{PLAN("\"operation\":1"), "operation: is not a member of plans"},
	{PLAN("\"strategy\":\"parallel\""), "strategy: must be \"Sequential\", \"Parallel\""},
	{PLAN("\"partialFailure\":null"), "partialFailure: must be \"FailFast\""},
	{PLAN("\"maxParallel\":0"), "maxParallel: must be a whole number between 1 and 100000"},
	{PLAN("\"maxParallel\":100001"), "maxParallel: must be"},
	{PLAN("\"maxParallel\":1.5"), "maxParallel: must be"},
	{PLAN("\"timeoutPerOp\":0"), "timeoutPerOp: must be a positive whole number of millisec"},
	{PLAN("\"timeoutPerOp\":-1"), "timeoutPerOp: must be"},
	{PLAN("\"timeoutPerOp\":1e99"), "timeoutPerOp: must be"},
	{PLAN("\"timeoutPerOp\":\"1s\""), "timeoutPerOp: must be"},
	{ONE("\"timeout\":-1"), "operations[0].timeout: must be a positive whole number of mill"},
	{ONE("\"timeout\":0.5"), "operations[0].timeout: must be"},
	{ONE("\"tiemout\":1"), "operations[0].tiemout: is not a member of operations"},
	{ONE("\"\\u001b\\n\":1"), "operations[0].\\x1b\\n: is not a member of operations"},
	{"{\"operations\":[{\"id\":7}]}", "operations[0].id: must be a string"},
	{"{\"operations\":[{\"id\":\"a\\u0000\"}]}", "operations[0].id: must be a string"},
	{"{\"operations\":[{\"id\":\"a\",\"input\":1}]}", "operations[0].input: must be a string"},
	{ONE("\"type\":\"query\""), "operations[0].type: must be \"Query\", "},
	{ONE("\"model\":3"), "operations[0].model: must be the name of a model"},
	{ONE("\"model\":\"\""), "operations[0].model: must be the name of a model"},
	{ONE("\"model\":\"m\",\"mode\":\"rlm\""),
	 "operations[0].model: only operations of mode \"llm\" have one"},
	{ONE("\"mode\":\"RLM\""), "operations[0].mode: must be \"llm\" or \"rlm\""},
	{ONE("\"context\":1"), "operations[0].context: must be a string, an object or an array"},
	{ONE("\"metadata\":[]"), "operations[0].metadata: must be an object of strings"},
	{ONE("\"metadata\":{\"k\":1}"), "operations[0].metadata.k: must be a string"},
	{ONE("\"priority\":1.5"), "operations[0].priority: must be a whole number"},
	{ONE("\"priority\":1000000001"), "operations[0].priority: must be"},
	{ONE("\"dependsOn\":\"a\""), "operations[0].dependsOn: must be an array of ids"},
	{ONE("\"dependsOn\":[1]"), "operations[0].dependsOn[0]: must be a string"},
	{ONE("\"dependsOn\":[\"a\",\"a\\u0000\"]"), "operations[0].dependsOn[1]: must be a string"},
	{ONE("\"dependsOn\":[\"b\"]"),
	 "operations[0].dependsOn[0]: \"b\" is not the id of an oper"},
	{ONE("\"dependsOn\":[\"a\"]"), "operations[0].dependsOn: \"a\" depends on itself"},
};

/* One clear message that says where, whatever is wrong (ASY-37). */
static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rlmd_error err = {0};

		assert_null(load(bad[i].json, &err));
		if (strncmp(err.text, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("%s: %s", bad[i].json, err.text);
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	}
}

/* A text of commas is refused by their number, before they take their memory. */
static void test_too_many_values(void **state)
{
	struct rlmd_error err = {0};
	size_t size = 5000000;
	char *json = xcalloc(size, 1);

	(void)state;
	memset(json, ',', size);
	json[0] = '[';
	assert_null(rlmd_plan_file_new((struct rlmd_text){json, size}, &err));
	assert_string_equal(err.text, "the plan has 5000000 values; the most is 4000000");
	assert_null(rlmd_plan_file_new((struct rlmd_text){json, RLMD_PLAN_TEXT_MAX + 1}, &err));
	assert_string_equal(err.text, "the plan has 67108865 bytes; the most is 67108864");
	free(json);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_too_many_values),
	};

	return cmocka_run_group_tests_name("plan_file", tests, NULL, NULL);
}

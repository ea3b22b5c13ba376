/* The tree of a trace: what ended in any order stands in the one in which it was asked for. */
#include "trace/tree.h"

#include <rlmd/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json.h"

static void feed(struct tree *tree, const char *event)
{
	struct rlmd_error err = {0};
	json_auto_t *object = json_read(text_of(event), 10, &err);

	assert_non_null(object);
	tree_feed(tree, object);
}

static void feed_call(struct tree *tree, int index)
{
	json_auto_t *call = json_pack("{s:s, s:s, s:i, s:s}", "event", "llm_call", "run", "root",
				      "index", index, "response", "fine");

	tree_feed(tree, call);
}

/* LIB-7: calls of a batch end as they will; the last ones first, here, and one in the midst. */
static void test_order_of_calls(void **state)
{
	static const int ends[][5] = {{4, 3, 2, 1, 0}, {0, 3, 1, 4, 2}, {0, 1, 2, 3, 4}};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct tree *tree = tree_new();
		const json_t *calls, *call;
		size_t place;

		feed(tree, "{\"event\":\"run\",\"run\":\"root\",\"parent\":null,\"depth\":0}");
		for (size_t j = 0; j < 5; j++)
			feed_call(tree, ends[i][j]);
		calls = json_object_get(tree_root(tree), "llmCalls");
		assert_int_equal(json_array_size(calls), 5);
		json_array_foreach (calls, place, call)
			assert_int_equal(json_get_integer(call, "index", -1), place);
		tree_free(tree);
	}
}

/* A run's code belongs to its own last turn, whoever else's events come between. */
static void test_runs_between_each_other(void **state)
{
	struct tree *tree = tree_new();
	const json_t *root, *turns, *sub;

	(void)state;
	feed(tree, "{\"event\":\"run\",\"run\":\"root\",\"parent\":null,\"depth\":0}");
	feed(tree, "{\"event\":\"response\",\"run\":\"root\",\"index\":0,\"response\":\"a\"}");
	feed(tree, "{\"event\":\"run\",\"run\":\"sub\",\"parent\":\"root\",\"depth\":1}");
	feed(tree, "{\"event\":\"response\",\"run\":\"sub\",\"index\":0,\"response\":\"b\"}");
	feed(tree, "{\"event\":\"code\",\"run\":\"root\",\"index\":0,\"code\":\"1\"}");
	feed(tree, "{\"event\":\"llm_call\",\"run\":\"sub\",\"index\":0}");
	feed(tree, "{\"event\":\"end\",\"run\":\"sub\",\"answerSource\":\"final_direct\"}");
	root = tree_root(tree);
	turns = json_object_get(root, "iterations");
	sub = json_array_get(json_object_get(root, "subcalls"), 0);
	assert_int_equal(json_array_size(turns), 1);
	assert_int_equal(
		json_array_size(json_object_get(json_array_get(turns, 0), "codeExecutions")), 1);
	assert_int_equal(json_array_size(json_object_get(root, "llmCalls")), 0);
	assert_string_equal(json_string_value(json_object_get(root, "answerSource")), "error");
	assert_int_equal(json_array_size(json_object_get(sub, "llmCalls")), 1);
	assert_string_equal(json_string_value(json_object_get(sub, "answerSource")),
			    "final_direct");
	tree_free(tree);
}

/* Replayed into the file that the recording was traced to: alone, and as the runs of a plan. */
static void test_again(void **state)
{
	static const char *const parents[] = {"null", "\"plan\""};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tree *tree = tree_new();

		for (int times = 0; times < 2; times++) {
			auto_free char *run = xasprintf("{\"event\":\"run\",\"run\":\"a\","
							"\"parent\":%s,\"depth\":0}",
							parents[i]);

			feed(tree, run);
			feed(tree, "{\"event\":\"response\",\"run\":\"a\",\"index\":0}");
			feed(tree,
			     "{\"event\":\"run\",\"run\":\"b\",\"parent\":\"a\",\"depth\":1}");
		}
		assert_int_equal(json_array_size(json_object_get(tree_root(tree), "iterations")),
				 1);
		assert_int_equal(json_array_size(json_object_get(tree_root(tree), "subcalls")), 1);
		tree_free(tree);
	}
}

/* rlmd/trace.h: the same out of lines, the last of which was cut. */
static void test_public(void **state)
{
	struct rlmd_error err = {0};
	char *tree = rlmd_trace_tree(
		rlmd_text_of("{\"event\":\"run\",\"seq\":0,\"run\":\"r\",\"parent\":null,"
			     "\"depth\":0,\"task\":\"t\"}\n{\"event\":\"resp"),
		NULL, &err);
	json_auto_t *object = tree ? json_read(text_of(tree), 10, &err) : NULL;

	(void)state;
	if (!object)
		fail_msg("%s", err.text);
	assert_string_equal(json_get_string(object, "answerSource"), "error");
	assert_string_equal(json_get_string(object, "task"), "t");
	assert_null(rlmd_trace_tree(rlmd_text_of("no JSON\n"), "mine", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "mine: line 1"));
	assert_null(rlmd_trace_tree((struct rlmd_text){NULL, 0}, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_null(rlmd_trace_tree((struct rlmd_text){NULL, 9}, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	free(tree);
}

/* A run that was killed did not tell what it used: its events do, and those of the runs below. */
static void test_usage_of_the_killed(void **state)
{
	static const char lines[] =
		"{\"event\":\"run\",\"seq\":0,\"ms\":5,\"run\":\"r\",\"parent\":null,\"depth\":0}\n"
		"{\"event\":\"response\",\"ms\":20,\"run\":\"r\",\"index\":0,\"cachedTokens\":4,"
		"\"prompt\":{\"tokens\":100},\"response\":{\"tokens\":10,\"cost\":0.25}}\n"
		"{\"event\":\"llm_call\",\"run\":\"r\",\"index\":1,\"kind\":\"llm_query\","
		"\"inputTokens\":30,\"outputTokens\":3,\"cost\":0.5}\n"
		"{\"event\":\"run\",\"run\":\"s\",\"parent\":\"r\",\"depth\":1}\n"
		"{\"event\":\"llm_call\",\"run\":\"s\",\"index\":0,\"kind\":\"turn\","
		"\"inputTokens\":7,\"outputTokens\":2,\"cost\":null}\n"
		"{\"event\":\"warning\",\"ms\":105,\"run\":\"r\",\"text\":\"w\"}\n";
	static const struct {
		const char *name;
		int value;
	} figures[] = {{"inputTokens", 137}, {"outputTokens", 15}, {"tokens", 152},
		       {"iterations", 2},    {"subcalls", 1},      {"llmCalls", 3},
		       {"cachedTokens", 4},  {"duration", 100},    {"maxDepthReached", 1}};
	struct rlmd_error err = {0};
	json_auto_t *tree = tree_from_lines(text_of(lines), "lines", &err);
	const json_t *usage = json_object_get(tree, "usage");

	(void)state;
	if (!tree)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		if (json_get_integer(usage, figures[i].name, -1) != figures[i].value)
			fail_msg("%s: %lld", figures[i].name,
				 (long long)json_get_integer(usage, figures[i].name, -1));
	assert_true(json_number_value(json_object_get(usage, "cost")) == 0.75);
	assert_true(json_is_true(json_object_get(usage, "estimated")));
	assert_true(json_is_false(json_object_get(usage, "costComplete"))); /* one had none */
}

/* A file that is no trace is refused with its name. */
static void test_no_trace(void **state)
{
	struct rlmd_error err = {0};

	(void)state;
	assert_null(tree_from_lines(text_of("{\"event\":\"end\",\"run\":\"r\"}\n"), "it", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "it is no trace"));
}

static void test_form(void **state)
{
	struct rlmd_error err = {0};
	json_t *tree = tree_from_lines(
		text_of("{\"event\":\"run\",\"seq\":0,\"run\":\"r\",\"parent\":null,\"formatVersion\":1}\n"),
		"it", &err);

	(void)state;
	assert_non_null(tree);
	json_decref(tree);
	assert_null(tree_from_lines(
		text_of("{\"event\":\"run\",\"seq\":0,\"run\":\"r\",\"formatVersion\":2,"
			"\"program\":\"rlmd 9.9\"}\n"),
		"it", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "it: line 1: a trace of form 2, written by rlmd 9.9;"));
}

static void test_functions(void **state)
{
	struct tree *tree = tree_new();
	const json_t *functions, *call;

	(void)state;
	feed(tree, "{\"event\":\"run\",\"run\":\"r\",\"parent\":null,\"depth\":0}");
	assert_null(json_object_get(tree_root(tree), "functions"));
	feed(tree, "{\"event\":\"function\",\"run\":\"r\",\"name\":\"look\",\"duration\":3}");
	feed(tree, "{\"event\":\"function\",\"run\":\"r\",\"name\":\"buy\",\"duration\":4}");
	functions = json_object_get(tree_root(tree), "functions");
	assert_int_equal(json_array_size(functions), 2);
	call = json_array_get(functions, 1);
	assert_string_equal(json_get_string(call, "name"), "buy");
	assert_int_equal(json_get_integer(call, "duration", 0), 4);
	tree_free(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_calls),
		cmocka_unit_test(test_runs_between_each_other),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_usage_of_the_killed),
		cmocka_unit_test(test_no_trace),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

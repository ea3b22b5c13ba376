/* A text is a plan or none, which is found before anything runs (ASY-13, ASY-15, ASY-20, ASY-37).
 */
#include <rlmd/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__})
#define NEEDS(...)                                                                                 \
	.depends_on = LIST(__VA_ARGS__), .depends_count = sizeof(LIST(__VA_ARGS__)) / sizeof(char *)
#define INPUT(text) .input = {text, sizeof text - 1}
#define OPERATIONS(...)                                                                            \
	((const struct rlmd_operation[]){__VA_ARGS__}),                                            \
		sizeof((const struct rlmd_operation[]){__VA_ARGS__}) /                             \
			sizeof(struct rlmd_operation)

static struct rlmd_plan *make(enum rlmd_plan_strategy strategy,
			      const struct rlmd_operation *operations, size_t count,
			      struct rlmd_error *err)
{
	struct rlmd_operation *sized = xcalloc(count, sizeof *sized);
	struct rlmd_plan_description description = {
		.size = sizeof description,
		.operations = operations ? sized : NULL,
		.count = count,
		.strategy = strategy,
	};
	struct rlmd_plan *plan;

	for (size_t i = 0; operations && i < count; i++) {
		sized[i] = operations[i];
		sized[i].size = sizeof *sized;
	}
	plan = rlmd_plan_new(&description, err);
	free(sized);
	return plan;
}

static void refuse(const char *why, enum rlmd_plan_strategy strategy,
		   const struct rlmd_operation *operations, size_t count)
{
	struct rlmd_error err = {0};

	assert_null(make(strategy, operations, count, NULL));
	assert_null(make(strategy, operations, count, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_string_equal(err.text, why);
}

static void accept(enum rlmd_plan_strategy strategy, const struct rlmd_operation *operations,
		   size_t count)
{
	struct rlmd_error err = {0};
	struct rlmd_plan *plan = make(strategy, operations, count, &err);

	assert_string_equal(err.text, "");
	assert_non_null(plan);
	rlmd_plan_free(plan);
}

/* Names: there, well-formed, and each only once. */
static void test_names(void **state)
{
	static char longest[RLMD_PLAN_ID_MAX + 1], longer[RLMD_PLAN_ID_MAX + 2];

	(void)state;
	memset(longest, 'x', RLMD_PLAN_ID_MAX);
	memset(longer, 'x', RLMD_PLAN_ID_MAX + 1);
	refuse("operations: there are none", RLMD_PLAN_PARALLEL, NULL, 0);
	refuse("operations[2].id: \"b\" is taken by operations[1]", RLMD_PLAN_PARALLEL,
	       OPERATIONS({.id = "a"}, {.id = "b"}, {.id = "b"}, {.id = "bb"}));
	refuse("operations[0].id: is empty", RLMD_PLAN_PARALLEL, OPERATIONS({.id = ""}));
	refuse("operations[0].id: is longer than 128 bytes", RLMD_PLAN_PARALLEL,
	       OPERATIONS({.id = longer}));
	refuse("operations[1].id: \"a b\\x1b\" has something else than letters, digits and - _ . : "
	       "/ @ +",
	       RLMD_PLAN_PARALLEL, OPERATIONS({.id = "a"}, {.id = "a b\33"}));
	refuse("operations[0].id: \"\\xff\" has something else than letters, digits and - _ . : / @ +",
	       RLMD_PLAN_PARALLEL, OPERATIONS({.id = "\377"}));
	refuse("strategy: is none of those that there are", (enum rlmd_plan_strategy)17,
	       OPERATIONS({.id = "a"}));
	accept(RLMD_PLAN_PARALLEL,
	       OPERATIONS({.id = longest}, {.id = "\303\234-_.:/@+"}, {0}, {0}));
}

/* Dependencies: of operations that there are, and never in a circle, which is named. */
static void test_dependencies(void **state)
{
	(void)state;
	refuse("operations[1].dependsOn[1]: \"x\" is not the id of an operation",
	       RLMD_PLAN_PARALLEL, OPERATIONS({.id = "a"}, {.id = "b", NEEDS("a", "x")}));
	refuse("operations[0].dependsOn: \"a\" depends on itself", RLMD_PLAN_DEPENDENCY_AWARE,
	       OPERATIONS({.id = "a", NEEDS("a")}));
	refuse("operations: a cycle of 2: a -> b -> a", RLMD_PLAN_DEPENDENCY_AWARE,
	       OPERATIONS({.id = "a", NEEDS("b")}, {.id = "b", NEEDS("a")}));
	refuse("operations: a cycle of 3: b -> c -> d -> b", RLMD_PLAN_SEQUENTIAL,
	       OPERATIONS({.id = "free"}, {.id = "before", NEEDS("free", "b")},
			  {.id = "b", NEEDS("free", "c")}, {.id = "c", NEEDS("d")},
			  {.id = "d", NEEDS("free", "b")}));
	refuse("operations[1].dependsOn: the alternatives of a Speculative plan cannot depend on "
	       "each other",
	       RLMD_PLAN_SPECULATIVE, OPERATIONS({.id = "a"}, {.id = "b", NEEDS("a")}));
	accept(RLMD_PLAN_PARALLEL,
	       OPERATIONS({.id = "a", NEEDS("b", "a")}, {.id = "b", NEEDS("a")}));
	accept(RLMD_PLAN_DEPENDENCY_AWARE, OPERATIONS({.id = "a"}, {NEEDS("a", "a")}));
}

/* Substitutions: of dependencies only; what is no reference, or was made plain, is let be. */
static void test_substitutions(void **state)
{
	(void)state;
	refuse("operations[1].input: {{x}} names no dependency of it (\\{{x}} stands for the text "
	       "itself)",
	       RLMD_PLAN_DEPENDENCY_AWARE,
	       OPERATIONS({.id = "a"}, {.id = "b", NEEDS("a"), INPUT("{{a}} {{x}}")}));
	refuse("operations[1].input: {{a}} names no dependency of it (\\{{a}} stands for the text "
	       "itself)",
	       RLMD_PLAN_SEQUENTIAL, OPERATIONS({.id = "a"}, {.id = "b", INPUT("\\\\{{ a }}")}));
	refuse("operations[1].input: {{a}} has no response: Parallel ignores dependencies",
	       RLMD_PLAN_PARALLEL,
	       OPERATIONS({.id = "a"}, {.id = "b", NEEDS("a"), INPUT("{{a}}")}));
	accept(RLMD_PLAN_DEPENDENCY_AWARE,
	       OPERATIONS({.id = "b", INPUT("\\{{a}} {{ a b }} {{}} {{{}}} {{a} {{")}));
}

/* The inputs of a literal plan are no templates. */
static void test_literal(void **state)
{
	struct rlmd_operation operation = RLMD_OPERATION_INIT;
	struct rlmd_plan_description description = RLMD_PLAN_DESCRIPTION_INIT;
	struct rlmd_plan *plan;

	(void)state;
	operation.input = rlmd_text_of("{{a}}");
	description.operations = &operation;
	description.count = 1;
	description.literal = true;
	plan = rlmd_plan_new(&description, NULL);
	assert_non_null(plan);
	rlmd_plan_free(plan);
}

/* LIB-26: what is lent must be there. */
static void test_missing(void **state)
{
	const struct rlmd_text nothing = {NULL, 5};
	const char *nobody[] = {NULL};
	struct rlmd_operation operation = {.id = "a", .input = nothing};
	struct rlmd_error err = {0};
	bool completed[1] = {false};
	size_t ready[1];

	(void)state;
	assert_null(rlmd_plan_new(NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	refuse("operations: there are none", RLMD_PLAN_PARALLEL, NULL, 1);
	refuse("operations[0]: a text of it is NULL", RLMD_PLAN_PARALLEL, &operation, 1);
	operation = (struct rlmd_operation){.depends_count = 1};
	refuse("operations[0].dependsOn: is NULL", RLMD_PLAN_PARALLEL, &operation, 1);
	operation.depends_on = nobody;
	refuse("operations[0].dependsOn[0]: is NULL", RLMD_PLAN_PARALLEL, &operation, 1);
	assert_int_equal(rlmd_plan_count(NULL), 0);
	assert_null(rlmd_plan_operation(NULL, 0));
	assert_int_equal(rlmd_plan_ready(NULL, completed, ready), 0);
	assert_null(rlmd_plan_file_new(nothing, NULL));
	assert_null(rlmd_plan_file_plan(NULL));
	assert_null(rlmd_plan_file_config(NULL));
	rlmd_plan_set_owner(NULL, 0, NULL);
}

/* A host may have been compiled with a smaller or a larger version of the structs. */
static void test_sizes(void **state)
{
	struct {
		struct rlmd_operation known;
		void *of_a_later_version;
	} operations[2] = {{.known = {.id = "a"}}, {.known = {.id = "b"}}};
	struct rlmd_plan_description description = {.count = 2};
	struct rlmd_error err = {0};
	struct rlmd_plan *plan;

	(void)state;
	assert_null(rlmd_plan_new(&description, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	description.size = sizeof description;
	description.operations = &operations[0].known;
	assert_null(rlmd_plan_new(&description, &err));
	assert_non_null(strstr(err.text, "operations[0]: the size of struct rlmd_operation is 0"));
	operations[0].known.size = operations[1].known.size = sizeof *operations;
	plan = rlmd_plan_new(&description, &err);
	assert_string_equal(rlmd_plan_operation(plan, 1)->id, "b");
	rlmd_plan_free(plan);
	operations[1].known.size = sizeof operations->known;
	assert_null(rlmd_plan_new(&description, &err));
	assert_string_equal(err.text, "operations[1]: its size is not that of the first");
	operations[1].of_a_later_version = &err;
	operations[1].known.size = sizeof *operations;
	assert_null(rlmd_plan_new(&description, &err));
	assert_non_null(strstr(err.text, "asks for something that rlmd"));
}

/* Limits hold before anything is allocated. */
static void test_limits(void **state)
{
	static const char *many[2] = {"a", "a"};
	struct rlmd_operation *operations = xcalloc(RLMD_PLAN_OPERATIONS_MAX + 1,
						    sizeof *operations);

	(void)state;
	refuse("operations: 100001 are too many, the most are 100000", RLMD_PLAN_PARALLEL,
	       operations, RLMD_PLAN_OPERATIONS_MAX + 1);
	accept(RLMD_PLAN_PARALLEL, operations, RLMD_PLAN_OPERATIONS_MAX);
	operations[1].depends_on = operations[2].depends_on = many;
	operations[1].depends_count = 2;
	operations[2].depends_count = SIZE_MAX;
	refuse("operations[2].dependsOn: too many dependencies; the most are 1000000 in all",
	       RLMD_PLAN_PARALLEL, operations, 3);
	free(operations);
}

/* The operations that may start, given those that are completed (ASY-20); everybody where
 * dependencies are ignored. */
static void test_ready(void **state)
{
	const struct rlmd_operation operations[] = {
		{.id = "end", NEEDS("a", "b")}, {.id = "a"}, {.id = "b", NEEDS("a")}, {.id = "c"}};
	struct rlmd_plan *plan = make(RLMD_PLAN_DEPENDENCY_AWARE, operations, 4, NULL);
	struct rlmd_plan *parallel = make(RLMD_PLAN_PARALLEL, operations, 4, NULL);
	bool completed[4] = {false};
	size_t ready[4];

	(void)state;
	assert_int_equal(rlmd_plan_ready(plan, completed, ready), 2);
	assert_int_equal(ready[0], 1);
	assert_int_equal(ready[1], 3);
	completed[1] = completed[3] = true;
	assert_int_equal(rlmd_plan_ready(plan, completed, ready), 1);
	assert_int_equal(ready[0], 2);
	completed[2] = true;
	assert_int_equal(rlmd_plan_ready(plan, completed, ready), 1);
	assert_int_equal(ready[0], 0);
	completed[0] = true;
	assert_int_equal(rlmd_plan_ready(plan, completed, ready), 0);
	completed[0] = completed[1] = false;
	assert_int_equal(rlmd_plan_ready(parallel, completed, ready), 2);
	assert_string_equal(rlmd_plan_operation(plan, 3)->id, "c");
	assert_null(rlmd_plan_operation(plan, 4));
	assert_int_equal(rlmd_plan_count(plan), 4);
	rlmd_plan_free(plan);
	rlmd_plan_free(parallel);
}

struct big {
	struct rlmd_operation *operations;
	const char **needs;
	char (*ids)[16];
	size_t count;
};

/* Each depends on the one before and on others before it, `fan` in all. */
static struct big big_new(size_t count, size_t fan)
{
	struct big big = {
		.operations = xcalloc(count, sizeof *big.operations),
		.needs = xcalloc(count * fan, sizeof *big.needs),
		.ids = xcalloc(count, sizeof *big.ids),
		.count = count,
	};
	unsigned random = 1;

	for (size_t i = 0; i < count; i++) {
		snprintf(big.ids[i], sizeof *big.ids, "operation%zu", i);
		big.operations[i].id = big.ids[i];
		big.operations[i].depends_on = big.needs + i * fan;
		big.operations[i].depends_count = i ? fan : 0;
		for (size_t d = 0; i && d < fan; d++) {
			random = random * 1103515245 + 12345;
			big.needs[i * fan + d] = big.ids[d ? (random >> 8) % i : i - 1];
		}
	}
	return big;
}

static void big_free(struct big *big)
{
	free(big->operations);
	free(big->needs);
	free(big->ids);
}

/* A cycle through ten thousand operations is found without recursion, and its name is cut. */
static void test_long_cycle(void **state)
{
	struct big big = big_new(10000, 1);
	struct rlmd_error err = {0};

	(void)state;
	big.needs[0] = big.ids[9999];
	big.operations[0].depends_count = 1;
	assert_null(make(RLMD_PLAN_DEPENDENCY_AWARE, big.operations, big.count, &err));
	assert_memory_equal(err.text, "operations: a cycle of 10000: operation0 -> operation9999",
			    57);
	assert_non_null(strstr(err.text, " -> ... -> operation0"));
	assert_true(strlen(err.text) < 300);
	big_free(&big);
}

/* 100,000 dependencies; the ratio of the times for twice the plan is for the reader. */
static void test_large(void **state)
{
	clock_t spent[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct big big = big_new(i ? 20000 : 10000, 10);
		clock_t start = clock();

		accept(RLMD_PLAN_DEPENDENCY_AWARE, big.operations, big.count);
		spent[i] = clock() - start;
		big_free(&big);
	}
	print_message("# checked 10,000 operations with 100,000 dependencies in %.1f ms, twice as "
		      "many in %.1f times that\n",
		      1000.0 * (double)spent[0] / CLOCKS_PER_SEC,
		      (double)spent[1] / (double)(spent[0] + 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),         cmocka_unit_test(test_dependencies),
		cmocka_unit_test(test_substitutions), cmocka_unit_test(test_literal),
		cmocka_unit_test(test_missing),       cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_limits),        cmocka_unit_test(test_ready),
		cmocka_unit_test(test_long_cycle),    cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

/* async/metrics: counts of executions, their sums and ratios, and the text that Prometheus reads.
 */
#include "async/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static void count(struct rlmd_plan_metrics *metrics, enum rlmd_operation_type type,
		  enum rlmd_plan_status status, enum rlmd_plan_error_kind error, int64_t tokens)
{
	const struct rlmd_operation operation = {.type = type};
	const struct rlmd_plan_result result = {
		.operation = &operation, .status = status, .error = error, .tokens = tokens};

	metrics_count(metrics, &result);
}

static void test_outcomes(void **state)
{
	struct rlmd_plan_metrics metrics = {0};

	(void)state;
	count(&metrics, RLMD_OPERATION_VERIFY, RLMD_PLAN_SUCCEEDED, RLMD_PLAN_OK, 5);
	count(&metrics, RLMD_OPERATION_QUERY, RLMD_PLAN_FAILED, RLMD_PLAN_ERROR_OPERATION, 1);
	count(&metrics, RLMD_OPERATION_QUERY, RLMD_PLAN_FAILED, RLMD_PLAN_ERROR_TIMEOUT, 1);
	count(&metrics, RLMD_OPERATION_QUERY, RLMD_PLAN_FAILED, RLMD_PLAN_ERROR_DEPENDENCY, 0);
	count(&metrics, RLMD_OPERATION_QUERY, RLMD_PLAN_CANCELLED, RLMD_PLAN_ERROR_TIMEOUT, 0);
	/* a type of a later version */
	count(&metrics, (enum rlmd_operation_type)99, RLMD_PLAN_SUCCEEDED, RLMD_PLAN_OK, 0);
	assert_int_equal(metrics.operations[RLMD_OPERATION_VERIFY][RLMD_OUTCOME_SUCCEEDED], 1);
	assert_int_equal(metrics.operations[RLMD_OPERATION_QUERY][RLMD_OUTCOME_SUCCEEDED], 1);
	assert_int_equal(metrics.operations[RLMD_OPERATION_QUERY][RLMD_OUTCOME_FAILED], 1);
	assert_int_equal(metrics.operations[RLMD_OPERATION_QUERY][RLMD_OUTCOME_TIMEOUT], 1);
	assert_int_equal(metrics.operations[RLMD_OPERATION_QUERY][RLMD_OUTCOME_DEPENDENCY], 1);
	assert_int_equal(metrics.operations[RLMD_OPERATION_QUERY][RLMD_OUTCOME_CANCELLED], 1);
	assert_int_equal(metrics.tokens, 7);
}

/* Where more run than there are slots, as after a reconfiguration, each has had one. */
static void test_utilisation(void **state)
{
	struct rlmd_plan_metrics metrics = {0};

	(void)state;
	metrics_pass(&metrics, 10, 1, 4);
	metrics_pass(&metrics, 10, 3, 2);
	assert_int_equal(metrics.busy_ms, 40);
	assert_int_equal(metrics.slot_ms, 70);
	assert_true(rlmd_plan_metrics_utilisation(&metrics) == 40.0 / 70.0);
}

static void test_sums(void **state)
{
	struct rlmd_plan_metrics *total = rlmd_plan_metrics_new(), one = {0};

	(void)state;
	one.executions[RLMD_PLAN_SEQUENTIAL] = 1;
	one.tokens = INT64_MAX - 1;
	one.parallel_highest = 7;
	one.races = 4;
	one.races_won = 1;
	rlmd_plan_metrics_add(total, &one);
	one.parallel_highest = 3;
	rlmd_plan_metrics_add(total, &one);
	assert_int_equal(total->executions[RLMD_PLAN_SEQUENTIAL], 2);
	assert_true(total->tokens == INT64_MAX);
	assert_int_equal(total->parallel_highest, 7);
	assert_true(rlmd_plan_metrics_win_rate(total) == 0.25);
	rlmd_plan_metrics_free(total);
	assert_true(metrics_sum(INT64_MAX, 1) == INT64_MAX);
	assert_int_equal(metrics_sum(2, 3), 5);
}

static void test_bad_arguments(void **state)
{
	const struct rlmd_plan_metrics metrics = {0};

	(void)state;
	assert_int_equal(rlmd_plan_metrics_operations(&metrics, (enum rlmd_operation_type)99,
						      RLMD_OUTCOME_FAILED),
			 0);
	assert_int_equal(rlmd_plan_metrics_operations(&metrics, RLMD_OPERATION_QUERY,
						      (enum rlmd_plan_outcome)99),
			 0);
	assert_int_equal(
		rlmd_plan_metrics_operations(NULL, RLMD_OPERATION_QUERY, RLMD_OUTCOME_FAILED), 0);
	assert_true(rlmd_plan_metrics_win_rate(&metrics) == 0);
}

/* Each metric has its help and its type once, in front of its samples. */
static void test_text(void **state)
{
	struct rlmd_plan_metrics metrics = {.tokens = 6, .races = 4, .races_won = 1};
	auto_free char *text = NULL;

	(void)state;
	metrics.operations[RLMD_OPERATION_TRANSFORM][RLMD_OUTCOME_TIMEOUT] = 3;
	metrics.executions[RLMD_PLAN_PARALLEL] = 2;
	text = rlmd_plan_metrics_text(&metrics);
	assert_non_null(strstr(text, "\nrlmd_plan_operations_total{type=\"Transform\",outcome="
				     "\"timeout\"} 3\n"));
	assert_non_null(strstr(text, "\nrlmd_plan_executions_total{strategy=\"Parallel\"} 2\n"));
	assert_non_null(strstr(text, "\n# TYPE rlmd_plan_tokens_total counter\n"
				     "rlmd_plan_tokens_total 6\n"));
	assert_non_null(strstr(text, "\n# TYPE rlmd_plan_speculative_win_ratio gauge\n"
				     "rlmd_plan_speculative_win_ratio 0.25\n"));
	for (const char *at = text; *at;) {
		size_t size = strcspn(at, "\n");
		auto_free char *line = xstrndup(at, size);

		at += size + 1;
		if (!strncmp(line, "# HELP ", 7))
			assert_null(strstr(at, line));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcomes), cmocka_unit_test(test_utilisation),
		cmocka_unit_test(test_sums),     cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}

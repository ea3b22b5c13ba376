/* cli/batch_report: a batch's end as an object, and as the errors that people read. */
#include "cli/batch_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/money.h"
#include "base/text.h"
#include "batch/scoreboard.h"
#include "cli/tell.h"
#include "told.h"

static void count(struct scoreboard *board, const char *tenant, int64_t pending, int64_t succeeded)
{
	const struct store_count counts = {.tenant = text_of(tenant),
					   .jobs = {pending, 0, succeeded, 0}};

	scoreboard_count(board, &counts, 1);
}

static const char *tell_of(struct told *told, const struct summary *summary,
			   const struct scoreboard *board, const char *results)
{
	json_t *report = batch_report_new(summary, board, "b");

	told_begin(told);
	batch_report_tell(report, results);
	json_decref(report);
	return told_end(told);
}

static void test_as_data(void **state)
{
	struct summary summary = {
		.succeeded = 3, .degraded = 1, .failed = 2, .pending = 4, .bad = 1};
	struct scoreboard *board = scoreboard_new();
	json_t *report, *wanted;

	(void)state;
	summary.kinds[RLMD_ERROR_INPUT] = 2;
	summary.cost = MONEY_DOLLAR / 2;
	summary.tokens = 99;
	count(board, "", 4, 3);
	board->tenants[0]->stop = TENANT_STOP_KEY;
	scoreboard_explain(board, "", "401");
	report = batch_report_new(&summary, board, NULL);
	wanted = json_pack(
		"{s:n, s:i, s:i, s:i, s:i, s:i, s:i, s:{s:i}, s:b, s:f, s:i, s:[{s:n, s:i, "
		"s:i, s:i, s:f, s:i, s:s, s:s}]}",
		"batch", "jobs", 9, "succeeded", 3, "degraded", 1, "failed", 2, "pending", 4,
		"badLines", 1, "kinds", "input", 2, "halted", 0, "cost", 0.5, "tokens", 99,
		"tenants", "tenant", "succeeded", 3, "failed", 0, "pending", 4, "cost", 0.0,
		"tokens", 0, "stopped", "key", "why", "401");
	assert_true(json_equal(report, wanted));
	json_decref(report);
	json_decref(wanted);
	scoreboard_free(board);
}

static void test_nothing_to_tell(void **state)
{
	const struct summary summary = {.succeeded = 3};
	struct scoreboard *board = scoreboard_new();
	struct told told;

	(void)state;
	count(board, "", 0, 3);
	assert_string_equal(tell_of(&told, &summary, board, "r.jsonl"), "");
	scoreboard_free(board);
}

/* One line for each reason, and none of them twice. */
static void test_each_reason(void **state)
{
	struct summary summary = {
		.succeeded = 3, .degraded = 2, .failed = 1, .pending = 5, .bad = 2};
	struct scoreboard *board = scoreboard_new();
	struct told told;
	const char *text;

	(void)state;
	summary.kinds[RLMD_ERROR_INPUT] = 1;
	count(board, "acme", 1, 3);
	count(board, "zeta", 2, 0);
	count(board, "busy", 2, 0);
	board->tenants[0]->stop = TENANT_STOP_MONEY;
	board->tenants[1]->stop = TENANT_STOP_KEY;
	board->tenants[2]->stop = TENANT_STOP_BUSY;
	scoreboard_explain(board, "zeta", "401");
	text = tell_of(&told, &summary, board, NULL);
	assert_string_equal(
		text,
		"rlmd: error: 1 job failed (1 input): 'rlmd results' gives them and says why; 'rlmd "
		"batch --rerun-failed' tries again\n"
		"rlmd: error: 2 jobs succeeded with a forced or degraded answer: 'rlmd batch "
		"--rerun-degraded' asks anew, with more to spend\n"
		"rlmd: error: tenant 'acme': 1 job is pending, as the cap is reached; mend that, and the "
		"same command goes on\n"
		"rlmd: error: tenant 'zeta': 2 jobs are pending, as the key was refused, or its account "
		"has no money: 401; mend that, and the same command goes on\n"
		"rlmd: error: 2 jobs are pending: the same command goes on with them\n"
		"rlmd: error: 2 lines are no job, and were passed over\n");
	summary.halted = true;
	assert_non_null(
		strstr(tell_of(&told, &summary, board, "r"), "pending, as enough had failed:"));
	assert_non_null(strstr(told.text, "(1 input): r says why"));
	scoreboard_free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_data),
		cmocka_unit_test(test_nothing_to_tell),
		cmocka_unit_test(test_each_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

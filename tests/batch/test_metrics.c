/* batch/metrics: names that are data, money to the last digit, and tenants without end. The format
 * as a whole is read by system/test_batch_watch.py. */
#include "batch/metrics.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "batch/batch_job.h"
#include "batch/scoreboard.h"

static void count(struct scoreboard *board, const char *tenant)
{
	const struct store_count counts = {
		.tenant = text_of(tenant), .jobs = {1, 2, 3, 4}, .cost = 1230000000001};

	scoreboard_count(board, &counts, 1);
}

static char *text_of_board(const struct scoreboard *board)
{
	auto_evbuffer struct evbuffer *out = evbuffer_new();

	metrics_write(board, "a \"b\"\\", 1500, out);
	return text_drain(out, NULL);
}

static void has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no %s in\n%s", line, text);
}

static void test_names_and_numbers(void **state)
{
	const struct batch_job_end end = {.error.kind = RLMD_ERROR_NETWORK, .paid_cost = 7};
	const struct store_job claimed = {.tenant = text_of("x\ny")};
	struct scoreboard *board = scoreboard_new();
	struct scoreboard_job *job;
	auto_free char *text = NULL;

	(void)state;
	count(board, "x\ny");
	job = scoreboard_begin(board, &claimed);
	scoreboard_end(job, &end, SCOREBOARD_RETRIED);
	board->took_ms = 12345;
	text = text_of_board(board);
#define LABELS "{batch=\"a \\\"b\\\"\\\\\",tenant=\"x\\ny\""
	has(text, "\nrlmd_batch_jobs" LABELS ",state=\"succeeded\"} 3\n");
	has(text, "\nrlmd_batch_jobs_at_work" LABELS "} 1\n");
	has(text, "\nrlmd_batch_cost_dollars" LABELS "} 1.230000000001\n");
	has(text, "\nrlmd_batch_paid_dollars_total" LABELS "} 0.000000000007\n");
	has(text, "\nrlmd_batch_attempt_errors_total" LABELS ",kind=\"network\"} 1\n");
	has(text, "\nrlmd_batch_attempts_total" LABELS ",outcome=\"retried\"} 1\n");
	has(text, "_start_time_seconds{batch=\"a \\\"b\\\"\\\\\"} 1.500\n");
	has(text, "_seconds_bucket{batch=\"a \\\"b\\\"\\\\\",le=\"2.5\"} 1\n");
	has(text, "_seconds_sum{batch=\"a \\\"b\\\"\\\\\"} 12.345\n");
	scoreboard_leave(job, true);
	scoreboard_free(board);
}

static void test_too_many_tenants(void **state)
{
	struct scoreboard *board = scoreboard_new();
	auto_free char *text = NULL;
	char name[16];
	int lines = 0;

	(void)state;
	for (int i = 0; i < METRICS_TENANTS_MAX + 3; i++) {
		snprintf(name, sizeof name, "t%d", i);
		count(board, name);
	}
	text = text_of_board(board);
	has(text, "tenant=\"(others)\",state=\"failed\"} 12\n");
	has(text, "tenant=\"t199\",state=\"failed\"} 4\n");
	for (const char *at = text; (at = strstr(at, ",state=\"failed\"}")); at++)
		lines++;
	assert_int_equal(lines, METRICS_TENANTS_MAX + 1);
	scoreboard_free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_numbers),
		cmocka_unit_test(test_too_many_tenants),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}

/* batch/scoreboard: what is shown of a batch, and how long it may take. */
#include "batch/scoreboard.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "batch/batch_job.h"

static void count(struct scoreboard *board, const char *tenant, int64_t pending, int64_t running,
		  int64_t succeeded)
{
	const struct store_count counts = {
		.tenant = text_of(tenant),
		.jobs = {pending, running, succeeded, 0},
		.cost = 5,
	};

	scoreboard_count(board, &counts, 1);
}

static struct scoreboard_job *begin(struct scoreboard *board, const char *tenant)
{
	const struct store_job job = {
		.custom_id = text_of("a"), .tenant = text_of(tenant), .attempts = 1};

	return scoreboard_begin(board, &job);
}

static void end(struct scoreboard *board, const char *tenant, enum rlmd_error_kind kind,
		enum scoreboard_outcome outcome, bool written)
{
	const struct batch_job_end end = {
		.error.kind = kind, .cost = 10, .tokens = 2, .paid_cost = 7, .paid_tokens = 1};
	struct scoreboard_job *job = begin(board, tenant);

	scoreboard_end(job, &end, outcome);
	scoreboard_leave(job, written);
}

static void check(const struct scoreboard_sum *sum, int64_t pending, int64_t running,
		  int64_t succeeded, int64_t failed)
{
	assert_int_equal(sum->jobs[STORE_JOB_PENDING], pending);
	assert_int_equal(sum->jobs[STORE_JOB_RUNNING], running);
	assert_int_equal(sum->jobs[STORE_JOB_SUCCEEDED], succeeded);
	assert_int_equal(sum->jobs[STORE_JOB_FAILED], failed);
}

static void test_jobs(void **state)
{
	struct scoreboard *board = scoreboard_new();
	struct scoreboard_tenant *tenant;
	struct scoreboard_job *job;
	struct scoreboard_sum sum;

	(void)state;
	count(board, "t", 10, 1, 2);
	end(board, "t", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, true);
	end(board, "t", RLMD_ERROR_SCHEMA, SCOREBOARD_FAILED, true);
	end(board, "t", RLMD_ERROR_NETWORK, SCOREBOARD_RETRIED, true);
	end(board, "t", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, false);
	job = begin(board, "t");
	job->status.cost = 100;
	job->status.calls_in_flight = 3;
	sum = scoreboard_sum(board, clock_ms());
	check(&sum, 7, 2, 3, 1);
	assert_int_equal(sum.at_work, 1);
	assert_int_equal(sum.calls_in_flight, 3);
	assert_int_equal(sum.cost, 5 + 10 + 10 + 100);
	tenant = board->tenants[0];
	assert_int_equal(tenant->attempts[SCOREBOARD_SUCCEEDED], 2);
	assert_int_equal(tenant->attempts[SCOREBOARD_RETRIED], 1);
	assert_int_equal(tenant->errors[RLMD_ERROR_NETWORK], 1);
	assert_int_equal(tenant->paid_cost, 4 * 7);
	scoreboard_leave(job, false);
	sum = scoreboard_sum(board, clock_ms());
	check(&sum, 8, 1, 3, 1);
	for (int i = 0; i < 8; i++)
		end(board, "t", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, true);
	end(board, "t", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, true);
	sum = scoreboard_sum(board, clock_ms());
	check(&sum, 0, 0, 12, 1);
	scoreboard_free(board);
}

/* Nothing is said before there is something to say; who waits for a key is not waited for. */
static void test_what_is_left(void **state)
{
	struct scoreboard *board = scoreboard_new();
	struct fair_queue queue = {0};
	struct scoreboard_sum sum;
	int64_t began;

	(void)state;
	count(board, "a", 100, 0, 0);
	count(board, "b", 1000, 0, 0);
	began = board->recent[0].at_ms;
	fair_queue_stop(&queue, fair_queue_get(&queue, text_of("b")), TENANT_STOP_KEY, INT64_MAX);
	scoreboard_look(board, &queue);
	for (int i = 0; i < 2; i++)
		end(board, "a", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, true);
	sum = scoreboard_sum(board, began + 1000);
	assert_int_equal(sum.left_ms, -1);
	for (int i = 0; i < 2; i++)
		end(board, "a", RLMD_ERROR_NONE, SCOREBOARD_SUCCEEDED, true);
	sum = scoreboard_sum(board, began + 1000);
	assert_int_equal(sum.left_ms, 96 * 1000 / 4);
	sum = scoreboard_sum(board, began + 2000);
	assert_int_equal(sum.left_ms, 96 * 2000 / 4);
	board->draining = true;
	assert_int_equal(scoreboard_sum(board, began + 2000).left_ms, -1);
	fair_queue_done(&queue);
	scoreboard_free(board);
}

static void test_durations(void **state)
{
	struct scoreboard *board = scoreboard_new();
	const struct batch_job_end ends = {.cost = 1};
	struct scoreboard_job *job;

	(void)state;
	for (int i = 0; i <= SCOREBOARD_BUCKETS; i++) {
		job = begin(board, "");
		job->began_ms -= i ? scoreboard_bounds[i - 1] + 1 : 0;
		scoreboard_end(job, &ends, SCOREBOARD_FAILED);
		scoreboard_leave(job, true);
	}
	for (int i = 0; i <= SCOREBOARD_BUCKETS; i++)
		assert_int_equal(board->took[i], 1);
	scoreboard_free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests_name("scoreboard", tests, NULL, NULL);
}

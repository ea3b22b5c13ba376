/* cli/batch_watch: what stands in the line of a batch, and what goes where it is too narrow. */
#include "cli/batch_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/money.h"
#include "base/text.h"
#include "batch/scoreboard.h"
#include "cli/progress.h"

static void count(struct scoreboard *board, const char *tenant, int64_t pending, int64_t succeeded)
{
	const struct store_count counts = {.tenant = text_of(tenant),
					   .jobs = {pending, 0, succeeded, 0}};

	scoreboard_count(board, &counts, 1);
}

static void format(const struct scoreboard *board, const struct scoreboard_sum *sum, bool stopping,
		   size_t width, char out[static PROGRESS_LINE_MAX])
{
	struct progress_line line = {.count = 0};

	batch_watch_describe(board, sum, stopping, &line);
	progress_format(&line, width, out);
}

static void test_what_goes_first(void **state)
{
	static const char *const lines[] = {
		"finishing (Ctrl-C stops now) | 412 of 1000 | 3 failed | 8 at work | 12 calls | "
		"$1.23 | 14m left | acme 3/10, - 0/5 stopped: key",
		"finishing | 412 of 1000 | 3 failed | 8 at work | 12 calls | "
		"$1.23 | 14m left | acme 3/10, - 0/5 stopped: key",
		"finishing | 412 of 1000 | 3 failed | 8 at work | 12 calls | $1.23 | 14m left",
		"finishing | 412 of 1000 | 3 failed | 8 at work | $1.23 | 14m left",
		"finishing | 412 of 1000 | 3 failed | $1.23 | 14m left",
		"412 of 1000 | 3 failed | $1.23 | 14m left",
		"412 of 1000 | 3 failed | $1.23",
		"412 of 1000 | 3 failed",
		"412 of 1000",
		"",
	};
	const struct scoreboard_sum sum = {
		.jobs = {580, 8, 409, 3},
		.at_work = 8,
		.calls_in_flight = 12,
		.cost = MONEY_DOLLAR * 123 / 100,
		.left_ms = INT64_C(14) * 60000,
	};
	struct scoreboard *board = scoreboard_new();
	size_t width = PROGRESS_LINE_MAX, next = 0;
	char line[PROGRESS_LINE_MAX];

	(void)state;
	count(board, "acme", 7, 3);
	count(board, "", 5, 0);
	board->tenants[1]->stop = TENANT_STOP_KEY;
	do {
		format(board, &sum, true, width, line);
		assert_string_equal(line, lines[next++]);
		width = strlen(line) - 1;
	} while (*line);
	scoreboard_free(board);
}

static void test_little_to_say(void **state)
{
	const struct scoreboard_sum sum = {.jobs = {2, 1, 0, 0}, .left_ms = -1};
	struct scoreboard *board = scoreboard_new();
	char line[PROGRESS_LINE_MAX];

	(void)state;
	count(board, "alone", 3, 0);
	format(board, &sum, false, 80, line);
	assert_string_equal(line, "0 of 3 | 0 at work | 0 calls | $0.00");
	scoreboard_free(board);
}

static void test_tenants_that_are_many_or_strange(void **state)
{
	const struct scoreboard_sum sum = {.left_ms = -1};
	struct scoreboard *board = scoreboard_new();
	char line[PROGRESS_LINE_MAX];

	(void)state;
	count(board, "caf\xc3\xa9\x1b[2J", 1, 1);
	board->tenants[0]->stop = TENANT_STOP_BUSY;
	for (int i = 0; i < 9; i++)
		count(board, (char[]){'a', (char)('0' + i), '\0'}, 1, 1);
	format(board, &sum, false, PROGRESS_LINE_MAX, line);
	assert_non_null(
		strstr(line, "| caf???[2J 1/2 busy, a0 1/2, a1 1/2, a2 1/2, a3 1/2, 5 more"));
	scoreboard_free(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_goes_first),
		cmocka_unit_test(test_little_to_say),
		cmocka_unit_test(test_tenants_that_are_many_or_strange),
	};

	return cmocka_run_group_tests_name("batch_watch", tests, NULL, NULL);
}

/* store/result: what rows say, and which of them are not as they were written. Rows by hand. */
#include "store/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/checksum.h"
#include "store/query.h"
#include "store/store.h"

/* A cell: a text, or where it is NULL a number. */
struct cell {
	int64_t integer;
	const char *text;
};

static void add_row(struct query *query, size_t set, const struct cell *cells, size_t count)
{
	struct value *row = query_add_row(query, set, count);

	for (size_t i = 0; i < count; i++)
		if (cells[i].text)
			query_set_value(&row[i], text_of(cells[i].text));
		else
			row[i] = (struct value){.is_integer = true, .integer = cells[i].integer};
}

#define ROW(query, set, ...)                                                                       \
	add_row((query), (set), (const struct cell[]){__VA_ARGS__},                                \
		sizeof((const struct cell[]){__VA_ARGS__}) / sizeof(struct cell))
#define N(number)                                                                                  \
	{                                                                                          \
		number, NULL                                                                       \
	}
#define T(string)                                                                                  \
	{                                                                                          \
		0, string                                                                          \
	}

/* The parts of the last result that are compared; its texts are lent no longer. */
static struct {
	int times;
	enum store_fault fault;
	char error[200];
	size_t count;
	struct store_load load;
	enum store_line_state lines[4];
	bool lost[4];
	struct store_count counts[4];
	int64_t numbers[4];
} heard;

static void on_result(void *owner, const struct store_result *result)
{
	(void)owner;
	memset(&heard, 0, sizeof heard);
	heard.times++;
	heard.fault = result->fault;
	snprintf(heard.error, sizeof heard.error, "%.199s", result->error.text);
	heard.count = result->count;
	heard.load = result->load;
	for (size_t i = 0; i < result->count && i < 4; i++) {
		if (result->lines)
			heard.lines[i] = result->lines[i];
		if (result->lost)
			heard.lost[i] = result->lost[i];
		if (result->counts)
			heard.counts[i] = result->counts[i];
		if (result->jobs)
			heard.numbers[i] = result->jobs[i].number;
	}
}

static struct query *ask(enum script script, size_t sets)
{
	return query_new(script, sets, on_result, NULL);
}

static void assert_damaged(const char *what)
{
	assert_int_equal(heard.times, 1);
	assert_int_equal(heard.fault, STORE_CORRUPT);
	if (!strstr(heard.error, what))
		fail_msg("%s", heard.error);
}

/* A batch that is ready takes no more jobs, unless some are to be added. */
static void test_load(void **state)
{
	(void)state;
	for (int adds = 0; adds < 2; adds++) {
		struct query *query = ask(SCRIPT_LOAD_BEGIN, 1);

		query_put_text(query, text_of("batch"));
		query_put(query, adds);
		query_put_text(query, text_of("node"));
		ROW(query, 0, N(7), T("batch"), T("digest"), N(3), N(99), N(5));
		query_end(query);
		assert_int_equal(heard.fault, STORE_FINE);
		assert_int_equal(heard.load.batch, 7);
		assert_int_equal(heard.load.token, adds ? 99 : 0);
		assert_int_equal(heard.load.after, 5);
	}
}

static void put_line(struct query *query, int64_t number, const char *digest)
{
	query_put(query, 1);
	query_put(query, 2);
	query_put(query, number);
	query_put_text(query, text_of("id"));
	query_put_text(query, text_of(""));
	query_put_text(query, text_of(digest));
	query_put_text(query, text_of("{}"));
	query_put(query, 0);
	query_put(query, 0);
}

/* Where another number stands with the name, digests tell whether it is the same job. */
static void test_lines(void **state)
{
	struct query *query = ask(SCRIPT_LOAD_ADD, 3);

	(void)state;
	for (int64_t number = 1; number <= 3; number++)
		put_line(query, number, "d");
	ROW(query, 2, N(9), T("other"));
	ROW(query, 0, N(1), T("d"));
	ROW(query, 1, N(9), T("d"));
	query_end(query);
	assert_int_equal(heard.fault, STORE_FINE);
	assert_int_equal(heard.count, 3);
	assert_int_equal(heard.lines[0], STORE_LINE_NEW);
	assert_int_equal(heard.lines[1], STORE_LINE_SAME);
	assert_int_equal(heard.lines[2], STORE_LINE_DIFFERS);
	query = ask(SCRIPT_LOAD_ADD, 2);
	put_line(query, 1, "d");
	put_line(query, 2, "d");
	ROW(query, 0, N(1), T("d"));
	query_end(query); /* somebody else loads it by now */
	assert_int_equal(heard.fault, STORE_REFUSED);
}

static void test_leases(void **state)
{
	struct query *query = ask(SCRIPT_RENEW, 3);

	(void)state;
	ROW(query, 1, N(1));
	query_end(query);
	assert_int_equal(heard.count, 3);
	assert_true(heard.lost[0] && !heard.lost[1] && heard.lost[2]);
	query = ask(SCRIPT_FINISH, 1);
	query_end(query);
	assert_int_equal(heard.fault, STORE_REFUSED);
	query = ask(SCRIPT_FINISH, 1);
	ROW(query, 0, N(1));
	query_end(query);
	assert_int_equal(heard.fault, STORE_FINE);
}

static void claim_row(struct query *query, int64_t number, const char *name, int64_t sum)
{
	ROW(query, 0, N(100 + number), N(1), N(number), N(0), T(name), T(""), T("{}"), N(sum),
	    N(0));
}

/* In the order of the file; a line that was changed is not carried out. */
static void test_claims(void **state)
{
	const struct store_job job = {.number = 2,
				      .custom_id = text_of("b"),
				      .tenant = text_of(""),
				      .line = text_of("{}")};
	struct query *query = ask(SCRIPT_CLAIM, 1);

	(void)state;
	claim_row(query, 3, "c", 0); /* of a version without sums */
	claim_row(query, 2, "b", checksum_of_line(&job));
	query_end(query);
	assert_int_equal(heard.fault, STORE_FINE);
	assert_int_equal(heard.numbers[0], 2);
	assert_int_equal(heard.numbers[1], 3);
	query = ask(SCRIPT_CLAIM, 1);
	claim_row(query, 2, "b", checksum_of_line(&job) + 1);
	query_end(query);
	assert_damaged("job 'b' is not as it was written");
}

static void count_row(struct query *query, const char *tenant, int64_t state, int64_t jobs,
		      int64_t due, int64_t all, const char *bad)
{
	ROW(query, 0, T(tenant), N(state), N(jobs), N(5), N(7), N(due), T(bad), N(all), N(1));
}

/* The rows of a tenant are one; the batch knows how many jobs it has. */
static void test_counts(void **state)
{
	struct query *query = ask(SCRIPT_COUNTS, 1);

	(void)state;
	count_row(query, "a", STORE_JOB_PENDING, 2, 30, 6, "");
	count_row(query, "a", STORE_JOB_RUNNING, 1, 20, 6, "");
	count_row(query, "b", STORE_JOB_SUCCEEDED, 3, 10, 6, "");
	query_end(query);
	assert_int_equal(heard.fault, STORE_FINE);
	assert_int_equal(heard.count, 2);
	assert_int_equal(heard.counts[0].jobs[STORE_JOB_PENDING], 2);
	assert_int_equal(heard.counts[0].jobs[STORE_JOB_RUNNING], 1);
	assert_int_equal(heard.counts[0].cost, 10);
	assert_int_equal(heard.counts[0].tokens, 14);
	assert_int_equal(heard.counts[0].degraded, 2);
	assert_int_equal(heard.counts[0].due_ms, 20);
	assert_true(heard.counts[1].due_ms == INT64_MAX); /* they are over */
	query = ask(SCRIPT_COUNTS, 1);
	count_row(query, "a", STORE_JOB_PENDING, 2, 30, 3, "");
	query_end(query);
	assert_damaged("the number of the batch's jobs is not");
	query = ask(SCRIPT_COUNTS, 1);
	count_row(query, "a", 77, 2, 30, 2, "x");
	query_end(query);
	assert_damaged("job 'x' is not");
}

/* The fault of the database is told as it is, and no row is read. */
static void test_faults(void **state)
{
	struct query *query = ask(SCRIPT_COUNTS, 1);

	(void)state;
	ROW(query, 0, N(1));
	query_fail(query, STORE_AWAY, "no route");
	query_end(query);
	assert_int_equal(heard.times, 1);
	assert_int_equal(heard.fault, STORE_AWAY);
	assert_string_equal(heard.error, "no route");
	assert_int_equal(heard.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),   cmocka_unit_test(test_lines),
		cmocka_unit_test(test_leases), cmocka_unit_test(test_claims),
		cmocka_unit_test(test_counts), cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}

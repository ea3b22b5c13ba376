/* store/query: what goes into a query and comes out of it, without a database. */
#include "store/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(query_width("SELECT 1"), 0);
	assert_int_equal(query_width("SELECT $2, $1, $2"), 2);
	assert_int_equal(query_width("$12 $3"), 12);
}

static void test_scripts(void **state)
{
	(void)state;
	assert_true(query_script_writes(SCRIPT_LOAD_BEGIN));
	assert_false(query_script_writes(SCRIPT_FIND));
	assert_string_equal(query_script_types(SCRIPT_LOAD_BEGIN), "tit");
	assert_string_equal(query_script_types(SCRIPT_BATCHES), "");
}

/* Texts are copied; each set of parameters has the types of the script. */
static void test_parameters(void **state)
{
	struct query *query = query_new(SCRIPT_COMPARE, 2, NULL, NULL);
	char name[] = "name";

	(void)state;
	for (int set = 0; set < 2; set++) {
		query_put(query, set);
		query_put_text(query, text_of(name));
		query_put_text(query, (struct rlmd_text){0});
	}
	name[0] = 'x';
	assert_int_equal(query->width, 6);
	assert_true(query->params[3].is_integer);
	assert_int_equal(query->params[3].integer, 1);
	assert_true(text_equal(query->params[4].text, "name"));
	assert_non_null(query->params[5].text.bytes); /* empty, and not NULL */
	assert_int_equal(query->fault, STORE_FINE);
	query_free(query);
	query_free(NULL);
}

static void assert_usage(struct query *query, const char *why)
{
	assert_int_equal(query->fault, STORE_USAGE);
	assert_int_equal(query->error.kind, RLMD_ERROR_USAGE);
	assert_non_null(strstr(query->error.text, why));
	query_free(query);
}

static void test_out_of_range(void **state)
{
	static const char *const names[] = {"a\xff", "a\0b"};
	struct query *query;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		query = query_new(SCRIPT_FIND, 1, NULL, NULL);
		query_put_text(query, text_from(names[i], 2));
		assert_usage(query, "is no UTF-8");
	}
	query = query_new(SCRIPT_RENEW, 1, NULL, NULL);
	query_put_ms(query, -1);
	assert_usage(query, "no store holds anything for so long");
	query = query_new(SCRIPT_LEASE_SETTLE, 1, NULL, NULL);
	query_put(query, 1);
	query_put_amount(query, 1, INT64_MAX);
	assert_usage(query, "no store counts so much at once");
}

static void test_rows(void **state)
{
	struct query *query = query_new(SCRIPT_BATCHES, 1, NULL, NULL);
	struct value *row;

	(void)state;
	for (int i = 0; i < 100; i++) {
		row = query_add_row(query, (size_t)i, 2);
		row[0] = (struct value){.is_integer = true, .integer = i};
		query_set_value(&row[1], text_of("t"));
	}
	assert_int_equal(query->rows, 100);
	assert_int_equal(query->row_sets[99], 99);
	assert_int_equal(query_integer(query, 99, 0), 99);
	assert_true(text_equal(query_text(query, 50, 1), "t"));
	/* the wrong one, as in a damaged store */
	assert_true(text_equal(query_text(query, 99, 0), ""));
	assert_int_equal(query_integer(query, 99, 1), 0);
	query_reset(query);
	assert_int_equal(query->rows, 0);
	row = query_add_row(query, 0, 3); /* it may have others now */
	assert_int_equal(row[2].integer, 0);
	query_free(query);
}

static void test_failed(void **state)
{
	struct query *query = query_new(SCRIPT_BATCHES, 1, NULL, NULL);

	(void)state;
	assert_false(query_fail(query, STORE_CORRUPT, "%s: %d", "page", 7));
	assert_int_equal(query->error.kind, RLMD_ERROR_INPUT);
	assert_string_equal(query->error.text, "page: 7");
	assert_string_equal(query_fault_meaning(STORE_FINE), "no fault");
	for (int fault = STORE_FINE; fault <= STORE_FAILED; fault++)
		assert_non_null(query_fault_meaning((enum store_fault)fault));
	query_end(query); /* nobody asked */
}

static void test_line(void **state)
{
	struct query_line line = TAILQ_HEAD_INITIALIZER(line);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct query *query = query_new(SCRIPT_BATCHES, 1, NULL, NULL);

		TAILQ_INSERT_TAIL(&line, query, entry);
	}
	query_drop_all(&line);
	assert_true(TAILQ_EMPTY(&line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width),        cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_parameters),   cmocka_unit_test(test_rows),
		cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_failed),
		cmocka_unit_test(test_line),
	};

	alloc_install();
	return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}

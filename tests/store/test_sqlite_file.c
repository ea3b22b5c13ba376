/* store/sqlite_file: which files are taken, and what one transaction of several queries does. */
#include "store/sqlite_file.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static char directory[32];
static const atomic_bool never;

static int set_up(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/rlmd-sqlite-XXXXXX");
	return !mkdtemp(directory) || chdir(directory);
}

static int tear_down(void **state)
{
	auto_free char *command = xasprintf("rm -r %s", directory);

	(void)state;
	return chdir("/") || system(command);
}

static struct sqlite_file *open_file(const char *name, bool existing, enum store_fault *ret_fault)
{
	static char path[64]; /* lent as long as the file is open */
	const struct sqlite_file_options options = {
		.path = path, .patience_ms = 50, .existing = existing, .stop = &never};
	struct query *query = query_new(SCRIPT_OPEN, 1, NULL, NULL);
	struct sqlite_file *file;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	file = sqlite_file_open(&options, query);
	*ret_fault = query->fault;
	query_free(query);
	return file;
}

static struct query *begin_load(const char *name)
{
	struct query *query = query_new(SCRIPT_LOAD_BEGIN, 1, NULL, NULL);

	query_put_text(query, text_of(name));
	query_put(query, false);
	query_put_text(query, text_of("node"));
	return query;
}

static void test_files(void **state)
{
	enum store_fault fault;
	struct sqlite_file *file;

	(void)state;
	assert_null(open_file("store", true, &fault));
	assert_int_equal(fault, STORE_MISSING);
	assert_int_equal(access("store", F_OK), -1);
	file = open_file("store", false, &fault);
	assert_non_null(file);
	sqlite_file_close(file);
	file = open_file("store", true, &fault);
	assert_non_null(file);
	sqlite_file_close(file);
	assert_int_equal(symlink("store", "link"), 0);
	assert_null(open_file("link", true, &fault));
	assert_int_equal(fault, STORE_FOREIGN);
	assert_int_equal(chmod("store", 0666), 0);
	assert_null(open_file("store", true, &fault));
	assert_int_equal(fault, STORE_FOREIGN);
	sqlite_file_close(NULL);
}

/* All or nothing: a later query that finds the file locked, or broken, takes the first with it; of
 * several no one is blamed. */
static void test_one_transaction(void **state)
{
	struct query *one = begin_load("one"), *other = begin_load("two");
	struct query_line line = TAILQ_HEAD_INITIALIZER(line);
	enum store_fault fault;
	struct sqlite_file *file = open_file("store", false, &fault);
	sqlite3 *db;

	(void)state;
	TAILQ_INSERT_TAIL(&line, one, entry);
	TAILQ_INSERT_TAIL(&line, other, entry);
	assert_int_equal(sqlite3_open("store", &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "CREATE TRIGGER no_two BEFORE INSERT ON batch WHEN NEW.name = "
			     "'two' BEGIN SELECT RAISE(ABORT, 'no'); END",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_false(sqlite_file_run(file, &line));
	assert_int_equal(one->fault, STORE_FINE);
	assert_int_equal(other->fault, STORE_FINE);
	assert_int_equal(one->rows + other->rows, 0);
	TAILQ_REMOVE(&line, one, entry);
	assert_false(sqlite_file_run(file, &line)); /* alone, and to blame */
	assert_int_not_equal(other->fault, STORE_FINE);
	assert_int_equal(sqlite3_exec(db, "DROP TRIGGER no_two", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	other->fault = STORE_FINE;
	TAILQ_INSERT_HEAD(&line, one, entry);
	assert_true(sqlite_file_run(file, &line));
	assert_int_equal(query_integer(one, 0, 0), 1); /* nothing was there before */
	assert_true(text_equal(query_text(other, 0, 1), "two"));
	query_drop_all(&line);
	sqlite_file_close(file);
}

/* It changes when somebody else has written, and not by what we write. */
static void test_version(void **state)
{
	struct query *query = begin_load("batch");
	struct query_line line = TAILQ_HEAD_INITIALIZER(line);
	enum store_fault fault;
	struct sqlite_file *one = open_file("store", false, &fault);
	struct sqlite_file *other = open_file("store", false, &fault);
	int64_t before = sqlite_file_version(one), others = sqlite_file_version(other);

	(void)state;
	TAILQ_INSERT_TAIL(&line, query, entry);
	assert_true(sqlite_file_run(one, &line));
	assert_true(sqlite_file_version(one) == before);
	assert_false(sqlite_file_version(other) == others);
	query_drop_all(&line);
	sqlite_file_close(one);
	sqlite_file_close(other);
}

/* A lock of another process is waited for as long as was said, and then told. */
static void test_locked(void **state)
{
	struct query_line line = TAILQ_HEAD_INITIALIZER(line);
	enum store_fault fault;
	struct sqlite_file *file = open_file("store", false, &fault);
	struct query *query = begin_load("batch");
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open("store", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	TAILQ_INSERT_TAIL(&line, query, entry);
	assert_false(sqlite_file_run(file, &line));
	assert_int_equal(query->fault, STORE_LOCKED);
	assert_int_equal(query->rows, 0);
	sqlite3_close(db);
	query->fault = STORE_FINE;
	assert_true(sqlite_file_run(file, &line));
	assert_int_equal(query->rows, 1);
	query_drop_all(&line);
	sqlite_file_close(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files),
		TEST(test_one_transaction),
		TEST(test_version),
		TEST(test_locked),
	};

	alloc_install();
	return cmocka_run_group_tests_name("sqlite_file", tests, NULL, NULL);
}

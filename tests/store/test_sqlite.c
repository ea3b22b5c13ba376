/* The file of a store: cut off, damaged, held by others, without room. */
#include "store/database.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "where.h"

enum { JOBS = 30, LONG_MS = 60 * 60 * 1000 };

static struct event_base *loop;
static struct told told;
static char path[128];

#define DO(operation, ...) ASK(loop, &told, store_##operation, store, __VA_ARGS__)
#define FINE()             assert_string_equal(told.error, "")

static int set_up(void **state)
{
	(void)state;
	loop = loop_new();
	snprintf(path, sizeof path, "%s", where_fresh() + strlen("sqlite:"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	event_base_free(loop);
	return 0;
}

/* Whatever became of it stands in `told`. */
static struct store *open_store(int64_t patience_ms)
{
	struct store_options options = {patience_ms, .look_ms = -1, .owner = &told};
	struct store *store;

	told = (struct told){0};
	store = store_open(loop, path, &options, on_told, NULL);
	assert_non_null(store);
	await(loop, &told);
	return store;
}

static void run_sql(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Opens it, and hears why it cannot be used, then and whenever it is asked. */
static void expect_fault(enum store_fault fault, const char *words)
{
	struct store *store = open_store(20);

	assert_int_equal(told.fault, fault);
	assert_non_null(strstr(told.error, words));
	DO(counts, 1);
	assert_int_equal(told.fault, fault);
	assert_non_null(strstr(told.error, words));
	store_free(store);
}

static void test_places(void **state)
{
	struct store_options options = {0};
	struct rlmd_error err = {0};
	struct stat status;

	(void)state;
	assert_null(store_open(loop, "mysql://host/db", &options, on_told, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(store_open(loop, "sqlite:", &options, on_told, &err));
	store_free(open_store(0));
	FINE();
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);

	snprintf(path, sizeof path, "%s", where_path("missing/store"));
	expect_fault(STORE_USAGE, path);
	snprintf(path, sizeof path, "%s", where_path("."));
	expect_fault(STORE_FOREIGN, "no regular file");
	store_free(NULL);
}

static void test_strange_files(void **state)
{
	(void)state;
	run_sql("CREATE TABLE accounts (who)");
	expect_fault(STORE_USAGE, "another program");

	snprintf(path, sizeof path, "%s", where_path("newer"));
	store_free(open_store(0));
	FINE();
	run_sql("PRAGMA user_version = 99");
	expect_fault(STORE_NEWER, "version 99");
}

/* A store that is to be there is not made, nor is a file that is empty made one. */
static void test_none_is_made(void **state)
{
	struct store_options options = {.existing = true, .owner = &told};

	(void)state;
	for (int i = 0; i < 2; i++) {
		told = (struct told){0};
		struct store *store = store_open(loop, path, &options, on_told, NULL);

		await(loop, &told);
		assert_int_equal(told.fault, STORE_MISSING);
		store_free(store);
		assert_int_equal(access(path, F_OK), i ? 0 : -1);
		close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	}
	store_free(open_store(0));
	FINE();
	told = (struct told){0};
	store_free(store_open(loop, path, &options, on_told, NULL));
}

/* A table that is replaced by a view once the store is open may have rows without an end. */
static void test_no_end(void **state)
{
	struct store *store = open_store(0);

	(void)state;
	run_sql("DROP TABLE job; CREATE VIEW job AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
		" SELECT i + 1 FROM n) SELECT i AS id, 1 AS batch, 0 AS number, 0 AS state, 't' AS tenant,"
		" 0 AS cost, 0 AS tokens, 0 AS not_before, 0 AS lease_until, 't' AS custom_id FROM n");
	run_sql("INSERT INTO batch (name, made, digest, ready) VALUES ('b', 0, 'd', 1)");
	store_counts(store, 1, on_told, &told);
	event_base_loop(loop, EVLOOP_NONBLOCK);
	store_free(store);
	expect_fault(STORE_FOREIGN, "the table 'job'");
}

static void damage(off_t from, size_t size)
{
	static char junk[8192];
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	memset(junk, 0xa5, sizeof junk);
	assert_true(size <= sizeof junk);
	assert_int_equal(pwrite(fd, junk, size, from), size);
	close(fd);
}

static void load(struct store *store, size_t count)
{
	static struct store_line lines[JOBS];
	static char names[JOBS][24];
	struct store_load token;

	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "j%zu", i);
		lines[i] = (struct store_line){(int64_t)i + 1, text_of(names[i]), text_of("t"),
					       text_of("digest"), text_of("line")};
	}
	DO(load_begin, text_of("batch"), false);
	FINE();
	token = told.load;
	for (size_t i = 0; i < count; i += 10) {
		DO(load_add, &token, lines + i, count - i < 10 ? count - i : 10);
		FINE();
	}
	DO(load_end, &token, text_of("file"));
	FINE();
}

static void test_a_damaged_file(void **state)
{
	struct store *store;

	(void)state;
	damage(0, 8192);
	expect_fault(STORE_CORRUPT, "copy");

	snprintf(path, sizeof path, "%s", where_path("torn"));
	store = open_store(0);
	load(store, JOBS);
	store_free(store);
	damage(4096, 8192);
	store = open_store(0);
	ASK(loop, &told, store_batches, store);
	assert_int_equal(told.fault, STORE_CORRUPT);
	store_free(store);
}

static void test_others_hold_it(void **state)
{
	struct store *store = open_store(20);
	sqlite3 *db;

	(void)state;
	FINE();
	load(store, 1);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	DO(claim, 1, NULL, text_of("node"), 1, LONG_MS);
	assert_int_equal(told.fault, STORE_LOCKED);
	DO(counts, 1); /* reads go on */
	FINE();
	assert_int_equal(told.counts[0].jobs[STORE_JOB_PENDING], 1);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	DO(claim, 1, NULL, text_of("node"), 1, LONG_MS);
	FINE();
	assert_int_equal(told.count, 1);
	store_free(store);

	assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; DELETE FROM breaker",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	expect_fault(STORE_LOCKED, "try again");
	/* Freeing a store that waits for a lock does not wait for the lock. */
	store = store_open(loop, path, &(struct store_options){LONG_MS, .owner = &told}, on_told,
			   NULL);
	store_free(store);
	sqlite3_close(db);
	store_free(open_store(20));
	FINE();
}

static int held_news[2], told_times[2]; /* the news, and how much was told before each */

static void on_news(void *owner, enum store_news news)
{
	int number = held_news[0] ? 1 : 0;

	held_news[number] = (int)news;
	told_times[number] = ((struct told *)owner)->times;
}

/* The owner may free the store with the last query: by then it has heard that the lock is free. */
static void test_free_before_the_last_query(void **state)
{
	const struct store_options options = {.look_ms = -1, .news = on_news, .owner = &told};
	struct store *store = open_store(0);
	sqlite3 *db;

	(void)state;
	load(store, 1);
	store_free(store);
	told = (struct told){0};
	store = store_open(loop, path, &options, on_told, NULL);
	await(loop, &told);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	memset(held_news, 0, sizeof held_news);
	told = (struct told){0};
	store_claim(store, 1, NULL, text_of("node"), 1, LONG_MS, on_told, &told);
	while (held_news[0] != STORE_HELD)
		event_base_loop(loop, EVLOOP_ONCE);
	assert_int_equal(sqlite3_close(db), SQLITE_OK); /* rolls back */
	usleep(300000); /* so that the query is over before the loop looks */
	await(loop, &told);
	assert_int_equal(held_news[1], STORE_FREED);
	assert_int_equal(told_times[1], 0);
	store_free(store);
}

/* Without room nothing is kept that was not said to be, and all that was; with room it goes on. */
static void test_no_room(void **state)
{
	struct store_exchange exchange = {.key = text_of("k")};
	static char bytes[20 * 1000];
	struct store *store = open_store(0);
	struct store_claim claim;
	struct rlimit limit, small;
	int64_t kept = 0;

	(void)state;
	load(store, 2);
	DO(claim, 1, NULL, text_of("node"), 1, LONG_MS);
	claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){400 * 1000, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	do {
		exchange.number = kept;
		exchange.bytes = text_from(bytes, sizeof bytes);
		DO(journal_add, &claim, &exchange, NULL, 0);
	} while (!told.fault && ++kept < 100);
	setrlimit(RLIMIT_FSIZE, &limit);

	assert_int_equal(told.fault, STORE_FULL);
	assert_non_null(strstr(told.error, "make room"));
	assert_true(kept > 3);
	exchange.bytes = text_of("small");
	DO(journal_add, &claim, &exchange, NULL, 0);
	FINE();
	store_free(store);

	store = open_store(0);
	FINE();
	DO(journal_read, claim.job, 0, 1000);
	assert_int_equal(told.count, kept + 1);
	store_free(store);
}

/* Of what is asked for at once, what fails takes nothing else with it. */
static void test_one_of_many_fails(void **state)
{
	struct store *store = open_store(0);
	struct told tolds[3] = {0};
	struct store_account account;

	(void)state;
	load(store, 1);
	DO(account, 1, text_of("t"), INT64_MAX, INT64_MAX);
	account = told.account;
	run_sql("CREATE TRIGGER no BEFORE INSERT ON breaker BEGIN SELECT RAISE(FAIL, 'no'); END");
	store_lease_take(store, account.id, text_of("node"), 5, 5, LONG_MS, on_told, &tolds[0]);
	store_breaker_open(store, 1, text_of("t"), text_of("p"), text_of("w"), on_told, &tolds[1]);
	store_lease_take(store, account.id, text_of("node"), 7, 7, LONG_MS, on_told, &tolds[2]);
	for (int i = 0; i < 3; i++)
		await(loop, &tolds[i]);
	assert_int_equal(tolds[0].fault, STORE_FINE);
	assert_int_equal(tolds[1].fault, STORE_FAILED);
	assert_int_equal(tolds[2].fault, STORE_FINE);
	DO(account, 1, text_of("t"), INT64_MAX, INT64_MAX);
	assert_int_equal(told.account.held_cost, 12);
	store_free(store);
}

static struct rlmd_text content(const char *name, const char *end, char *bytes, size_t room)
{
	char whole[160];
	FILE *file;
	size_t size;

	snprintf(whole, sizeof whole, "%s%s", name, end);
	assert_non_null(file = fopen(whole, "r"));
	size = fread(bytes, 1, room, file);
	assert_true(size > 0 && size < room);
	fclose(file);
	return text_from(bytes, size);
}

static void put(const char *name, const char *end, struct rlmd_text text)
{
	char whole[160];
	FILE *file;

	snprintf(whole, sizeof whole, "%s%s", name, end);
	assert_non_null(file = fopen(whole, "w"));
	assert_int_equal(fwrite(text.bytes, 1, text.size, file), text.size);
	fclose(file);
}

/* The last writes may be missing after the machine's power was: what is left is whole. */
static void test_a_cut_journal(void **state)
{
	struct store_outcome outcome = {true, text_of("done"), text_of(""), 1, 1};
	static char bytes[1 << 20], log[8 << 20];
	struct store *store = open_store(0);
	struct rlmd_text before, after;
	char from[100];
	size_t last = 0;

	(void)state;
	load(store, JOBS);
	for (int i = 0; i < JOBS; i++) {
		struct store_claim claim;

		DO(claim, 1, NULL, text_of("node"), 1, LONG_MS);
		claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
		DO(finish, &claim, &outcome);
		FINE();
	}
	snprintf(from, sizeof from, "%.99s", path);
	before = content(from, "", bytes, sizeof bytes);
	after = content(from, "-wal", log, sizeof log);
	store_free(store);

	for (size_t part = 1; part <= 8; part++) {
		snprintf(path, sizeof path, "%s-%zu", from, part);
		put(path, "", before);
		put(path, "-wal", text_slice(after, 0, after.size * part / 8 - (part < 8)));
		store = open_store(0);
		FINE();
		DO(results, 1, 0, ASKING_MOST, false);
		assert_true(told.count >= last && told.count <= JOBS);
		last = told.count;
		for (size_t i = 0; i < last; i++)
			assert_int_equal(told.jobs[i].rank, i + 1);
		store_free(store);
	}
	assert_int_equal(last, JOBS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_places),         TEST(test_strange_files),
		TEST(test_a_damaged_file), TEST(test_others_hold_it),
		TEST(test_no_room),        TEST(test_one_of_many_fails),
		TEST(test_a_cut_journal),  TEST(test_none_is_made),
		TEST(test_no_end),         TEST(test_free_before_the_last_query),
	};
	int failed;

	where_begin(false);
	failed = cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
	where_end();
	return failed;
}

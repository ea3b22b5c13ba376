/* The file of a store: killed over it, damaged, held by others, without room. */
#include "store/sqlite.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "asking.h"
#include "base/clock.h"
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
	expect_fault(STORE_USAGE, path);
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
	/* Who frees a store that waits for a lock does not wait for it. */
	store = store_open(loop, path, &(struct store_options){LONG_MS, .owner = &told}, on_told,
			   NULL);
	store_free(store);
	sqlite3_close(db);
	store_free(open_store(20));
	FINE();
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
	store_money_take(store, account.id, text_of("node"), 5, 5, LONG_MS, on_told, &tolds[0]);
	store_breaker_open(store, 1, text_of("t"), text_of("p"), text_of("w"), on_told, &tolds[1]);
	store_money_take(store, account.id, text_of("node"), 7, 7, LONG_MS, on_told, &tolds[2]);
	for (int i = 0; i < 3; i++)
		await(loop, &tolds[i]);
	assert_int_equal(tolds[0].fault, STORE_FINE);
	assert_int_equal(tolds[1].fault, STORE_FAILED);
	assert_int_equal(tolds[2].fault, STORE_FINE);
	DO(account, 1, text_of("t"), INT64_MAX, INT64_MAX);
	assert_int_equal(told.account.held_cost, 12);
	store_free(store);
}

static void say(int pipe, const char *what, int64_t job)
{
	dprintf(pipe, "%s %lld\n", what, (long long)job);
}

/* Does what is left, and says what is durable. */
static int work(int pipe)
{
	struct store_exchange exchange = {
		.key = text_of("k"), .bytes = text_of("answer"), .cost = 1};
	struct store_outcome outcome = {true, text_of("done"), text_of(""), 1, 1};
	struct store *store = open_store(0);

	DO(find, text_of("batch"));
	if (!told.ready) {
		load(store, JOBS);
		say(pipe, "loaded", 0);
	}
	for (;;) {
		struct store_claim claim;

		/* The leases of who was killed are over at once. */
		DO(claim, 1, NULL, text_of("node"), 1, 0);
		FINE();
		if (!told.count)
			break;
		claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
		DO(journal_add, &claim, &exchange, NULL, 0);
		FINE();
		say(pipe, "kept", claim.job);
		DO(finish, &claim, &outcome);
		FINE();
		say(pipe, "finished", claim.job);
	}
	store_free(store);
	return 0;
}

/* Starts a worker, and kills it after some of its lines; what they were stands in `said`. */
static bool work_until_killed(int lines, char said[static 64], bool kept[static JOBS + 1],
			      bool finished[static JOBS + 1])
{
	int ends[2], status;
	long long job;
	FILE *in;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	if (!(pid = fork())) {
		event_reinit(loop);
		_exit(work(ends[1]));
	}
	close(ends[1]);
	in = fdopen(ends[0], "r");
	for (int i = 0; i < lines && fscanf(in, "%63s %lld", said, &job) == 2; i++)
		if (job)
			(*said == 'k' ? kept : finished)[job] = true;
	usleep((useconds_t)(rand() % 3000)); /* somewhere in what comes next */
	kill(pid, SIGKILL);
	while (fscanf(in, "%63s %lld", said, &job) == 2) /* what it said before it died counts */
		if (job)
			(*said == 'k' ? kept : finished)[job] = true;
	fclose(in);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

static void check_all(const bool kept[static JOBS + 1], const bool finished[static JOBS + 1])
{
	struct store *store = open_store(0);
	bool found[JOBS + 1] = {0};

	FINE();
	DO(find, text_of("batch"));
	assert_true(!told.ready || told.jobs_ready == JOBS);
	DO(results, 1, 0, ASKING_MOST, false);
	FINE();
	for (size_t i = 0; i < told.count; i++) {
		assert_string_equal(told.jobs[i].result, "done");
		assert_false(found[told.jobs[i].id]);
		found[told.jobs[i].id] = true;
	}
	for (int64_t job = 1; job <= JOBS; job++) {
		assert_true(found[job] || !finished[job]);
		DO(journal_read, job, 0, 10);
		assert_true(told.count <= 1);
		assert_int_equal(told.count, found[job] ? 0 : kept[job] || told.count);
	}
	store_free(store);
}

/* Killed again and again at any moment: what was told is there, and nothing is there in part. */
static void test_killed(void **state)
{
	bool kept[JOBS + 1] = {0}, finished[JOBS + 1] = {0}, killed = true;
	char said[64];
	int kills = 0;

	(void)state;
	srand(7);
	while (killed) {
		killed = work_until_killed(rand() % (kills < 4 ? 2 : 12), said, kept, finished);
		kills += killed;
		check_all(kept, finished);
	}
	assert_true(kills > 5);
	for (int job = 1; job <= JOBS; job++)
		assert_true(finished[job] || kills);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_places),         TEST(test_strange_files), TEST(test_a_damaged_file),
		TEST(test_others_hold_it), TEST(test_no_room),       TEST(test_one_of_many_fails),
		TEST(test_killed),
	};
	int failed;

	where_begin(false);
	failed = cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
	where_end();
	return failed;
}

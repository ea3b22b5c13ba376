#include "test_postgres.h"

#include <errno.h>
#include <event2/event.h>
#include <libpq-fe.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "server.h"
#include "store/database.h"

enum { LONG_MS = 60 * 60 * 1000 };

static struct event_base *loop;
static struct told told;
static int heard[STORE_NEWS];

#define DO(operation, ...) ASK(loop, &told, store_##operation, store, __VA_ARGS__)
#define FINE()             assert_string_equal(told.error, "")

static void on_news(void *owner, enum store_news news)
{
	(void)owner;
	heard[news]++;
}

static struct store *open_store(const char *place, int64_t patience_ms)
{
	struct store_options options = {patience_ms, .news = on_news, .owner = &told};
	struct store *store;

	if (!loop)
		loop = loop_new();
	memset(heard, 0, sizeof heard);
	told = (struct told){0};
	store = store_open(loop, place, &options, on_told, NULL);
	assert_non_null(store);
	await(loop, &told);
	return store;
}

static void expect_fault(const char *place, enum store_fault fault)
{
	struct store *store = open_store(place, 20);

	assert_int_equal(told.fault, fault);
	assert_non_null(strstr(told.error, "PostgreSQL"));
	DO(counts, 1);
	assert_int_equal(told.fault, fault);
	store_free(store);
}

/* Operations that the server missed or did not answer are done in order when it is back. */
void test_the_server_is_killed(void **state)
{
	struct told tolds[40] = {0};
	struct store *store = open_store(server_address(), 0);
	struct store_account account;
	int64_t lease;

	(void)state;
	FINE();
	DO(account, 1, text_of("t"), 1000, 1000);
	account = told.account;
	for (int i = 0; i < 20; i++)
		store_lease_take(store, account.id, text_of("n"), 10, 1, LONG_MS, on_told,
				 &tolds[i]);
	event_base_loop(loop, EVLOOP_ONCE);
	server_kill();
	while (!heard[STORE_WENT_AWAY])
		event_base_loop(loop, EVLOOP_ONCE);
	for (int i = 20; i < 40; i++)
		store_lease_take(store, account.id, text_of("n"), 10, 1, LONG_MS, on_told,
				 &tolds[i]);
	assert_int_equal(tolds[39].times, 0);
	server_start();
	for (int i = 0; i < 40; i++) {
		await(loop, &tolds[i]);
		assert_string_equal(tolds[i].error, "");
		assert_int_equal(tolds[i].lease.cost, 10);
		assert_true(!i || tolds[i].lease.id > tolds[i - 1].lease.id);
	}
	while (!heard[STORE_CAME_BACK])
		event_base_loop(loop, EVLOOP_ONCE);
	assert_int_equal(heard[STORE_WENT_AWAY], 1);
	assert_int_equal(heard[STORE_CAME_BACK], 1);
	lease = tolds[0].lease.id;
	DO(lease_settle, lease, 10, 1);
	FINE();
	DO(account, 1, text_of("t"), 1000, 1000);
	assert_int_equal(told.account.spent_cost, 10);
	/* Money that was granted by a lost answer is held, too: nothing is overspent. */
	assert_true(told.account.held_cost >= 390);
	store_free(store);
	event_base_free(loop);
	loop = NULL;
}

/* One number that the server tells. */
static int ask_number(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	int number = PQntuples(result) ? (int)strtol(PQgetvalue(result, 0, 0), NULL, 10) : 0;

	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	PQclear(result);
	return number;
}

/* The newest connection of this process to a PostgreSQL server. */
static int newest_connection(void)
{
	struct sockaddr_un peer;
	int newest = -1;

	for (int fd = 3; fd < 256; fd++) {
		socklen_t size = sizeof peer;

		memset(&peer, 0, sizeof peer);
		if (!getpeername(fd, (struct sockaddr *)&peer, &size) &&
		    peer.sun_family == AF_UNIX && strstr(peer.sun_path, ".s.PGSQL"))
			newest = fd;
	}
	return newest;
}

#define OF_STORE " FROM pg_stat_activity WHERE application_name = 'rlmd'"

/* A back end that had stopped with an operation in its socket does not carry it out behind the
 * operations of the next connection. */
void test_a_late_back_end(void **state)
{
	PGconn *conn = PQconnectdb(server_address());
	struct store *store = open_store(server_address(), 0);
	struct told late = {0}, newer = {0};
	int cut = newest_connection(), pid;
	int64_t account, lease;
	char lives[160];

	(void)state;
	FINE();
	DO(account, 1, text_of("late"), 1000, 1000);
	account = told.account.id;
	DO(lease_take, account, text_of("n"), 500, 500, LONG_MS);
	lease = told.lease.id;
	assert_int_not_equal(cut, PQsocket(conn));
	pid = ask_number(conn, "SELECT pid" OF_STORE " ORDER BY backend_start DESC LIMIT 1");
	snprintf(lives, sizeof lives, "SELECT count(*)" OF_STORE " AND pid = %d", pid);
	assert_return_code(kill(pid, SIGSTOP), errno);
	store_lease_hold(store, lease, 500, 500, 5, 5, LONG_MS, on_told, &late);
	for (int i = 0; i < 3; i++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	shutdown(cut, SHUT_RDWR);
	store_lease_hold(store, lease, 500, 500, 90, 90, LONG_MS, on_told, &newer);
	while (!newer.times &&
	       !ask_number(conn, "SELECT count(*)" OF_STORE " AND wait_event = 'advisory'"))
		event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_return_code(kill(pid, SIGCONT), errno);
	await(loop, &newer);
	assert_string_equal(newer.error, "");
	while (ask_number(conn, lives))
		event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(
		ask_number(conn, "SELECT open_cost FROM rlmd.lease ORDER BY id DESC LIMIT 1"), 90);
	assert_int_equal(late.times, 1);
	PQfinish(conn);
	store_free(store);
	event_base_free(loop);
	loop = NULL;
}

void test_no_server(void **state)
{
	(void)state;
	expect_fault("postgresql://rlmd@/postgres?host=/nowhere/at/all", STORE_AWAY);
	expect_fault("postgresql://rlmd@/postgres?unheard=of", STORE_USAGE);
	event_base_free(loop);
	loop = NULL;
}

void test_strange_servers(void **state)
{
	char place[256];
	const char *host = strchr(server_address(), '?');

	(void)state;
	snprintf(place, sizeof place, "postgresql://nobody@/postgres%s", host);
	expect_fault(place, STORE_USAGE);
	snprintf(place, sizeof place, "postgresql://rlmd@/nothing%s", host);
	expect_fault(place, STORE_USAGE);

	store_free(open_store(server_address(), 0));
	FINE();
	server_ask("CREATE ROLE stranger LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
	snprintf(place, sizeof place, "postgres://stranger@/postgres%s", host);
	expect_fault(place, STORE_FOREIGN);
	server_ask("DROP SCHEMA rlmd CASCADE");
	expect_fault(place, STORE_USAGE);
	server_ask("DROP ROLE stranger");

	store_free(open_store(server_address(), 0));
	FINE();
	server_ask("INSERT INTO rlmd.version VALUES (99)");
	expect_fault(server_address(), STORE_NEWER);
	event_base_free(loop);
	loop = NULL;
}

/* Each finds the schema that one of them made. */
void test_many_open_at_once(void **state)
{
	enum { MANY = 5 };
	struct store_options options[MANY] = {0};
	struct told tolds[MANY] = {0};
	struct store *stores[MANY];

	(void)state;
	loop = loop_new();
	for (int i = 0; i < MANY; i++) {
		options[i].owner = &tolds[i];
		stores[i] = store_open(loop, server_address(), &options[i], on_told, NULL);
	}
	for (int i = 0; i < MANY; i++) {
		await(loop, &tolds[i]);
		assert_string_equal(tolds[i].error, "");
		store_free(stores[i]);
	}
	event_base_free(loop);
	loop = NULL;
}

static void run(PGconn *connection, const char *sql)
{
	PGresult *result = PQexec(connection, sql);

	assert_int_not_equal(PQresultStatus(result), PGRES_FATAL_ERROR);
	PQclear(result);
}

/* The server tells of it when it has answered what it is busy with: both come at once. */
void test_others_write_during_a_query(void **state)
{
	struct store *store = open_store(server_address(), LONG_MS);
	PGconn *holder = PQconnectdb(server_address()), *writer = PQconnectdb(server_address());
	bool waits = false;

	(void)state;
	FINE();
	run(holder, "BEGIN; LOCK TABLE rlmd.account IN ACCESS EXCLUSIVE MODE");
	told = (struct told){0};
	heard[STORE_CHANGED] = 0;
	store_account(store, 1, text_of("t"), 1000, 1000, on_told, &told);
	while (!waits) {
		PGresult *locks = PQexec(writer, "SELECT 1 FROM pg_locks WHERE NOT granted");

		waits = PQntuples(locks);
		PQclear(locks);
		event_base_loop(loop, EVLOOP_NONBLOCK);
	}
	run(writer, "NOTIFY rlmd");
	run(holder, "ROLLBACK");
	await(loop, &told);
	FINE();
	for (int i = 0; i < 3; i++)
		event_base_loop(loop, EVLOOP_NONBLOCK);
	assert_int_equal(heard[STORE_CHANGED], 1);
	PQfinish(holder);
	PQfinish(writer);
	store_free(store);
	event_base_free(loop);
	loop = NULL;
}

void test_locked_out(void **state)
{
	struct store *store = open_store(server_address(), 50);
	PGconn *holder = PQconnectdb(server_address());

	(void)state;
	FINE();
	run(holder, "BEGIN; LOCK TABLE rlmd.breaker IN ACCESS EXCLUSIVE MODE");
	DO(breakers, 1);
	assert_int_equal(told.fault, STORE_LOCKED);
	assert_non_null(strstr(told.error, "try again later"));
	run(holder, "ROLLBACK");
	DO(breakers, 1);
	FINE();
	store_free(store);

	/* With patience without an end it is told, and waited for: at work, and at a start. */
	store = open_store(server_address(), 0);
	FINE();
	for (int i = 0; i < 2; i++) {
		run(holder,
		    "BEGIN; LOCK TABLE rlmd.breaker, rlmd.version IN ACCESS EXCLUSIVE MODE");
		told = (struct told){0};
		heard[STORE_HELD] = heard[STORE_FREED] = 0;
		if (i)
			store = store_open(loop, server_address(),
					   &(struct store_options){.news = on_news, .owner = &told},
					   on_told, NULL);
		else
			store_breakers(store, 1, on_told, &told);
		while (!heard[STORE_HELD])
			event_base_loop(loop, EVLOOP_ONCE);
		FINE();
		assert_int_equal(told.times, 0);
		run(holder, "ROLLBACK");
		await(loop, &told);
		FINE();
		while (!heard[STORE_FREED])
			event_base_loop(loop, EVLOOP_ONCE);
		store_free(store);
	}
	PQfinish(holder);
	event_base_free(loop);
	loop = NULL;
}

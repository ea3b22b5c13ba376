#include "test_postgres.h"

#include <event2/event.h>
#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "asking.h"
#include "base/loop.h"
#include "base/text.h"
#include "server.h"
#include "store/postgres.h"

enum { LONG_MS = 60 * 60 * 1000 };

static struct event_base *loop;
static struct told told;
static int heard[STORE_CAME_BACK + 1];

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

/* What was asked for while it was away, or was not answered, is done when it is back, in order. */
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
		store_money_take(store, account.id, text_of("n"), 10, 1, LONG_MS, on_told,
				 &tolds[i]);
	event_base_loop(loop, EVLOOP_ONCE);
	server_kill();
	while (!heard[STORE_WENT_AWAY])
		event_base_loop(loop, EVLOOP_ONCE);
	for (int i = 20; i < 40; i++)
		store_money_take(store, account.id, text_of("n"), 10, 1, LONG_MS, on_told,
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
	DO(money_settle, lease, 10, 1);
	FINE();
	DO(account, 1, text_of("t"), 1000, 1000);
	assert_int_equal(told.account.spent_cost, 10);
	/* What was granted and not heard of is held, too: nothing is overspent. */
	assert_true(told.account.held_cost >= 390);
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

	server_ask("CREATE ROLE stranger LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
	snprintf(place, sizeof place, "postgres://stranger@/postgres%s", host);
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

void test_locked_out(void **state)
{
	struct store *store = open_store(server_address(), 50);
	PGconn *holder = PQconnectdb(server_address());

	(void)state;
	FINE();
	PQclear(PQexec(holder, "BEGIN; LOCK TABLE rlmd.breaker IN ACCESS EXCLUSIVE MODE"));
	DO(breakers, 1);
	assert_int_equal(told.fault, STORE_LOCKED);
	assert_non_null(strstr(told.error, "try again later"));
	PQclear(PQexec(holder, "ROLLBACK"));
	DO(breakers, 1);
	FINE();
	PQfinish(holder);
	store_free(store);
	event_base_free(loop);
	loop = NULL;
}

/* Several machines that spend the money of the same tenants, and die with it: a store, real;
 * purses; and in the place of the engine calls that cost what chance says. */
#include "batch/purse.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/text.h"
#include "batch/tenants.h"
#include "budget/account.h"
#include "store/asking.h"
#include "store/server.h"
#include "store/where.h"

enum { MACHINES = 3, TENANTS = 2, CALLS = 6, JOB_LEASE_MS = 60, STEPS = 1000, LONG_MS = 3600000 };

/* What may be spent: pico-dollars of ada and of all, tokens of bob. */
enum { ADA = 1000, ALL = 1800, BOB = 1200 };
static const char *const names[TENANTS] = {"ada", "bob"};

static struct event_base *loop;
static struct told told;
static struct tenants tenants;
static char place[256];
static int64_t batch, calls; /* calls: so far */

/* What the provider bills, whoever is alive to hear of it. */
static struct rlmd_amount billed[TENANTS];

struct machine {
	struct store *store;
	struct purse *purse;
	struct store_claim claim;
	bool closed;
	struct call {
		struct machine *machine;
		struct purse_tenant *tenant;
		struct rlmd_account *account; /* NULL: there is none */
		struct rlmd_amount most, bill;
		struct purse_bill paid;
		bool ends; /* the store is being told */
	} calls[CALLS];
} machines[MACHINES];

static void check(void)
{
	assert_true(billed[0].cost <= ADA);
	assert_true(billed[1].tokens <= BOB);
	assert_true(billed[0].cost + billed[1].cost <= ALL);
}

/* --- a machine ------------------------------------------------------------------------- */

static void on_changed(void *owner, const char *tenant)
{
	(void)owner;
	(void)tenant;
}

static void on_failed(void *owner, const struct store_result *result)
{
	(void)owner;
	fail_msg("%s", result->error.text);
}

static void on_closed(void *owner)
{
	struct machine *machine = owner;

	machine->closed = true;
}

static struct store *open_store(void)
{
	struct store_options options = {.look_ms = -1, .owner = &told};
	struct store *store;

	told = (struct told){0};
	store = store_open(loop, place, &options, on_told, NULL);
	await(loop, &told);
	assert_string_equal(told.error, "");
	return store;
}

static void begin(struct machine *machine)
{
	struct purse_options options = {
		.base = loop,
		.batch = batch,
		.node = "node",
		.job_lease_ms = JOB_LEASE_MS,
		.limit = {ALL, RLMD_UNLIMITED},
		.tenants = &tenants,
		.changed = on_changed,
		.failed = on_failed,
		.closed = on_closed,
		.owner = machine,
	};

	memset(machine, 0, sizeof *machine);
	options.store = machine->store = open_store();
	ASK(loop, &told, store_claim, machine->store, batch, NULL, text_of("node"), 1, LONG_MS);
	assert_int_equal(told.count, 1);
	machine->claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	machine->purse = purse_new(&options);
}

/* It is killed: nobody hears any more what was on its way, and nothing is given back. */
static void kill_it(struct machine *machine)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct call *call = &machine->calls[i];

		if (!call->account)
			continue;
		account_release(call->account, call->most);
		account_end_call(call->account, call->most);
	}
	purse_free(machine->purse);
	store_free(machine->store);
}

/* --- a call -------------------------------------------------------------------------------- */

static void end_call(struct call *call, struct rlmd_amount actual)
{
	struct rlmd_account *account = call->account;

	call->account = NULL;
	account_settle(account, call->most, actual);
	account_end_call(account, call->most);
	purse_leave(call->tenant, true);
}

static void on_kept(void *owner, const struct store_result *result)
{
	struct call *call = owner;

	assert_int_equal(result->fault, STORE_FINE);
	purse_paid(call->tenant, &call->paid, true);
	end_call(call, call->bill);
}

/* As the engine does it: reserved, covered, sent; and billed as soon as it was sent. */
static void send_call(struct machine *machine, struct call *call)
{
	int who = rand() % TENANTS;
	struct purse_tenant *tenant = purse_get(machine->purse, names[who]);
	struct rlmd_amount most = {1 + rand() % 150, 1 + rand() % 150};
	const struct rlmd_account *short_of;
	struct rlmd_account *account;
	struct purse_lack lack = {0};
	bool ready = purse_look(tenant, &lack) == PURSE_READY;

	free(lack.why);
	if (!ready)
		return;
	account = purse_use(tenant);
	if (account_lacks(account, most, &short_of) || account_uncovered(account, most)) {
		purse_leave(tenant, false);
		return;
	}
	account_hold(account, most);
	account_begin_call(account, most);
	*call = (struct call){
		.machine = machine, .tenant = tenant, .account = account, .most = most};
	call->bill = (struct rlmd_amount){rand() % (most.cost + 1), rand() % (most.tokens + 1)};
	billed[who].cost += call->bill.cost;
	billed[who].tokens += call->bill.tokens;
	check();
}

/* Its answer comes and is kept; or it is cut, and nothing is kept of it. */
static void answer(struct machine *machine, struct call *call)
{
	struct store_exchange exchange = {
		.key = text_of("c"),
		.number = calls++,
		.bytes = text_of("b"),
		.cost = call->bill.cost,
		.tokens = call->bill.tokens,
	};
	int64_t leases[PURSE_FUNDS];
	size_t count = 0;

	if (rand() % 8 == 0) {
		end_call(call, call->most);
		return;
	}
	call->ends = true;
	call->paid = purse_pay(call->tenant, call->bill);
	for (size_t i = 0; i < PURSE_FUNDS; i++)
		if (call->paid.leases[i])
			leases[count++] = call->paid.leases[i];
	store_journal_add(machine->store, &machine->claim, &exchange, leases, count, on_kept, call);
}

/* --- the tests -------------------------------------------------------------------------- */

static void load(void)
{
	enum { JOBS = 60 };
	static struct store_line lines[JOBS];
	static char ids[JOBS][24];
	struct store *store = open_store();
	struct store_load token;

	for (size_t i = 0; i < JOBS; i++) {
		snprintf(ids[i], sizeof ids[i], "j%zu", i);
		lines[i] = (struct store_line){(int64_t)i + 1, text_of(ids[i]), text_of("t"),
					       text_of("digest"), text_of("line")};
	}
	ASK(loop, &told, store_load_begin, store, text_of("batch"), false);
	token = told.load;
	batch = token.batch;
	ASK(loop, &told, store_load_add, store, &token, lines, JOBS);
	ASK(loop, &told, store_load_end, store, &token, text_of("file"));
	assert_string_equal(told.error, "");
	store_free(store);
}

static void setting(const char *tenant, const char *name, const char *value)
{
	assert_true(tenants_set(&tenants, tenant, name, value, NULL));
}

static void begin_all(void)
{
	snprintf(place, sizeof place, "%s", where_fresh());
	memset(billed, 0, sizeof billed);
	load();
	for (size_t i = 0; i < MACHINES; i++)
		begin(&machines[i]);
}

static void step(void)
{
	struct machine *machine = &machines[rand() % MACHINES];
	struct call *call = &machine->calls[rand() % CALLS];
	int what = rand() % 100;

	if (what == 0) {
		kill_it(machine);
		begin(machine);
	} else if (what < 60 && !call->account) {
		send_call(machine, call);
	} else if (call->account && !call->ends) {
		answer(machine, call);
	}
	event_base_loop(loop, what % 3 ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
}

static void close_all(void)
{
	for (size_t i = 0; i < MACHINES; i++) {
		for (size_t j = 0; j < CALLS; j++)
			if (machines[i].calls[j].account && !machines[i].calls[j].ends)
				answer(&machines[i], &machines[i].calls[j]);
		for (size_t j = 0; j < CALLS; j++)
			while (machines[i].calls[j].account)
				event_base_loop(loop, EVLOOP_ONCE);
		purse_close(machines[i].purse);
		while (!machines[i].closed)
			event_base_loop(loop, EVLOOP_ONCE);
		kill_it(&machines[i]);
	}
}

/* All leases are over: what is not spent is free, and what is spent was billed, or might have been.
 */
static void check_account(struct store *store, const char *tenant, struct rlmd_amount limit,
			  struct rlmd_amount bill)
{
	struct rlmd_amount left;
	int64_t account, lease;

	ASK(loop, &told, store_account, store, batch, text_of(tenant), -1, -1);
	account = told.account.id;
	assert_true(told.account.limit_cost == limit.cost);
	assert_true(told.account.limit_tokens == limit.tokens);
	ASK(loop, &told, store_money_take, store, account, text_of("last"), 0, 0, LONG_MS);
	lease = told.lease.id;
	do {
		ASK(loop, &told, store_money_hold, store, lease, 0, 0, 0, 0, LONG_MS);
	} while (told.lease.others_ms != INT64_MAX);
	left = (struct rlmd_amount){told.lease.free_cost, told.lease.free_tokens};
	ASK(loop, &told, store_account, store, batch, text_of(tenant), -1, -1);
	assert_int_equal(told.account.held_cost, 0);
	assert_true(told.account.spent_cost >= bill.cost);
	assert_true(told.account.spent_tokens >= bill.tokens);
	if (limit.cost != RLMD_UNLIMITED && told.account.spent_cost <= limit.cost)
		assert_int_equal(left.cost, limit.cost - told.account.spent_cost);
	if (limit.tokens != RLMD_UNLIMITED && told.account.spent_tokens <= limit.tokens)
		assert_int_equal(left.tokens, limit.tokens - told.account.spent_tokens);
}

static void test_machines_die_with_money(void **state)
{
	struct store *store;

	(void)state;
	for (unsigned seed = 1; seed < 3; seed++) {
		srand(seed);
		begin_all();
		for (int i = 0; i < STEPS; i++)
			step();
		close_all();
		store = open_store();
		check_account(store, "ada", (struct rlmd_amount){ADA, RLMD_UNLIMITED},
			      (struct rlmd_amount){billed[0].cost, 0});
		check_account(store, "bob", (struct rlmd_amount){RLMD_UNLIMITED, BOB},
			      (struct rlmd_amount){0, billed[1].tokens});
		check_account(store, "*", (struct rlmd_amount){ALL, RLMD_UNLIMITED},
			      (struct rlmd_amount){billed[0].cost + billed[1].cost, 0});
		store_free(store);
		assert_true(billed[0].cost + billed[1].cost > ALL / 20);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_machines_die_with_money)};
	bool postgres = argc > 1 && !strcmp(argv[1], "postgres");
	const char *missing = postgres ? server_missing() : NULL;
	int failed;

	if (missing) {
		printf("1..0 # SKIP %s\n", missing);
		return 0;
	}
	loop = loop_new();
	setting("ada", "max-cost", "0.000000001");
	setting("bob", "max-tokens", "1200");
	where_begin(postgres);
	failed = cmocka_run_group_tests_name(postgres ? "purse_postgres" : "purse", tests, NULL,
					     NULL);
	where_end();
	tenants_done(&tenants);
	event_base_free(loop);
	return failed;
}

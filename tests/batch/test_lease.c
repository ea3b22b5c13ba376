/*
 * Several machines that spend the money of the same tenants, are cut off from the store, are held
 * up, and die: a store, real; leases; and in the place of the engine calls that cost what chance
 * says. The clock is the test's, and so is the way to the store and back (far_store.h): a seed is
 * a history, the same on every machine.
 *
 * RLMD_TEST_HISTORIES=N tries so many of them.
 */
#include "batch/lease.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rlmd/job.h>

#include "base/loop.h"
#include "base/text.h"
#include "batch/accounts.h"
#include "batch/tenants.h"
#include "budget/account.h"
#include "far_store.h"
#include "store/asking.h"
#include "store/server.h"
#include "store/where.h"

enum {
	MACHINES = 3,
	TENANTS = 2,
	CALLS = 6,
	STEPS = 3000,
	HISTORIES = 40,
	HISTORIES_IN_SERVER = 3
};
enum { JOB_LEASE_MS = 60, TICK_MS = JOB_LEASE_MS / 3, LONG_MS = 3600000 };

enum { DAY_MS = 86400000 };

/* The limits: pico-dollars of ada and of all, tokens of bob; a day, pico-dollars of cyd;
 * nothing of dan; and of eve pico-dollars a day, and more of the batch. Only ada and bob are in
 * histories. */
enum { ADA = 3000, ALL = 5400, BOB = 3600, CYD = 1000, EVE = 500 };
enum { THE_ADA, THE_BOB, THE_CYD, THE_DAN, THE_EVE, NAMES };
static const char *const names[NAMES] = {"ada", "bob", "cyd", "dan", "eve"};
static const struct rlmd_limits *bound; /* of a job; NULL: nothing is known of it */

static struct event_base *loop; /* of whoever is no machine */
static struct told told;
static struct tenants tenants;
static char place[256];
static int64_t batch, calls; /* calls: so far */
static bool in_server;

/* The provider's bills, whoever is alive to hear of it. */
static struct rlmd_amount billed[NAMES];

struct machine {
	struct event_base *loop; /* its own: one that is held up does nothing */
	struct store *store;
	struct far *far;
	struct accounts *accounts;
	struct store_claim claim;
	int64_t cut_until, held_until, ticked; /* on the clock */
	bool closed;
	struct call {
		struct machine *machine;
		struct lease *tenant;
		struct rlmd_account *account; /* NULL: there is none */
		struct reservation reservation;
		struct rlmd_amount most, bill;
		struct lease_bill paid;
		bool ends; /* the store is being told */
	} calls[CALLS];
} machines[MACHINES];

static unsigned seed;

static void check(void)
{
	if (billed[0].cost > ADA || billed[1].tokens > BOB || billed[0].cost + billed[1].cost > ALL)
		fail_msg("history %u: ada %d of %d, bob %d of %d, all %d of %d", seed,
			 (int)billed[0].cost, ADA, (int)billed[1].tokens, BOB,
			 (int)(billed[0].cost + billed[1].cost), ALL);
}

/* Asks a store to which nothing else is on the way, and waits. */
#define ASK_FAR(far, operation, ...)                                                               \
	do {                                                                                       \
		told = (struct told){0};                                                           \
		operation(__VA_ARGS__, on_told, &told);                                            \
		await_far(far);                                                                    \
	} while (0)

static void await_far(struct far *far)
{
	while (!told.times)
		assert_true((int)far_carry(far) | (int)far_deliver(far));
	assert_string_equal(told.error, "");
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

static struct store *open_store(struct far **ret_far)
{
	struct store_options options = {.look_ms = -1, .owner = &told};
	struct store *store;

	told = (struct told){0};
	store = store_open(loop, place, &options, on_told, NULL);
	*ret_far = far_last();
	await_far(*ret_far);
	return store;
}

static void begin(struct machine *machine)
{
	struct accounts_options options = {
		.batch = batch,
		.node = "node",
		.job_lease_ms = JOB_LEASE_MS,
		.job = bound,
		.limit = {ALL, RLMD_UNLIMITED},
		.tenants = &tenants,
		.changed = on_changed,
		.failed = on_failed,
		.closed = on_closed,
		.owner = machine,
	};

	memset(machine, 0, sizeof *machine);
	options.base = machine->loop = loop_new();
	options.store = machine->store = open_store(&machine->far);
	ASK_FAR(machine->far, store_claim, machine->store, batch, NULL, text_of("node"), 1,
		LONG_MS);
	assert_int_equal(told.count, 1);
	machine->claim = (struct store_claim){told.jobs[0].id, told.jobs[0].token};
	machine->accounts = accounts_new(&options);
}

/* It is killed: nobody hears any more what was on its way, and nothing is given back. */
static void kill_it(struct machine *machine)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct call *call = &machine->calls[i];

		if (!call->account)
			continue;
		account_drop(&call->reservation);
	}
	accounts_free(machine->accounts);
	store_free(machine->store);
	event_base_free(machine->loop);
}

/* --- a call -------------------------------------------------------------------------------- */

static void end_call(struct call *call, struct rlmd_amount actual)
{
	call->account = NULL;
	account_settle(&call->reservation, actual);
	lease_leave(call->tenant, &(struct lease_job){.succeeded = true});
}

static void on_kept(void *owner, const struct store_result *result)
{
	struct call *call = owner;

	assert_int_equal(result->fault, STORE_FINE);
	lease_paid(call->tenant, &call->paid, result->lost);
	end_call(call, call->bill);
}

/* How often it was news that a tenant has no more. */
static int ends_told;

static enum lease_state look(struct machine *machine, int who)
{
	struct lease_lack lack = {0};
	enum lease_state state = lease_look(accounts_of(machine->accounts, names[who]), &lack);

	ends_told += lack.why && !lack.reported;
	free(lack.why);
	return state;
}

/* As the engine does it: reserved, covered, sent; and billed as soon as it was sent. */
static bool send_call(struct machine *machine, struct call *call, int who, struct rlmd_amount most,
		      struct rlmd_amount bill)
{
	struct lease *tenant = accounts_of(machine->accounts, names[who]);
	const struct rlmd_account *short_of;
	struct rlmd_account *account;

	if (look(machine, who) != LEASE_READY)
		return false;
	account = lease_account(tenant);
	lease_use(tenant);
	if (account_lacks(account, most, &short_of) || account_uncovered(account, most)) {
		lease_leave(tenant, &(struct lease_job){0});
		return false;
	}
	*call = (struct call){.machine = machine,
			      .tenant = tenant,
			      .account = account,
			      .most = most,
			      .bill = bill};
	account_reserve(account, &call->reservation, most);
	account_send(&call->reservation);
	billed[who].cost += bill.cost;
	billed[who].tokens += bill.tokens;
	check();
	return true;
}

static void send_any(struct machine *machine, struct call *call)
{
	int who = rand() % TENANTS;
	struct rlmd_amount most = {1 + rand() % 150, 1 + rand() % 150};
	struct rlmd_amount bill = most; /* mostly: less would hide what is sent beyond a limit */

	if (rand() % 4 == 0)
		bill = (struct rlmd_amount){rand() % (most.cost + 1), rand() % (most.tokens + 1)};
	send_call(machine, call, who, most, bill);
}

/* Its answer comes and is kept; or it is cut, and nothing is kept of it. */
static void answer(struct machine *machine, struct call *call, bool cut)
{
	struct store_exchange exchange = {
		.key = text_of("c"),
		.number = calls++,
		.bytes = text_of("b"),
		.cost = call->bill.cost,
		.tokens = call->bill.tokens,
	};

	if (cut) {
		end_call(call, call->most);
		return;
	}
	call->ends = true;
	call->paid = lease_pay(call->tenant, call->bill);
	store_journal_add(machine->store, &machine->claim, &exchange, call->paid.leases,
			  call->paid.count, on_kept, call);
}

/* --- the tests -------------------------------------------------------------------------- */

static void load(void)
{
	enum { JOBS = 60 };
	static struct store_line lines[JOBS];
	static char ids[JOBS][24];
	struct far *far;
	struct store *store = open_store(&far);
	struct store_load token;

	for (size_t i = 0; i < JOBS; i++) {
		snprintf(ids[i], sizeof ids[i], "j%zu", i);
		lines[i] = (struct store_line){(int64_t)i + 1, text_of(ids[i]), text_of("t"),
					       text_of("digest"), text_of("line")};
	}
	if (in_server)
		far_take_clock();
	ASK_FAR(far, store_load_begin, store, text_of("batch"), false);
	token = told.load;
	batch = token.batch;
	ASK_FAR(far, store_load_add, store, &token, lines, JOBS);
	ASK_FAR(far, store_load_end, store, &token, text_of("file"));
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

static int note(const struct event_base *base, const struct event *event, void *arg)
{
	struct event **ret = arg;

	(void)base;
	if (event_get_events(event) & EV_PERSIST)
		*ret = (struct event *)event;
	return 0;
}

/* The timer of the accounts, their only event that comes again. */
static void tick(struct machine *machine)
{
	struct event *timer = NULL;

	event_base_foreach_event(machine->loop, note, &timer);
	if (timer)
		event_active(timer, EV_TIMEOUT, 1);
	machine->ticked = far_clock_ms;
}

/* Whatever is due of a machine that is not held up; its way to the store may be cut. */
static void go_on(struct machine *machine)
{
	bool cut = far_clock_ms < machine->cut_until, held = far_clock_ms < machine->held_until;

	if (!held && far_clock_ms - machine->ticked >= TICK_MS)
		tick(machine);
	if (!cut && rand() % 2)
		far_carry(machine->far);
	if (!cut && !held && rand() % 2)
		far_deliver(machine->far);
	for (int i = 0; !held && i < 4; i++)
		event_base_loop(machine->loop, EVLOOP_NONBLOCK);
}

/* Now and then something goes wrong, for longer than a lease lasts, or shorter. */
static void disturb(struct machine *machine, int what)
{
	int64_t until = far_clock_ms + rand() % (5 * JOB_LEASE_MS);

	if (what == 0) {
		kill_it(machine);
		begin(machine);
	} else if (what < 4) {
		machine->cut_until = until;
	} else if (what < 6) {
		machine->held_until = until;
	} else {
		far_lose(machine->far);
	}
}

static void step(void)
{
	struct machine *machine = &machines[rand() % MACHINES];
	struct call *call = &machine->calls[rand() % CALLS];
	bool held = far_clock_ms < machine->held_until;
	int what = rand() % 1000;

	far_clock_ms += rand() % 3;
	if (what < 10)
		disturb(machine, what);
	else if (!held && what < 600 && !call->account)
		send_any(machine, call);
	else if (!held && call->account && !call->ends)
		answer(machine, call, rand() % 8 == 0);
	for (size_t i = 0; i < MACHINES; i++)
		go_on(&machines[i]);
}

static bool is_at_work(const struct machine *machine)
{
	for (size_t i = 0; i < CALLS; i++)
		if (machine->calls[i].account)
			return true;
	return false;
}

static void pass(struct machine *machine)
{
	far_clock_ms++;
	go_on(machine);
}

static void close_all(void)
{
	for (size_t i = 0; i < MACHINES; i++) {
		struct machine *machine = &machines[i];

		machine->cut_until = machine->held_until = 0;
		for (size_t j = 0; j < CALLS; j++)
			if (machine->calls[j].account && !machine->calls[j].ends)
				answer(machine, &machine->calls[j], false);
		while (is_at_work(machine))
			pass(machine);
		accounts_close(machine->accounts);
		while (!machine->closed)
			pass(machine);
		kill_it(machine);
	}
}

/* All leases are over: what is not spent is free, and what is spent was billed, or might have been.
 */
static void check_account(struct store *store, struct far *far, const char *tenant,
			  struct rlmd_amount limit, struct rlmd_amount bill)
{
	struct rlmd_amount left;
	int64_t account, lease;

	ASK_FAR(far, store_account, store, batch, text_of(tenant), -1, -1);
	account = told.account.id;
	assert_true(told.account.limit_cost == limit.cost);
	assert_true(told.account.limit_tokens == limit.tokens);
	ASK_FAR(far, store_lease_take, store, account, text_of("last"), 0, 0, LONG_MS);
	lease = told.lease.id;
	do {
		far_clock_ms += JOB_LEASE_MS;
		ASK_FAR(far, store_lease_hold, store, lease, 0, 0, 0, 0, LONG_MS);
	} while (told.lease.others_ms != INT64_MAX);
	left = (struct rlmd_amount){told.lease.free_cost, told.lease.free_tokens};
	ASK_FAR(far, store_account, store, batch, text_of(tenant), -1, -1);
	assert_int_equal(told.account.held_cost, 0);
	assert_true(told.account.spent_cost >= bill.cost);
	assert_true(told.account.spent_tokens >= bill.tokens);
	if (limit.cost != RLMD_UNLIMITED && told.account.spent_cost <= limit.cost)
		assert_int_equal(left.cost, limit.cost - told.account.spent_cost);
	if (limit.tokens != RLMD_UNLIMITED && told.account.spent_tokens <= limit.tokens)
		assert_int_equal(left.tokens, limit.tokens - told.account.spent_tokens);
}

static void play(void)
{
	struct store *store;
	struct far *far;

	srand(seed);
	begin_all();
	for (int i = 0; i < STEPS; i++)
		step();
	close_all();
	store = open_store(&far);
	check_account(store, far, "ada", (struct rlmd_amount){ADA, RLMD_UNLIMITED},
		      (struct rlmd_amount){billed[0].cost, 0});
	check_account(store, far, "bob", (struct rlmd_amount){RLMD_UNLIMITED, BOB},
		      (struct rlmd_amount){0, billed[1].tokens});
	check_account(store, far, "*", (struct rlmd_amount){ALL, RLMD_UNLIMITED},
		      (struct rlmd_amount){billed[0].cost + billed[1].cost, 0});
	store_free(store);
	assert_true(billed[0].cost + billed[1].cost > ALL / 20);
}

static void test_no_history_spends_more(void **state)
{
	const char *histories = getenv("RLMD_TEST_HISTORIES");
	unsigned count = histories   ? (unsigned)atoi(histories)
			 : in_server ? HISTORIES_IN_SERVER
				     : HISTORIES;

	(void)state;
	for (seed = 1; seed <= count; seed++)
		play();
}

/* --- one by one ------------------------------------------------------------------------ */

static void end_all(void)
{
	for (size_t i = 0; i < MACHINES; i++)
		kill_it(&machines[i]);
}

/* Calls of a tenant's, one after the other, until no more is to be had. */
static void spend_all(struct machine *machine, int who)
{
	struct call *call = &machine->calls[0];
	const struct rlmd_amount little = {20, 0};

	for (int tries = 0; tries < 100; tries++) {
		if (!call->account && send_call(machine, call, who, little, little)) {
			answer(machine, call, false);
			tries = 0;
		}
		pass(machine);
	}
	assert_null(call->account);
}

/* The bill of a lease that is over was a part of what the store has counted since: it lets nothing
 * be sent. */
static void test_a_bill_that_comes_late(void **state)
{
	struct machine *far = &machines[0];
	const struct rlmd_amount much = {400, 0};

	(void)state;
	seed = 0;
	srand(1);
	begin_all();
	while (!send_call(far, &far->calls[0], 0, much, much))
		pass(far);
	for (int i = 0; i < 4 * JOB_LEASE_MS; i++)
		pass(far);
	while (far_carry(far->far) || far_deliver(far->far))
		continue;
	answer(far, &far->calls[0], false);
	far_clock_ms += 4 * JOB_LEASE_MS;
	spend_all(&machines[1], THE_ADA);
	assert_true(billed[0].cost > ADA - much.cost);
	assert_true(far_carry(far->far));
	assert_true(far_deliver(far->far));
	assert_null(far->calls[0].account);
	send_call(far, &far->calls[1], 0, much, much);
	end_all();
}

static int end_timer(const struct event_base *base, const struct event *event, void *arg)
{
	(void)base;
	(void)arg;
	if (!(event_get_events(event) & EV_PERSIST) && event_pending(event, EV_TIMEOUT, NULL))
		event_active((struct event *)event, EV_TIMEOUT, 1);
	return 0;
}

/* The timers that end once, not the one that comes again. */
static void end_timers(struct machine *machine)
{
	event_base_foreach_event(machine->loop, end_timer, NULL);
	event_base_loop(machine->loop, EVLOOP_NONBLOCK);
}

/* A day's money is there again at midnight (UTC), at once, and calls are the new day's. */
static void test_midnight(void **state)
{
	struct machine *machine = &machines[0];
	const struct rlmd_amount much = {400, 0};
	int64_t midnight;

	(void)state;
	seed = 0;
	srand(1);
	midnight = far_clock_ms + DAY_MS - far_clock_ms % DAY_MS;
	far_clock_ms = midnight - 60 * JOB_LEASE_MS;
	ends_told = 0;
	begin_all();
	spend_all(machine, THE_CYD);
	assert_in_range(billed[THE_CYD].cost, CYD - 20, CYD);
	while (far_clock_ms < midnight - 1)
		pass(machine);
	assert_int_equal(look(machine, THE_CYD), LEASE_EMPTY);
	assert_int_equal(ends_told, 1);
	far_clock_ms = midnight +
		       JOB_LEASE_MS; /* it is told of the end as late as the store answers */
	end_timers(machine);
	assert_int_equal(look(machine, THE_CYD), LEASE_WAITS);
	while (!send_call(machine, &machine->calls[1], THE_CYD, much, much))
		pass(machine);
	answer(machine, &machine->calls[1], false);
	spend_all(machine, THE_CYD);
	assert_in_range(billed[THE_CYD].cost, 2 * CYD - 40, 2 * CYD);
	assert_int_equal(look(machine, THE_CYD), LEASE_EMPTY);
	assert_int_equal(ends_told, 2);
	end_all();
}

/* Begun as a test of one machine, and one that may begin a job of ada's. */
static struct lease *begin_for_ada(struct machine *machine)
{
	seed = 0;
	srand(1);
	begin_all();
	while (look(machine, THE_ADA) != LEASE_READY)
		pass(machine);
	return accounts_of(machine->accounts, "ada");
}

static void note_short(struct lease *tenant)
{
	lease_note_short(tenant, "tenant 'ada'", RLMD_STOP_MAX_COST);
}

static void leave(struct lease *tenant, bool succeeded)
{
	lease_leave(tenant, &(struct lease_job){.succeeded = succeeded});
}

/* A job that could not go on beside another one goes on with fewer at once, and does not end the
 * tenant. */
static void test_fewer_at_once(void **state)
{
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);

	(void)state;
	lease_use(ada);
	assert_int_equal(look(machine, THE_ADA), LEASE_READY);
	lease_use(ada);
	for (int i = 0; i < 3; i++)
		note_short(ada);
	leave(ada, false);
	assert_int_equal(look(machine, THE_ADA), LEASE_EMPTY); /* the other one is at work */
	leave(ada, false);
	assert_int_equal(look(machine, THE_ADA), LEASE_READY);
	end_all();
}

/* Two jobs in turn that could not go on alone end the tenant; one that succeeds between them is a
 * reason to go on. */
static void test_too_little_for_a_job(void **state)
{
	static const bool succeeds[] = {false, true, false, false};
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);

	(void)state;
	for (size_t i = 0; i < sizeof succeeds; i++) {
		assert_int_equal(look(machine, THE_ADA), LEASE_READY);
		lease_use(ada);
		if (!succeeds[i])
			note_short(ada);
		leave(ada, succeeds[i]);
	}
	assert_int_equal(look(machine, THE_ADA), LEASE_EMPTY);
	end_all();
}

/* The lease is open for little more than this: what is kept under another lease opens nothing. */
static void test_what_is_kept_of_another_lease(void **state)
{
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);
	const struct rlmd_amount little = {20, 0};
	const bool lost[LEASE_ACCOUNTS] = {false};
	struct lease_bill bill;

	(void)state;
	while (!send_call(machine, &machine->calls[0], THE_ADA, little, little))
		pass(machine);
	bill = lease_pay(ada, (struct rlmd_amount){0});
	bill.amount = little;
	for (size_t i = 0; i < bill.count; i++)
		bill.leases[i] += 1000;
	lease_paid(ada, &bill, lost);
	assert_false(send_call(machine, &machine->calls[1], THE_ADA, little, little));
	end_all();
}

/* A bill of which the store did not hear is not spent there. */
static void test_a_bill_that_is_not_kept(void **state)
{
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);
	struct store *store;
	struct far *far;
	struct lease_bill bill;

	(void)state;
	bill = lease_pay(ada, (struct rlmd_amount){500, 0});
	lease_paid(ada, &bill, NULL);
	accounts_close(machine->accounts);
	while (!machine->closed)
		pass(machine);
	store = open_store(&far);
	ASK_FAR(far, store_account, store, batch, text_of("ada"), -1, -1);
	assert_int_equal(told.account.spent_cost, 0);
	store_free(store);
	end_all();
}

/* --- what the store has in the end -------------------------------------------------------- */

/* Spent of the account of a tenant's: of the batch, or of the day (0). */
static int64_t spent_of(int64_t of, const char *tenant)
{
	struct far *far;
	struct store *store = open_store(&far);

	ASK_FAR(far, store_account, store, of, text_of(tenant), -1, -1);
	store_free(store);
	return told.account.spent_cost;
}

static void close_it(struct machine *machine)
{
	accounts_close(machine->accounts);
	while (!machine->closed)
		pass(machine);
}

static void send_when_it_may(struct machine *machine, int who, struct rlmd_amount most,
			     struct rlmd_amount bill)
{
	while (!send_call(machine, &machine->calls[0], who, most, bill))
		pass(machine);
}

/* It hears nothing until its lease is over, which the store sees when another one asks. */
static void lose_the_lease(struct machine *machine, int who)
{
	far_clock_ms += 4 * JOB_LEASE_MS;
	while (look(&machines[1], who) == LEASE_WAITS)
		pass(&machines[1]);
	for (int i = 0; i < 2 * JOB_LEASE_MS; i++)
		pass(machine);
	assert_non_null(machine->calls[0].account);
}

/* A call that was cut when its lease was over, and another machine had all the rest: it is in no
 * journal and in no lease that is open, and counts once. */
static void test_what_was_spent_under_a_lease_that_is_over(void **state)
{
	struct machine *machine = &machines[0];
	const struct rlmd_amount much = {400, 0};

	(void)state;
	begin_for_ada(machine);
	send_when_it_may(machine, THE_ADA, much, much);
	far_clock_ms += 4 * JOB_LEASE_MS;
	spend_all(&machines[1], THE_ADA);
	lose_the_lease(machine, THE_ADA);
	answer(machine, &machine->calls[0], true);
	close_it(machine);
	close_it(&machines[1]);
	assert_int_equal(spent_of(batch, "ada"), billed[0].cost);
	end_all();
}

/* The day ends while a call is in flight whose lease is over: of that day is what it was billed. */
static void test_midnight_after_a_lease_that_is_over(void **state)
{
	struct machine *machine = &machines[0];
	const struct rlmd_amount much = {700, 0}, little = {100, 0};
	int64_t midnight = far_clock_ms + DAY_MS - far_clock_ms % DAY_MS;

	(void)state;
	far_clock_ms = midnight - 20 * JOB_LEASE_MS;
	begin_for_ada(machine);
	send_when_it_may(machine, THE_CYD, much, little);
	lose_the_lease(machine, THE_CYD);
	far_clock_ms = midnight + JOB_LEASE_MS;
	end_timers(machine);
	for (int i = 0; i < JOB_LEASE_MS; i++)
		pass(machine);
	answer(machine, &machine->calls[0], false);
	while (machine->calls[0].account)
		pass(machine);
	close_it(machine);
	far_clock_ms = midnight - 1;
	assert_int_equal(spent_of(0, "cyd"), little.cost);
	far_clock_ms = midnight + DAY_MS;
	end_all();
}

/* Bills come, and the machine does not get to ask the store for more; then it dies, with a call in
 * flight. What the store counts then, when the lease is over, is at least what was billed. */
static void test_killed_before_it_asked(void **state)
{
	struct machine *machine = &machines[0];
	struct call *call = &machine->calls[0];
	const struct rlmd_amount some = {100, 0};
	struct store *store;
	struct far *far;
	bool sent = true;
	int refused = 0;

	(void)state;
	for (int bills = 0; bills < 8; bills++) {
		begin_for_ada(machine);
		send_when_it_may(machine, THE_ADA, some, some);
		for (int i = 0; i < bills && sent; i++) {
			answer(machine, call, false);
			while (call->account)
				assert_true((int)far_carry(machine->far) |
					    (int)far_deliver(machine->far));
			sent = send_call(machine, call, THE_ADA, some, some);
		}
		refused += !sent;
		sent = true;
		end_all();
		store = open_store(&far);
		check_account(store, far, "ada", (struct rlmd_amount){ADA, RLMD_UNLIMITED},
			      billed[THE_ADA]);
		store_free(store);
	}
	assert_true(refused);
}

/* Whether this may be sent after so many ticks of a machine with a job that asks for nothing; the
 * store has done what the last one asked for, and has `told` so. */
static bool is_open(int ticks, bool told_so, struct rlmd_amount amount)
{
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);
	struct rlmd_account *account;
	bool open;

	send_when_it_may(machine, THE_ADA, amount, amount);
	answer(machine, &machine->calls[0], false);
	while (machine->calls[0].account)
		pass(machine);
	account = lease_account(ada);
	lease_use(ada);
	for (int i = 1; i <= ticks; i++) {
		far_clock_ms += TICK_MS;
		tick(machine);
		event_base_loop(machine->loop, EVLOOP_NONBLOCK);
		while (far_carry(machine->far))
			continue;
		while ((i < ticks || told_so) && far_deliver(machine->far))
			continue;
	}
	open = !account_uncovered(account, amount);
	leave(ada, false);
	end_all();
	return open;
}

/* From the moment on at which the store is told that less is open, no more is risked. */
static void test_what_is_closed_is_not_risked(void **state)
{
	const struct rlmd_amount much = {400, 0};
	int ticks = 1;

	(void)state;
	assert_true(is_open(ticks, true, much));
	while (is_open(ticks, true, much))
		ticks++;
	assert_false(is_open(ticks, false, much));
}

/* --- how many jobs are begun ---------------------------------------------------------------- */

static void leave_with(struct lease *tenant, int64_t cost)
{
	lease_leave(tenant, &(struct lease_job){.cost = {cost, 0}, .succeeded = true});
}

/* While nothing is known but the bound of a job, as many are begun as fit with it, and one. */
static void test_jobs_of_which_the_bound_is_known(void **state)
{
	static const struct rlmd_limits third = {.cost = ADA / 3 + 1}, more = {.cost = 2 * ADA};
	struct machine *machine = &machines[0];
	struct lease *ada;

	(void)state;
	bound = &third;
	ada = begin_for_ada(machine);
	lease_use(ada);
	assert_int_equal(look(machine, THE_ADA), LEASE_READY);
	lease_use(ada);
	assert_int_equal(look(machine, THE_ADA), LEASE_EMPTY);
	leave_with(ada, ADA / 100);
	assert_int_equal(look(machine, THE_ADA), LEASE_READY);
	leave_with(ada, ADA / 100);
	end_all();

	bound = &more;
	ada = begin_for_ada(machine);
	lease_use(ada);
	assert_int_equal(look(machine, THE_ADA), LEASE_EMPTY);
	leave(ada, false);
	bound = NULL;
	end_all();
}

/* The cost of one is known: those at work will take as much, and a quarter more, each. */
static void test_jobs_of_which_the_cost_is_known(void **state)
{
	struct machine *machine = &machines[0];
	struct lease *ada = begin_for_ada(machine);

	(void)state;
	lease_expect(ada, (struct rlmd_amount){ADA / 4, 0});
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look(machine, THE_ADA), LEASE_READY);
		lease_use(ada);
	}
	assert_int_equal(look(machine, THE_ADA), LEASE_EMPTY);
	for (int i = 0; i < 3; i++)
		leave(ada, false);
	end_all();
}

/* A tenant that may spend nothing has the models that cost nothing. */
static void test_a_limit_of_nothing(void **state)
{
	struct machine *machine = &machines[0];
	const struct rlmd_amount nothing = {0};

	(void)state;
	begin_for_ada(machine);
	send_when_it_may(machine, THE_DAN, nothing, nothing);
	answer(machine, &machine->calls[0], false);
	while (machine->calls[0].account)
		pass(machine);
	assert_int_equal(look(machine, THE_DAN), LEASE_READY);
	end_all();
}

/* A tenant with a limit of the batch and one of the day keeps to both. */
static void test_two_limits(void **state)
{
	(void)state;
	begin_for_ada(&machines[0]);
	spend_all(&machines[0], THE_EVE);
	assert_in_range(billed[THE_EVE].cost, EVE - 20, EVE);
	end_all();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_midnight),
		cmocka_unit_test(test_a_bill_that_comes_late),
		cmocka_unit_test(test_fewer_at_once),
		cmocka_unit_test(test_too_little_for_a_job),
		cmocka_unit_test(test_what_is_kept_of_another_lease),
		cmocka_unit_test(test_a_bill_that_is_not_kept),
		cmocka_unit_test(test_what_was_spent_under_a_lease_that_is_over),
		cmocka_unit_test(test_midnight_after_a_lease_that_is_over),
		cmocka_unit_test(test_killed_before_it_asked),
		cmocka_unit_test(test_what_is_closed_is_not_risked),
		cmocka_unit_test(test_jobs_of_which_the_bound_is_known),
		cmocka_unit_test(test_jobs_of_which_the_cost_is_known),
		cmocka_unit_test(test_a_limit_of_nothing),
		cmocka_unit_test(test_two_limits),
		cmocka_unit_test(test_no_history_spends_more),
	};
	const char *missing;
	int failed;

	in_server = argc > 1 && !strcmp(argv[1], "postgres");
	missing = in_server ? server_missing() : NULL;

	if (missing) {
		printf("1..0 # SKIP %s\n", missing);
		return 0;
	}
	loop = loop_new();
	setting("ada", "max-cost", "0.000000003");
	setting("bob", "max-tokens", "3600");
	setting("cyd", "max-cost-per-day", "0.000000001");
	setting("dan", "max-cost", "0");
	setting("eve", "max-cost", "0.000000003");
	setting("eve", "max-cost-per-day", "0.0000000005");
	where_begin(in_server);
	failed = cmocka_run_group_tests_name(in_server ? "lease_postgres" : "lease", tests, NULL,
					     NULL);
	where_end();
	tenants_done(&tenants);
	event_base_free(loop);
	return failed;
}

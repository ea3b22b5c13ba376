/* The tree of accounts: arithmetic and texts of LIB-22 to LIB-25, and that nobody overspends. */
#include "budget/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static int64_t now;

/* Replaces the real clock: time passes when a test says so. */
int64_t clock_ms(void)
{
	return now;
}

/* The specification's defaults, with ten thousand units of cost. */
static const struct budget_limits defaults = {
	.cost = 10000,
	.tokens = 500000,
	.time_ms = 300000,
	.max_depth = 2,
	.max_iterations = 30,
};

struct warnings {
	char text[256];
	int count;
};

static void on_warning(void *owner, const char *text)
{
	struct warnings *warnings = owner;

	strcat(warnings->text, text);
	strcat(warnings->text, ";");
	warnings->count++;
}

static void use(struct budget *budget, int64_t cost, int64_t tokens)
{
	struct charge charge = {0};

	assert_true(charge_take(&charge, budget, (struct budget_amount){0}, NULL));
	charge_settle(&charge, (struct budget_amount){cost, tokens});
	budget_count_call(budget, &(struct budget_usage){.cost = cost,
							 .tokens = tokens,
							 .llm_calls = 1,
							 .cost_complete = true});
}

/* LIB-22: what was reserved is not there for others; what was settled is gone; the rest returns. */
static void test_take_settle_drop(void **state)
{
	struct budget *budget = budget_new(&defaults, NULL, NULL);
	struct charge a = {0}, b = {0};
	struct error err = {0};

	(void)state;
	assert_true(charge_take(&a, budget, (struct budget_amount){6000, 100}, &err));
	assert_int_equal(budget_remaining(budget).cost, 4000);
	assert_int_equal(budget_remaining(budget).tokens, 499900);
	assert_false(charge_take(&b, budget, (struct budget_amount){4001, 1}, &err));
	assert_null(b.budget);
	assert_int_equal(err.kind, ERROR_BUDGET);
	assert_string_equal(err.text, "Cost budget exhausted");
	assert_false(charge_take(&b, budget, (struct budget_amount){1, 499901}, &err));
	assert_string_equal(err.text, "Token budget exhausted");
	assert_true(charge_take(&b, budget, (struct budget_amount){4000, 499900}, &err));

	charge_drop(&b);
	charge_drop(&b);
	assert_int_equal(budget_remaining(budget).cost, 4000);
	charge_settle(&a, (struct budget_amount){1500, 80});
	assert_null(a.budget);
	assert_int_equal(budget_remaining(budget).cost, 8500);
	assert_int_equal(budget_remaining(budget).tokens, 499920);
	budget_free(budget);
}

/* LIB-24: each limit has its own reason; none of them blocks before it is reached. */
static void test_block_reasons(void **state)
{
	struct budget *budget = budget_new(&defaults, NULL, NULL);

	(void)state;
	use(budget, 9999, 0);
	assert_null(budget_iteration_block(budget));
	use(budget, 1, 0);
	assert_string_equal(budget_iteration_block(budget), "Cost budget exhausted");
	assert_string_equal(budget_subcall_block(budget, 0), "Cost budget exhausted");
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	use(budget, 0, 499999);
	assert_null(budget_iteration_block(budget));
	use(budget, 0, 1);
	assert_string_equal(budget_iteration_block(budget), "Token budget exhausted");
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	now += 299999;
	assert_null(budget_iteration_block(budget));
	assert_int_equal(budget_remaining_ms(budget), 1);
	now += 1;
	assert_string_equal(budget_iteration_block(budget), "Time budget exhausted");
	assert_int_equal(budget_remaining_ms(budget), 0);
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	for (int i = 0; i < 30; i++) {
		assert_null(budget_iteration_block(budget));
		assert_int_equal(budget_remaining_iterations(budget), 30 - i);
		budget_count_iteration(budget);
	}
	assert_string_equal(budget_iteration_block(budget), "Max iterations reached");
	assert_null(budget_subcall_block(budget, 0));
	budget_free(budget);
}

/* LIB-22: a sub-run at depth d may exist if d < max_depth; the root is 0, the caller says its own.
 */
static void test_depth(void **state)
{
	struct budget_limits limits = defaults;

	(void)state;
	for (limits.max_depth = 0; limits.max_depth < 5; limits.max_depth++) {
		struct budget *budget = budget_new(&limits, NULL, NULL);

		for (int caller = 0; caller < 6; caller++) {
			const char *reason = budget_subcall_block(budget, caller);

			if (caller + 1 < limits.max_depth)
				assert_null(reason);
			else
				assert_string_equal(reason, "Max depth reached");
		}
		budget_free(budget);
	}
}

/* LIB-22: half of what remains, half of the iterations rounded up, the same absolute depth. */
static void test_child_limits(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *root, *child;

	(void)state;
	limits.max_iterations = 7;
	root = budget_new(&limits, NULL, NULL);
	use(root, 1000, 100000);
	now += 100000;
	child = budget_new_child(root, 1, NULL, NULL);
	assert_int_equal(budget_limits(child)->cost, 4500);
	assert_int_equal(budget_limits(child)->tokens, 200000);
	assert_int_equal(budget_limits(child)->time_ms, 100000);
	assert_int_equal(budget_limits(child)->max_iterations, 4);
	assert_int_equal(budget_limits(child)->max_depth, 2);
	assert_int_equal(budget_deadline(child), now + 100000);
	assert_int_equal(budget_deadline(root), now + 200000);
	budget_free(child);
	budget_free(root);
}

/* LIB-22: what running siblings hold counts as spent until they end; then the rest returns. */
static void test_siblings(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *first = budget_new_child(root, 1, NULL, NULL);
	struct budget *second = budget_new_child(root, 1, NULL, NULL);
	struct budget *third = budget_new_child(root, 1, NULL, NULL);

	(void)state;
	assert_int_equal(budget_limits(first)->cost, 5000);
	assert_int_equal(budget_limits(second)->cost, 2500);
	assert_int_equal(budget_limits(third)->cost, 1250);
	assert_int_equal(budget_remaining(root).cost, 1250);
	use(first, 300, 1000);
	assert_int_equal(budget_remaining(root).cost, 1250);
	assert_int_equal(budget_usage(root)->cost, 300);
	budget_free(first);
	assert_int_equal(budget_remaining(root).cost, 1250 + 4700);
	budget_free(third);
	budget_free(second);
	assert_int_equal(budget_remaining(root).cost, 9700);
	assert_int_equal(budget_remaining(root).tokens, 499000);
	budget_free(root);
}

/* A child that was billed more than it had grows its grant at once, all the way up. */
static void test_overrun(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *child = budget_new_child(root, 1, NULL, NULL);
	struct budget *grandchild = budget_new_child(child, 2, NULL, NULL);

	(void)state;
	use(grandchild, 6000, 0);
	assert_int_equal(budget_remaining(grandchild).cost, 0);
	assert_string_equal(budget_iteration_block(grandchild), "Cost budget exhausted");
	assert_int_equal(budget_remaining(child).cost, 0);
	assert_int_equal(budget_remaining(root).cost, 4000);
	budget_free(grandchild);
	assert_string_equal(budget_iteration_block(child), "Cost budget exhausted");
	assert_int_equal(budget_remaining(root).cost, 4000);
	budget_free(child);
	assert_int_equal(budget_remaining(root).cost, 4000);
	assert_null(budget_iteration_block(root));
	use(root, 5000, 0);
	assert_int_equal(budget_remaining(root).cost, 0);
	budget_free(root);
}

/* LIB-6: usage covers the tree while it happens; iterations are limited for each run alone. */
static void test_usage(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *child = budget_new_child(root, 1, NULL, NULL);
	const struct budget_usage *usage = budget_usage(root);

	(void)state;
	assert_true(usage->cost_complete);
	assert_false(usage->estimated);
	budget_count_iteration(root);
	budget_count_iteration(child);
	budget_count_iteration(child);
	budget_count_subcall(root, 1);
	budget_count_subcall(child, 2);
	budget_count_call(child, &(struct budget_usage){5, 30, 10, 20, 4, .llm_calls = 1,
							.cost_complete = true});
	budget_count_call(root,
			  &(struct budget_usage){7, 3, 1, 2, 1, .llm_calls = 1, .estimated = true});
	assert_int_equal(usage->iterations, 3);
	assert_int_equal(budget_remaining_iterations(root), 29);
	assert_int_equal(budget_remaining_iterations(child), 13);
	assert_int_equal(usage->subcalls, 2);
	assert_int_equal(usage->max_depth_reached, 2);
	assert_int_equal(usage->llm_calls, 2);
	assert_int_equal(usage->cost, 12);
	assert_int_equal(usage->tokens, 33);
	assert_int_equal(usage->input_tokens, 11);
	assert_int_equal(usage->output_tokens, 22);
	assert_int_equal(usage->cached_tokens, 5);
	assert_true(usage->estimated);
	assert_false(usage->cost_complete);
	assert_true(budget_usage(child)->cost_complete);
	assert_false(budget_usage(child)->estimated);
	budget_free(child);
	assert_int_equal(usage->cost, 12);
	budget_free(root);
}

/* LIB-23: at 80 %, once a kind, in the specification's words, rounded as it rounds. */
static void test_warnings(void **state)
{
	struct warnings warnings = {0};
	struct budget *budget = budget_new(&defaults, on_warning, &warnings);

	(void)state;
	use(budget, 7999, 0);
	assert_null(budget_iteration_block(budget));
	assert_string_equal(warnings.text, "");
	use(budget, 351, 399999);
	assert_null(budget_iteration_block(budget));
	assert_string_equal(warnings.text, "Cost at 84% of budget;"); /* 83.5 */
	use(budget, 100, 1);
	now += 249000;
	assert_null(budget_subcall_block(budget, 0));
	assert_string_equal(warnings.text,
			    "Cost at 84% of budget;Tokens at 80% of budget;Time at 83% of budget;");
	now += 1000;
	use(budget, 100, 1000);
	assert_null(budget_iteration_block(budget));
	assert_int_equal(warnings.count, 3);
	budget_free(budget);
}

/* LIB-23: a single step from below 80 % to beyond the limit warns too. */
static void test_warning_of_a_jump(void **state)
{
	struct warnings warnings = {0};
	struct budget *budget = budget_new(&defaults, on_warning, &warnings);

	(void)state;
	use(budget, 12345, 0);
	assert_string_equal(budget_iteration_block(budget), "Cost budget exhausted");
	assert_string_equal(warnings.text, "Cost at 123% of budget;");
	budget_free(budget);
}

/* LIB-23: a limit of zero never divides by zero, and huge numbers do not overflow. */
static void test_warning_extremes(void **state)
{
	struct budget_limits limits = {.max_iterations = 5};
	struct warnings warnings = {0};
	struct budget *budget = budget_new(&limits, on_warning, &warnings);

	(void)state;
	budget_count_call(budget, &(struct budget_usage){.cost = 1, .tokens = 1});
	assert_string_equal(budget_iteration_block(budget), "Token budget exhausted");
	assert_int_equal(warnings.count, 0);
	budget_free(budget);

	limits = (struct budget_limits){INT64_MAX - 1, 1, BUDGET_UNLIMITED, 2, 30};
	budget = budget_new(&limits, on_warning, &warnings);
	use(budget, INT64_MAX / 10 * 9, 0);
	assert_null(budget_iteration_block(budget));
	assert_string_equal(warnings.text, "Cost at 90% of budget;");
	use(budget, INT64_MAX, INT64_MAX);
	assert_non_null(budget_iteration_block(budget));
	assert_int_equal(budget_remaining(budget).cost, 0);
	assert_int_equal(budget_usage(budget)->cost, INT64_MAX);
	budget_free(budget);
}

/* LIB-25: a cost limit of zero means "spend nothing": free calls proceed, priced ones do not. */
static void test_spend_nothing(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *budget, *child;
	struct charge charge = {0};
	struct error err = {0};

	(void)state;
	limits.cost = 0;
	budget = budget_new(&limits, NULL, NULL);
	assert_null(budget_iteration_block(budget));
	assert_null(budget_subcall_block(budget, 0));
	assert_true(charge_take(&charge, budget, (struct budget_amount){0, 1000}, &err));
	charge_settle(&charge, (struct budget_amount){0, 900});
	assert_false(charge_take(&charge, budget, (struct budget_amount){1, 1}, &err));
	assert_string_equal(err.text, "Cost budget exhausted");
	child = budget_new_child(budget, 1, NULL, NULL);
	assert_null(budget_iteration_block(child));
	assert_true(charge_take(&charge, child, (struct budget_amount){0, 1}, &err));
	charge_drop(&charge);
	assert_false(charge_take(&charge, child, (struct budget_amount){1, 0}, &err));
	budget_free(child);
	use(budget, 1, 0);
	assert_string_equal(budget_iteration_block(budget), "Cost budget exhausted");
	budget_free(budget);
}

/* What is unlimited stays so, for children too, and is still counted. */
static void test_unlimited(void **state)
{
	struct budget_limits limits = {BUDGET_UNLIMITED, BUDGET_UNLIMITED, BUDGET_UNLIMITED, 3, 9};
	struct budget *root = budget_new(&limits, NULL, NULL);
	struct budget *child = budget_new_child(root, 1, NULL, NULL);
	struct charge a = {0}, b = {0};

	(void)state;
	assert_int_equal(budget_limits(child)->cost, BUDGET_UNLIMITED);
	assert_int_equal(budget_limits(child)->time_ms, BUDGET_UNLIMITED);
	assert_int_equal(budget_deadline(child), INT64_MAX);
	assert_int_equal(budget_remaining_ms(child), BUDGET_UNLIMITED);
	assert_true(charge_take(&a, child, (struct budget_amount){INT64_MAX, INT64_MAX}, NULL));
	assert_true(charge_take(&b, child, (struct budget_amount){INT64_MAX, 5}, NULL));
	assert_int_equal(budget_remaining(root).cost, BUDGET_UNLIMITED);
	charge_settle(&a, (struct budget_amount){INT64_MAX, INT64_MAX});
	charge_drop(&b);
	assert_null(budget_iteration_block(child));
	budget_free(child);
	assert_null(budget_iteration_block(root));
	assert_int_equal(budget_remaining(root).tokens, BUDGET_UNLIMITED);
	budget_free(root);
}

/*
 * Any interleaving of charges and sub-runs, down to depth 4. A model of the
 * purse, kept beside it by the test, says what each account must show.
 */
enum { ACCOUNTS = 12, CHARGES = 24, EVENTS = 200000, DEPTH = 4 };

struct account {
	struct budget *budget;
	int parent, depth; /* index of the parent; -1: the root, or unused */
	int64_t spent;     /* settled here and in children that ended */
	int64_t total;     /* settled here and below */
	bool overrun;      /* it, or some account below, was billed more than it had */
};

struct promise {
	struct charge charge;
	int account;
};

struct world {
	struct account accounts[ACCOUNTS];
	struct promise promises[CHARGES];
	uint64_t random;
	int64_t settled; /* all that was ever settled, by all */
};

/* xorshift64*, public domain (Vigna) */
static uint64_t next_random(struct world *world, uint64_t below)
{
	world->random ^= world->random >> 12;
	world->random ^= world->random << 25;
	world->random ^= world->random >> 27;
	return (world->random * UINT64_C(0x2545f4914f6cdd1d)) % below;
}

static int64_t held_in(const struct world *world, int account)
{
	int64_t held = 0;

	for (int i = 0; i < CHARGES; i++)
		if (world->promises[i].charge.budget == world->accounts[account].budget)
			held += world->promises[i].charge.amount.tokens;
	return held;
}

/* No account over its limit, nothing negative, the sum of the leaves is the root's. */
static void check_world(const struct world *world)
{
	for (int i = 0; i < ACCOUNTS; i++) {
		const struct account *account = &world->accounts[i];
		int64_t limit, left, below = 0, granted = 0;

		if (!account->budget)
			continue;
		limit = budget_limits(account->budget)->tokens;
		left = budget_remaining(account->budget).tokens;
		assert_true(left >= 0);
		for (int j = 1; j < ACCOUNTS; j++)
			if (world->accounts[j].budget && world->accounts[j].parent == i) {
				below += world->accounts[j].total;
				granted += budget_limits(world->accounts[j].budget)->tokens;
			}
		assert_int_equal(account->total, account->spent + below);
		assert_int_equal(budget_usage(account->budget)->tokens, account->total);
		if (account->overrun)
			continue;
		assert_int_equal(left, limit - account->spent - held_in(world, i) - granted);
		assert_true(account->total <= limit);
	}
	assert_int_equal(world->accounts[0].total, world->settled);
}

static void take(struct world *world, int account)
{
	struct account *payer = &world->accounts[account];

	for (int i = 0; i < CHARGES; i++) {
		struct promise *promise = &world->promises[i];
		int64_t left, amount;

		if (promise->charge.budget)
			continue;
		left = budget_remaining(payer->budget).tokens;
		amount = (int64_t)next_random(world, 20000);
		promise->account = account;
		assert_int_equal(charge_take(&promise->charge, payer->budget,
					     (struct budget_amount){0, amount}, NULL),
				 amount <= left);
		return;
	}
}

static void settle(struct world *world, struct promise *promise, bool may_overrun)
{
	int64_t reserved = promise->charge.amount.tokens;
	int64_t actual = (int64_t)next_random(world, (uint64_t)reserved + 1);
	struct budget *budget = promise->charge.budget;
	struct account *account = &world->accounts[promise->account];

	if (may_overrun)
		actual += 1 + (int64_t)next_random(world, 3000);
	charge_settle(&promise->charge, (struct budget_amount){0, actual});
	budget_count_call(budget, &(struct budget_usage){.tokens = actual});
	world->settled += actual;
	account->spent += actual;
	for (;;) {
		account->total += actual;
		account->overrun |= actual > reserved;
		if (account->parent < 0)
			break;
		account = &world->accounts[account->parent];
	}
}

static void open_child(struct world *world, int parent)
{
	struct account *above = &world->accounts[parent];

	if (above->depth == DEPTH)
		return;
	for (int i = 1; i < ACCOUNTS; i++) {
		struct account *account = &world->accounts[i];

		if (account->budget)
			continue;
		*account = (struct account){
			.budget = budget_new_child(above->budget, above->depth + 1, NULL, NULL),
			.parent = parent,
			.depth = above->depth + 1,
		};
		return;
	}
}

/* Ends an account as a run ends: what is below goes first, charges in flight are dropped. */
static void close_account(struct world *world, int index)
{
	struct account *account = &world->accounts[index];

	for (int i = 1; i < ACCOUNTS; i++)
		if (world->accounts[i].budget && world->accounts[i].parent == index)
			close_account(world, i);
	for (int i = 0; i < CHARGES; i++)
		if (world->promises[i].charge.budget == account->budget)
			charge_drop(&world->promises[i].charge);
	budget_free(account->budget);
	if (index)
		world->accounts[account->parent].spent += account->spent;
	account->budget = NULL;
}

static void step(struct world *world, bool overruns)
{
	int account = (int)next_random(world, ACCOUNTS);
	struct promise *promise = &world->promises[next_random(world, CHARGES)];
	uint64_t dice = next_random(world, 100);

	if (!world->accounts[account].budget)
		account = 0;
	if (dice < 45)
		take(world, account);
	else if (dice < 75 && promise->charge.budget)
		settle(world, promise, overruns && dice < 48);
	else if (dice < 82)
		charge_drop(&promise->charge);
	else if (dice < 93)
		open_child(world, account);
	else if (account)
		close_account(world, account);
}

static void run_world(uint64_t seed, bool overruns)
{
	struct budget_limits limits = {.tokens = 100000, .time_ms = 1, .max_depth = 9};
	struct world world = {.random = seed};

	world.accounts[0] = (struct account){.parent = -1,
					     .budget = budget_new(&limits, NULL, NULL)};
	for (int i = 0; i < EVENTS; i++) {
		if (i % 100 == 99) { /* a new purse: the old one is used up by now */
			close_account(&world, 0);
			world.settled = 0;
			world.accounts[0] = (struct account){
				.parent = -1, .budget = budget_new(&limits, NULL, NULL)};
		}
		step(&world, overruns);
		check_world(&world);
	}
	close_account(&world, 0); /* budget_free() asserts that nothing is outstanding */
}

static void test_interleavings(void **state)
{
	static const uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

	(void)state;
	print_message("# seed %#llx\n", (unsigned long long)seed);
	run_world(seed, false);
	run_world(seed + 1, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_settle_drop),
		cmocka_unit_test(test_block_reasons),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_child_limits),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_warning_of_a_jump),
		cmocka_unit_test(test_warning_extremes),
		cmocka_unit_test(test_spend_nothing),
		cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_interleavings),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}

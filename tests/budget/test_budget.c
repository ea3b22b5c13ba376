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
#include "base/money.h"
#include "budget/estimator.h"

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
	.calls = 40,
	.subruns = 40,
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
	struct reservation reservation = {0};

	assert_true(budget_reserve(budget, &reservation, (struct rlmd_amount){0}, NULL));
	account_settle(&reservation, (struct rlmd_amount){cost, tokens});
	budget_count_call(budget, &(struct budget_usage){.cost = cost,
							 .tokens = tokens,
							 .llm_calls = 1,
							 .cost_complete = true});
}

/* LIB-22: what was reserved is not there for others; what was settled is gone; the rest returns. */
static void test_take_settle_drop(void **state)
{
	struct budget *budget = budget_new(&defaults, NULL, NULL);
	struct reservation a = {0}, b = {0};
	struct rlmd_error err = {0};

	(void)state;
	assert_true(budget_reserve(budget, &a, (struct rlmd_amount){6000, 100}, &err));
	assert_int_equal(budget_remaining(budget).cost, 4000);
	assert_int_equal(budget_remaining(budget).tokens, 499900);
	assert_false(budget_reserve(budget, &b, (struct rlmd_amount){4001, 1}, &err));
	assert_null(b.account);
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_string_equal(err.text, "Cost budget exhausted");
	assert_false(budget_reserve(budget, &b, (struct rlmd_amount){1, 499901}, &err));
	assert_string_equal(err.text, "Token budget exhausted");
	assert_true(budget_reserve(budget, &b, (struct rlmd_amount){4000, 499900}, &err));

	account_drop(&b);
	account_drop(&b);
	assert_int_equal(budget_remaining(budget).cost, 4000);
	account_settle(&a, (struct rlmd_amount){1500, 80});
	assert_null(a.account);
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
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	use(budget, 1, 0);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_COST);
	assert_int_equal(budget_subcall_block(budget, 0, NULL), RLMD_STOP_MAX_COST);
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	use(budget, 0, 499999);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	use(budget, 0, 1);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_TOKENS);
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	now += 299999;
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	assert_int_equal(budget_remaining_ms(budget), 1);
	now += 1;
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_TIME);
	assert_int_equal(budget_remaining_ms(budget), 0);
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
		assert_int_equal(budget_remaining_iterations(budget), 30 - i);
		budget_count_iteration(budget);
	}
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_ITERATIONS);
	assert_int_equal(budget_subcall_block(budget, 0, NULL), RLMD_STOP_NONE);
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
			struct rlmd_error err = {0};
			enum rlmd_stop reason = budget_subcall_block(budget, caller, &err);

			if (caller + 1 < limits.max_depth)
				assert_int_equal(reason, RLMD_STOP_NONE);
			else
				assert_int_equal(reason, RLMD_STOP_MAX_DEPTH);
			assert_string_equal(err.text, reason ? "Max depth reached" : "");
		}
		budget_free(budget);
	}
}

/* LIB-22: half of what remains, half of the iterations rounded up, the same absolute depth. */
static void test_child_limits(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *root, *pool, *child;

	(void)state;
	limits.max_iterations = 7;
	root = budget_new(&limits, NULL, NULL);
	use(root, 1000, 100000);
	now += 100000;
	pool = budget_new_pool(root);
	now += 10000;
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	assert_int_equal(budget_limits(child)->cost, 4500);
	assert_int_equal(budget_limits(child)->tokens, 200000);
	assert_int_equal(budget_limits(child)->time_ms, 90000);
	assert_int_equal(budget_limits(child)->max_iterations, 4);
	assert_int_equal(budget_limits(child)->max_depth, 2);
	assert_int_equal(budget_limits(child)->calls, 40);
	assert_int_equal(budget_deadline(child), now + 90000);
	assert_int_equal(budget_deadline(root), now + 190000);
	budget_free(child);
	budget_free(pool);
	budget_free(root);
}

/* LIB-22: what running siblings hold counts as spent until they end; then the rest returns. */
static void test_siblings(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pools[3], *children[3];
	static const int64_t grants[3] = {5000, 2500, 1250};

	(void)state;
	for (int i = 0; i < 3; i++) {
		pools[i] = budget_new_pool(root);
		children[i] = budget_new_child(pools[i], 1, 1, NULL, NULL);
		assert_int_equal(budget_limits(children[i])->cost, grants[i]);
		assert_int_equal(budget_remaining(root).cost, grants[i]);
	}
	use(children[0], 300, 1000);
	assert_int_equal(budget_remaining(root).cost, 1250);
	assert_int_equal(budget_usage(root)->cost, 300);
	budget_free(children[0]);
	assert_int_equal(budget_remaining(root).cost, 1250);
	budget_free(pools[0]);
	assert_int_equal(budget_remaining(root).cost, 1250 + 4700);
	for (int i = 1; i < 3; i++) {
		budget_free(children[i]);
		budget_free(pools[i]);
	}
	assert_int_equal(budget_remaining(root).cost, 9700);
	assert_int_equal(budget_remaining(root).tokens, 499000);
	budget_free(root);
}

/* A batch of n divides one half; what one sub-run returns goes to those that start later. */
static void test_batch(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *children[4];

	(void)state;
	children[0] = budget_new_child(pool, 1, 4, NULL, NULL);
	children[1] = budget_new_child(pool, 1, 3, NULL, NULL);
	assert_int_equal(budget_limits(children[0])->cost, 1250);
	assert_int_equal(budget_limits(children[1])->cost, 1250);
	assert_int_equal(budget_limits(children[1])->tokens, 62500);
	assert_int_equal(budget_limits(children[1])->max_iterations, 15);
	use(children[0], 250, 2500);
	budget_free(children[0]);
	assert_int_equal(budget_remaining(pool).cost, 3500);
	children[2] = budget_new_child(pool, 1, 2, NULL, NULL);
	children[3] = budget_new_child(pool, 1, 1, NULL, NULL);
	assert_int_equal(budget_limits(children[2])->cost, 1750);
	assert_int_equal(budget_limits(children[3])->cost, 1750);
	assert_int_equal(budget_limits(children[2])->tokens, 92500);
	assert_int_equal(budget_subcall_block(pool, 0, NULL), RLMD_STOP_MAX_COST);
	for (int i = 1; i < 4; i++)
		budget_free(children[i]);
	budget_free(pool);
	assert_int_equal(budget_remaining(root).cost, 9750);
	assert_int_equal(budget_remaining(root).tokens, 497500);
	budget_free(root);
}

/* The most sub-runs, of the whole tree: one that has ended counts too, wherever it was. */
static void test_subruns_limit(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *root, *pool, *child, *below;

	(void)state;
	limits.subruns = 2;
	limits.max_depth = 5;
	root = budget_new(&limits, NULL, NULL);
	pool = budget_new_pool(root);
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	below = budget_new_pool(child);
	assert_int_equal(budget_subcall_block(child, 1, NULL), RLMD_STOP_NONE);
	budget_free(budget_new_child(below, 2, 1, NULL, NULL));
	assert_int_equal(budget_subcall_block(child, 1, NULL), RLMD_STOP_MAX_SUBRUNS);
	assert_int_equal(budget_subcall_block(child, 4, NULL), RLMD_STOP_MAX_DEPTH);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);
	budget_free(below);
	budget_free(child);
	budget_free(pool);
	assert_int_equal(budget_subcall_block(root, 0, NULL), RLMD_STOP_MAX_SUBRUNS);
	budget_free(root);
}

/* The most model calls, of the whole tree; what usage counts has nothing to do with it. */
static void test_calls_limit(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *root, *pool, *child;
	struct rlmd_error err = {0};

	(void)state;
	limits.calls = 3;
	root = budget_new(&limits, NULL, NULL);
	pool = budget_new_pool(root);
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	use(root, 0, 0);
	assert_true(budget_admit_call(child, &err));
	assert_true(budget_admit_call(root, &err));
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);
	assert_true(budget_admit_call(child, &err));
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_CALLS);
	assert_int_equal(budget_subcall_block(root, 0, NULL), RLMD_STOP_MAX_CALLS);
	assert_false(budget_admit_call(root, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_string_equal(err.text, "Max calls reached");
	budget_free(child);
	budget_free(pool);
	assert_false(budget_admit_call(root, NULL));
	budget_free(root);

	limits.calls = 0;
	root = budget_new(&limits, NULL, NULL);
	assert_int_equal(budget_iteration_block(root, NULL), RLMD_STOP_MAX_CALLS);
	budget_free(root);
}

/* ENG-14: scarce is what has less left than so many per cent; what is held counts as gone. */
static void test_scarce(void **state)
{
	struct budget_limits limits = {BUDGET_UNLIMITED, 0, BUDGET_UNLIMITED, 2, 5};
	struct budget *budget = budget_new(&defaults, NULL, NULL);
	struct reservation reservation = {0};

	(void)state;
	use(budget, 8000, 300000);
	assert_null(budget_scarce(budget, 20));
	assert_string_equal(budget_scarce(budget, 21), "cost");
	assert_true(budget_reserve(budget, &reservation, (struct rlmd_amount){1, 100001}, NULL));
	assert_string_equal(budget_scarce(budget, 20), "cost");
	assert_null(budget_scarce(budget, 0));
	account_drop(&reservation);
	assert_null(budget_scarce(budget, 20));
	use(budget, 0, 100001);
	assert_string_equal(budget_scarce(budget, 20), "tokens");
	budget_free(budget);

	budget = budget_new(&defaults, NULL, NULL);
	now += 240000;
	assert_null(budget_scarce(budget, 20));
	now += 1;
	assert_string_equal(budget_scarce(budget, 20), "time");
	budget_free(budget);

	budget = budget_new(&limits, NULL, NULL); /* no limit, or none that can grow scarce */
	use(budget, INT64_MAX, 0);
	assert_null(budget_scarce(budget, 100));
	budget_free(budget);

	limits = (struct budget_limits){.cost = INT64_MAX - 1, .tokens = BUDGET_UNLIMITED};
	budget = budget_new(&limits, NULL, NULL);
	use(budget, INT64_MAX / 100 * 79, 0);
	assert_null(budget_scarce(budget, 20));
	use(budget, INT64_MAX / 100 * 2, 0);
	assert_string_equal(budget_scarce(budget, 20), "cost");
	budget_free(budget);
}

/* A bill beyond its reservation is spent and reported; it grows the grants all the way up. */
static void test_overrun(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 2, NULL, NULL);
	struct reservation reservation = {0};

	(void)state;
	assert_true(budget_reserve(child, &reservation, (struct rlmd_amount){2000, 500}, NULL));
	account_settle(&reservation, (struct rlmd_amount){2100, 400});
	assert_int_equal(budget_overrun(child).cost, 100);
	assert_int_equal(budget_overrun(child).tokens, 0);
	assert_int_equal(budget_remaining(child).cost, 400);
	assert_int_equal(budget_remaining(pool).cost, 2500);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);

	assert_true(budget_reserve(child, &reservation, (struct rlmd_amount){400, 500}, NULL));
	account_settle(&reservation, (struct rlmd_amount){3400, 501});
	assert_int_equal(budget_remaining(child).cost, 0);
	assert_int_equal(budget_remaining(pool).cost, 0);
	assert_int_equal(budget_remaining(root).cost, 4500);
	assert_int_equal(budget_overrun(root).cost, 3100);
	assert_int_equal(budget_overrun(pool).tokens, 1);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_COST);
	budget_free(child);
	assert_int_equal(budget_subcall_block(pool, 0, NULL), RLMD_STOP_MAX_COST);
	budget_free(pool);
	assert_int_equal(budget_overrun(root).cost, 3100);
	assert_int_equal(budget_remaining(root).cost, 4500);
	assert_int_equal(budget_iteration_block(root, NULL), RLMD_STOP_NONE);
	budget_free(root);
}

/* Below an account that is overdrawn nothing more is spent, not even what is free or was granted,
 * until what is returned has made it good. */
static void test_overdraft(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 2, NULL, NULL);
	struct budget *sibling = budget_new_child(pool, 1, 1, NULL, NULL);
	struct reservation reservation = {0}, reserve = {0};
	struct rlmd_error err = {0};

	(void)state;
	assert_true(budget_reserve(root, &reserve, (struct rlmd_amount){1000, 0}, NULL));
	use(root, 4500, 0);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_COST);
	assert_int_equal(budget_subcall_block(child, 0, NULL), RLMD_STOP_MAX_COST);
	assert_int_equal(budget_remaining(child).cost, 2500);
	assert_false(budget_reserve(child, &reservation, (struct rlmd_amount){1, 1}, &err));
	assert_string_equal(err.text, "Cost budget exhausted");
	assert_false(budget_reserve(child, &reservation, (struct rlmd_amount){0}, &err));
	assert_false(budget_reserve(root, &reservation, (struct rlmd_amount){0}, &err));

	account_drop(&reserve); /* the answer that it was kept for may take what is left of it */
	assert_int_equal(budget_remaining(root).cost, 500);
	assert_true(budget_reserve(root, &reservation, (struct rlmd_amount){500, 1}, &err));
	account_drop(&reservation);
	assert_true(budget_reserve(child, &reservation, (struct rlmd_amount){2500, 1}, &err));
	account_drop(&reservation);

	use(child, 3100, 0); /* 600 more than it had, 100 more than all that was left */
	assert_false(budget_reserve(root, &reservation, (struct rlmd_amount){0, 1}, &err));
	assert_false(budget_reserve(sibling, &reservation, (struct rlmd_amount){1, 1}, &err));
	assert_int_equal(budget_iteration_block(sibling, NULL), RLMD_STOP_MAX_COST);
	budget_free(child);
	budget_free(sibling);
	assert_int_equal(budget_remaining(pool).cost, 1900);
	assert_int_equal(budget_subcall_block(pool, 0, NULL), RLMD_STOP_MAX_COST);
	budget_free(pool);
	assert_int_equal(budget_iteration_block(root, NULL), RLMD_STOP_NONE);
	assert_int_equal(budget_remaining(root).cost, 2400);
	budget_free(root);
}

/* LIB-6: usage covers the tree while it happens; iterations are limited for each run alone. */
static void test_usage(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 1, NULL, NULL);
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
	budget_free(pool);
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
	assert_string_equal(warnings.text, "");
	use(budget, 351, 399999);
	assert_string_equal(warnings.text, "Cost at 84% of budget;"); /* 83.5 */
	use(budget, 100, 1);
	now += 249000;
	assert_int_equal(budget_subcall_block(budget, 0, NULL), RLMD_STOP_NONE);
	assert_string_equal(warnings.text,
			    "Cost at 84% of budget;Tokens at 80% of budget;Time at 83% of budget;");
	now += 1000;
	use(budget, 100, 1000);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	assert_int_equal(warnings.count, 3);
	budget_free(budget);
}

/* LIB-23: a single step from below 80 % to beyond the limit warns at once, and once. */
static void test_warning_of_a_jump(void **state)
{
	struct warnings warnings = {0};
	struct budget *budget = budget_new(&defaults, on_warning, &warnings);

	(void)state;
	use(budget, 12345, 0);
	assert_string_equal(warnings.text, "Cost at 123% of budget;");
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_COST);
	now += 600000;
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_COST);
	assert_string_equal(warnings.text, "Cost at 123% of budget;Time at 200% of budget;");
	budget_free(budget);
}

/* LIB-23: each account warns about its own limit; what is spent below counts for it at once. */
static void test_warnings_of_a_tree(void **state)
{
	struct warnings above = {0}, below = {0};
	struct budget *root = budget_new(&defaults, on_warning, &above);
	struct budget *pool, *child;

	(void)state;
	use(root, 5000, 0);
	pool = budget_new_pool(root);
	child = budget_new_child(pool, 1, 1, on_warning, &below);
	use(child, 2000, 0);
	assert_string_equal(below.text, "Cost at 80% of budget;");
	assert_string_equal(above.text, "");
	use(root, 1000, 0);
	assert_string_equal(above.text, "Cost at 80% of budget;");
	use(child, 500, 0);
	assert_int_equal(below.count, 1);
	assert_int_equal(above.count, 1);
	budget_free(child);
	budget_free(pool);
	budget_free(root);
}

/* LIB-23: a limit of zero never divides by zero, and huge numbers do not overflow. */
static void test_warning_extremes(void **state)
{
	struct budget_limits limits = {.max_iterations = 5, .calls = 1};
	struct warnings warnings = {0};
	struct budget *budget = budget_new(&limits, on_warning, &warnings);

	(void)state;
	budget_count_call(budget, &(struct budget_usage){.cost = 1, .tokens = 1});
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_TOKENS);
	assert_int_equal(warnings.count, 0);
	budget_free(budget);

	limits = (struct budget_limits){INT64_MAX - 1, 1, BUDGET_UNLIMITED, 2, 30, 1, 1};
	budget = budget_new(&limits, on_warning, &warnings);
	use(budget, INT64_MAX / 10 * 9, 0);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	assert_string_equal(warnings.text, "Cost at 90% of budget;");
	use(budget, INT64_MAX, INT64_MAX);
	assert_int_not_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	assert_int_equal(budget_remaining(budget).cost, 0);
	assert_int_equal(budget_usage(budget)->cost, INT64_MAX);
	budget_free(budget);
}

/* LIB-25: a cost limit of zero means "spend nothing": free calls proceed, priced ones do not. */
static void test_spend_nothing(void **state)
{
	struct budget_limits limits = defaults;
	struct budget *budget, *pool, *child;
	struct reservation reservation = {0};
	struct rlmd_error err = {0};

	(void)state;
	limits.cost = 0;
	budget = budget_new(&limits, NULL, NULL);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_NONE);
	assert_int_equal(budget_subcall_block(budget, 0, NULL), RLMD_STOP_NONE);
	assert_true(budget_reserve(budget, &reservation, (struct rlmd_amount){0, 1000}, &err));
	account_settle(&reservation, (struct rlmd_amount){0, 900});
	assert_false(budget_reserve(budget, &reservation, (struct rlmd_amount){1, 1}, &err));
	assert_string_equal(err.text, "Cost budget exhausted");
	pool = budget_new_pool(budget);
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);
	assert_true(budget_reserve(child, &reservation, (struct rlmd_amount){0, 1}, &err));
	account_drop(&reservation);
	assert_false(budget_reserve(child, &reservation, (struct rlmd_amount){1, 0}, &err));
	budget_free(child);
	budget_free(pool);
	use(budget, 1, 0);
	assert_int_equal(budget_iteration_block(budget, NULL), RLMD_STOP_MAX_COST);
	budget_free(budget);
}

/* A limit that is unlimited stays so, for children too, and use is still counted. */
static void test_unlimited(void **state)
{
	struct budget_limits limits = {BUDGET_UNLIMITED, BUDGET_UNLIMITED, BUDGET_UNLIMITED, 3, 9,
				       BUDGET_UNLIMITED, BUDGET_UNLIMITED};
	struct budget *root = budget_new(&limits, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 3, NULL, NULL);
	struct reservation a = {0}, b = {0};

	(void)state;
	assert_int_equal(budget_limits(child)->cost, BUDGET_UNLIMITED);
	assert_int_equal(budget_limits(child)->time_ms, BUDGET_UNLIMITED);
	assert_int_equal(budget_deadline(child), INT64_MAX);
	assert_int_equal(budget_remaining_ms(child), BUDGET_UNLIMITED);
	assert_true(budget_reserve(child, &a, (struct rlmd_amount){INT64_MAX, INT64_MAX}, NULL));
	assert_true(budget_reserve(child, &b, (struct rlmd_amount){INT64_MAX, 5}, NULL));
	assert_int_equal(budget_remaining(root).cost, BUDGET_UNLIMITED);
	account_settle(&a, (struct rlmd_amount){INT64_MAX, INT64_MAX});
	account_drop(&b);
	assert_int_equal(budget_overrun(root).cost, 0);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);
	budget_free(child);
	budget_free(pool);
	assert_int_equal(budget_iteration_block(root, NULL), RLMD_STOP_NONE);
	assert_int_equal(budget_remaining(root).tokens, BUDGET_UNLIMITED);
	budget_free(root);
}

/* Time that the clock takes back is not given away, nor is any lost that it jumps over. */
static void test_clock_jumps(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool, *child;
	int64_t began = now;

	(void)state;
	now = began - 100000;
	assert_int_equal(budget_elapsed_ms(root), 0);
	assert_int_equal(budget_remaining_ms(root), 300000);
	pool = budget_new_pool(root);
	child = budget_new_child(pool, 1, 1, NULL, NULL);
	assert_int_equal(budget_limits(child)->time_ms, 150000);
	assert_true(budget_deadline(child) < budget_deadline(root));
	now = began + 1000000000;
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_TIME);
	assert_int_equal(budget_subcall_block(root, 0, NULL), RLMD_STOP_MAX_TIME);
	budget_free(child);
	budget_free(pool);
	pool = budget_new_pool(root);
	assert_int_equal(budget_limits(pool)->time_ms, 0);
	budget_free(pool);
	budget_free(root);
}

/* Bad limits and bad bills: nothing is granted that is not there, nothing is divided by zero. */
static void test_bad_numbers(void **state)
{
	struct budget_limits limits = {-5, -5, -5, -5, -5, -5, -5};
	struct budget *root = budget_new(&limits, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 1, NULL, NULL);
	struct reservation reservation = {0};

	(void)state;
	assert_int_not_equal(budget_iteration_block(root, NULL), RLMD_STOP_NONE);
	assert_int_not_equal(budget_subcall_block(root, 0, NULL), RLMD_STOP_NONE);
	assert_int_not_equal(budget_iteration_block(child, NULL), RLMD_STOP_NONE);
	assert_false(budget_reserve(root, &reservation, (struct rlmd_amount){0}, NULL));
	assert_int_equal(budget_remaining(child).cost, 0);
	assert_int_equal(budget_remaining_ms(child), 0);
	assert_int_equal(budget_remaining_iterations(child), 0);
	budget_free(child);
	budget_free(pool);
	budget_free(root);

	root = budget_new(&defaults, NULL, NULL);
	assert_true(budget_reserve(root, &reservation, (struct rlmd_amount){100, 100}, NULL));
	account_settle(&reservation, (struct rlmd_amount){INT64_MIN, -1});
	assert_int_equal(budget_remaining(root).cost, 10000);
	assert_int_equal(budget_remaining(root).tokens, 500000);
	assert_int_equal(budget_overrun(root).cost, 0);
	budget_free(root);
}

/*
 * The example of docs/budget.md, number for number: $1; $3 for a million tokens of input, $15
 * of output.
 */
static int64_t micro(int64_t dollars)
{
	return dollars * (MONEY_DOLLAR / 1000000);
}

static struct rlmd_amount price(int64_t input, int64_t output)
{
	return (struct rlmd_amount){micro(3 * input + 15 * output), input + output};
}

static void keep(struct reservation *reserve, struct budget *budget, int64_t cost)
{
	assert_true(budget_reserve(budget, reserve, (struct rlmd_amount){.cost = cost}, NULL));
}

static void bill(struct reservation *reservation, struct budget *budget, int64_t input,
		 int64_t output)
{
	struct rlmd_amount amount = price(input, output);

	account_settle(reservation, amount);
	budget_count_call(budget, &(struct budget_usage){.cost = amount.cost,
							 .tokens = amount.tokens,
							 .input_tokens = input,
							 .output_tokens = output,
							 .llm_calls = 1,
							 .cost_complete = true});
}

/* All of what else a sub-run spends, in one call that was reserved as it is billed. */
static void spend_rest(struct budget *budget, int64_t cost)
{
	struct reservation reservation = {0};

	assert_true(budget_reserve(budget, &reservation, (struct rlmd_amount){.cost = cost}, NULL));
	account_settle(&reservation, (struct rlmd_amount){.cost = cost});
	budget_count_call(budget, &(struct budget_usage){.cost = cost, .cost_complete = true});
}

static void example_first_turn(struct budget *root, struct estimator *estimator)
{
	struct reservation reservation = {0};
	int64_t input = estimator_input(estimator, 4000, 14000, 2);

	assert_int_equal(input, 8032);
	assert_true(budget_reserve(root, &reservation,
				   price(input, estimator_output(estimator, 8192)), NULL));
	assert_int_equal(reservation.most.cost, micro(146976));
	assert_int_equal(budget_remaining(root).cost, micro(753024));
	bill(&reservation, root, 5000, 3000);
	estimator_learn_input(estimator, 4000, 5000);
	estimator_learn_output(estimator, ESTIMATOR_TURN, 8192, 3000);
	assert_int_equal(budget_usage(root)->cost, micro(60000));
	assert_int_equal(budget_remaining(root).cost, micro(840000));
}

static void example_early(struct budget *child, struct estimator *estimator)
{
	struct reservation reserve = {0}, reservation = {0};
	int64_t input = estimator_input(estimator, 1500, 5500, 2), output;

	keep(&reserve, child, price(estimator_input(estimator, 943, INT64_MAX, 2), 500).cost);
	assert_int_equal(reserve.most.cost, micro(12000));
	assert_int_equal(input, 2367);
	assert_false(budget_reserve(child, &reservation, price(input, 8192), NULL));
	output = (budget_remaining(child).cost - price(input, 0).cost) / price(0, 1).cost;
	assert_int_equal(output, 5726);
	assert_true(budget_reserve(child, &reservation, price(input, output), NULL));
	assert_int_equal(reservation.most.cost, micro(92991));
	assert_int_equal(budget_remaining(child).cost, micro(9));
	bill(&reservation, child, 1800, 1040);
	estimator_learn_input(estimator, 1500, 1800);
	assert_int_equal(budget_usage(child)->cost, micro(21000));
	account_drop(&reserve);
}

/* Spends what it has to the end, and is asked for its answer. */
static void example_forced(struct budget *child)
{
	struct reservation reserve = {0};

	keep(&reserve, child, micro(12000));
	spend_rest(child, micro(93000));
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_COST);
	account_drop(&reserve);
	spend_rest(child, micro(9000));
}

static void example_batch(struct budget *root, struct estimator *estimator)
{
	struct warnings warnings = {0};
	struct budget *pool, *children[4];

	assert_null(budget_scarce(root, 20));
	pool = budget_new_pool(root);
	assert_int_equal(budget_limits(pool)->cost, micro(420000));
	assert_int_equal(budget_remaining(root).cost, micro(420000));
	for (int i = 0; i < 3; i++) {
		children[i] = budget_new_child(pool, 1, 4 - i, on_warning, &warnings);
		assert_int_equal(budget_limits(children[i])->cost, micro(105000));
		assert_int_equal(budget_limits(children[i])->max_iterations, 15);
	}
	example_early(children[0], estimator);
	budget_free(children[0]);
	assert_int_equal(budget_remaining(pool).cost, micro(189000));
	children[3] = budget_new_child(pool, 1, 1, NULL, NULL);
	assert_int_equal(budget_limits(children[3])->cost, micro(189000));

	spend_rest(children[1], micro(84000));
	assert_string_equal(warnings.text, "Cost at 80% of budget;");
	example_forced(children[2]);
	spend_rest(children[3], micro(50000));
	assert_int_equal(budget_usage(pool)->cost, micro(257000));
	assert_int_equal(budget_remaining(root).cost, micro(420000));
	for (int i = 1; i < 4; i++)
		budget_free(children[i]);
	budget_free(pool);
	assert_int_equal(budget_usage(root)->cost, micro(317000));
	assert_int_equal(budget_remaining(root).cost, micro(583000));
}

/* The reserve becomes the price of the whole conversation. */
static void example_reserve(struct budget *root, struct estimator *estimator,
			    struct reservation *reserve)
{
	int64_t input = estimator_input(estimator, 6000 + 943, INT64_MAX, 2);
	int64_t output = estimator_ample(estimator, ESTIMATOR_TURN, 4096);

	assert_int_equal(input, 10838);
	assert_int_equal(output, 3750);
	account_drop(reserve);
	keep(reserve, root, price(input, output).cost);
	assert_int_equal(reserve->most.cost, micro(88764));
	assert_int_equal(budget_remaining(root).cost, micro(594236));
}

static void example_overrun(struct budget *root, struct estimator *estimator)
{
	struct reservation reservation = {0};
	int64_t input = estimator_input(estimator, 6000, 21000, 4), share;

	assert_int_equal(input, 9402);
	share = (budget_remaining(root).cost / 8 - price(input, 0).cost) / price(0, 1).cost;
	assert_int_equal(share, 3071);
	assert_int_equal(estimator_limit(estimator, ESTIMATOR_TURN, 8192, share), 8192);
	assert_true(budget_reserve(root, &reservation,
				   price(input, estimator_output(estimator, 8192)), NULL));
	assert_int_equal(reservation.most.cost, micro(151086));
	assert_int_equal(budget_remaining(root).cost, micro(443150));
	bill(&reservation, root, 7000, 10240);
	estimator_learn_output(estimator, ESTIMATOR_TURN, 8192, 10240);
	assert_int_equal(budget_overrun(root).cost, micro(23514));
	assert_int_equal(budget_overrun(root).tokens, 0);
	assert_int_equal(budget_remaining(root).cost, micro(419636));
	assert_int_equal(estimator_output(estimator, 8192), 10240);
}

static void test_worked_example(void **state)
{
	struct budget_limits limits = {
		micro(1000000), BUDGET_UNLIMITED, 300000, 2, 30, 10000, 1000};
	struct budget *root = budget_new(&limits, NULL, NULL);
	struct budget *first, *second;
	struct reservation reserve = {0};
	struct estimator estimator = {0};

	(void)state;
	keep(&reserve, root, micro(100000));
	assert_int_equal(budget_remaining(root).cost, micro(900000));
	example_first_turn(root, &estimator);
	example_batch(root, &estimator);
	example_reserve(root, &estimator, &reserve);
	example_overrun(root, &estimator);

	first = budget_new_pool(root);
	assert_int_equal(budget_remaining(root).cost, micro(209818));
	assert_null(budget_scarce(root, 20));
	second = budget_new_pool(root);
	assert_int_equal(budget_remaining(root).cost, micro(104909));
	assert_string_equal(budget_scarce(root, 20), "cost");
	budget_free(second);
	budget_free(first);
	account_drop(&reserve);
	assert_int_equal(budget_usage(root)->cost, micro(491600));
	assert_int_equal(budget_remaining(root).cost, micro(508400));
	budget_free(root);
}

/* The bills of an earlier attempt at the work are spent here as it was there: of the limits on
 * money and on calls, and of the parent's, too, as far as it is more than was granted. */
static void test_what_was_had_before(void **state)
{
	struct budget *root = budget_new(&defaults, NULL, NULL);
	struct budget *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 1, NULL, NULL);

	(void)state;
	assert_int_equal(budget_remaining(root).cost, 5000);
	budget_count_again(child, &(struct budget_usage){.cost = 6000,
							 .tokens = 100,
							 .llm_calls = 39,
							 .cost_complete = true});
	assert_int_equal(budget_remaining(child).cost, 0);
	assert_int_equal(budget_remaining(pool).cost, 0);
	assert_int_equal(budget_remaining(root).cost, 4000);
	assert_int_equal(budget_usage(root)->journaled_cost, 6000);
	assert_int_equal(budget_usage(root)->journaled_calls, 39);
	assert_true(budget_admit_call(root, NULL));
	assert_false(budget_admit_call(root, NULL));
	budget_free(child);
	budget_free(pool);
	assert_int_equal(budget_remaining(root).cost, 4000);
	budget_free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_settle_drop),
		cmocka_unit_test(test_block_reasons),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_child_limits),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_subruns_limit),
		cmocka_unit_test(test_calls_limit),
		cmocka_unit_test(test_scarce),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_overdraft),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_warning_of_a_jump),
		cmocka_unit_test(test_warnings_of_a_tree),
		cmocka_unit_test(test_warning_extremes),
		cmocka_unit_test(test_spend_nothing),
		cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_clock_jumps),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_worked_example),
		cmocka_unit_test(test_what_was_had_before),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}

/* Accounts above a job: limits that several share, whose they are, and what is kept of them. */
#include "budget/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "budget/budget.h"

static const struct budget_limits unlimited = {
	.cost = BUDGET_UNLIMITED,
	.tokens = BUDGET_UNLIMITED,
	.time_ms = BUDGET_UNLIMITED,
	.max_depth = 3,
	.max_iterations = 30,
	.calls = BUDGET_UNLIMITED,
	.subruns = BUDGET_UNLIMITED,
};

int64_t clock_ms(void)
{
	return 1000;
}

static struct rlmd_account *account(const char *name, int64_t cost, int64_t tokens,
				    struct rlmd_account *above)
{
	const struct rlmd_account_limits limits = {sizeof limits, cost, tokens};
	struct rlmd_account *made = rlmd_account_new(name, &limits, above, NULL);

	assert_non_null(made);
	return made;
}

static struct budget *job_below(struct rlmd_account *above)
{
	struct budget_limits limits = unlimited;

	limits.above = above;
	return budget_new(&limits, NULL, NULL);
}

static struct rlmd_spending saved(const struct rlmd_account *of)
{
	struct rlmd_spending spending = {.size = sizeof spending};

	assert_true(rlmd_account_save(of, &spending, NULL));
	return spending;
}

/* A reservation is made in all accounts above, and settled there. */
static void test_levels(void **state)
{
	struct rlmd_account *day = account("today", 10000, 0, NULL);
	struct rlmd_account *tenant = account("tenant a", 0, 500, day);
	struct rlmd_account *batch = account("batch 7", 6000, 0, tenant);
	struct rlmd_charge *reservation;

	(void)state;
	assert_int_equal(rlmd_account_remaining(batch).cost, 6000);
	assert_int_equal(rlmd_account_remaining(batch).tokens, 500);
	assert_true(rlmd_account_remaining(day).tokens == RLMD_UNLIMITED);
	reservation = rlmd_account_reserve(batch, (struct rlmd_amount){4000, 200}, NULL);
	assert_non_null(reservation);
	assert_int_equal(rlmd_account_remaining(batch).cost, 2000);
	assert_int_equal(rlmd_account_remaining(tenant).tokens, 300);
	assert_int_equal(rlmd_account_remaining(tenant).cost, 6000); /* today's rest */
	rlmd_charge_settle(reservation, (struct rlmd_amount){1000, 50});
	assert_int_equal(rlmd_account_remaining(batch).cost, 5000);
	assert_int_equal(rlmd_account_remaining(day).cost, 9000);
	assert_int_equal(rlmd_account_remaining(tenant).tokens, 450);
	assert_int_equal(saved(day).cost, 1000);
	assert_int_equal(saved(day).tokens, 50);
	assert_int_equal(saved(day).calls, 1);
	rlmd_charge_drop(rlmd_account_reserve(batch, (struct rlmd_amount){5000, 450}, NULL));
	assert_int_equal(rlmd_account_remaining(batch).cost, 5000);
	rlmd_account_unref(batch);
	rlmd_account_unref(tenant);
	rlmd_account_unref(day);
}

/* The account that was short is named, in words and as a value, and nothing is held anywhere. */
static void test_who_was_short(void **state)
{
	struct rlmd_account *day = account("today", 100, 0, NULL);
	struct rlmd_account *batch = account("batch 7", 1000, 20, day);
	struct rlmd_error err = {0};

	(void)state;
	assert_null(rlmd_account_reserve(batch, (struct rlmd_amount){1, 21}, &err));
	assert_int_equal(err.kind, RLMD_ERROR_BUDGET);
	assert_int_equal(err.stop, RLMD_STOP_MAX_TOKENS);
	assert_string_equal(err.text, "Token budget exhausted (the limit of batch 7)");
	assert_null(rlmd_account_reserve(batch, (struct rlmd_amount){101, 20}, &err));
	assert_int_equal(err.stop, RLMD_STOP_MAX_COST);
	assert_string_equal(err.text, "Cost budget exhausted (the limit of today)");
	assert_int_equal(saved(batch).reserved_cost, 0);
	assert_int_equal(saved(day).reserved_tokens, 0);
	rlmd_account_unref(day);
	assert_string_equal(rlmd_account_name(batch), "batch 7");
	rlmd_account_unref(batch);
}

static void use(struct budget *budget, int64_t cost, int64_t tokens)
{
	struct reservation reservation = {0};

	assert_true(budget_reserve(budget, &reservation, (struct rlmd_amount){cost, tokens}, NULL));
	account_settle(&reservation, (struct rlmd_amount){cost, tokens});
	budget_count_call(budget, &(struct budget_usage){.cost = cost,
							 .tokens = tokens,
							 .llm_calls = 1,
							 .cost_complete = true});
}

/* Two jobs of one batch: neither sees more than is left of it, and the words say whose it was. */
static void test_jobs(void **state)
{
	struct rlmd_account *batch = account("batch 7", 1000, 0, NULL);
	struct budget *one = job_below(batch), *other = job_below(batch);
	struct reservation reservation = {0};
	struct rlmd_error err = {0};

	(void)state;
	assert_int_equal(budget_remaining(one).cost, 1000);
	assert_true(budget_reserve(one, &reservation, (struct rlmd_amount){600, 1}, NULL));
	assert_int_equal(budget_remaining(other).cost, 400);
	assert_int_equal(budget_unspent(other).cost, 1000);
	account_drop(&reservation);
	account_drop(&reservation);
	assert_int_equal(budget_remaining(other).cost, 1000);
	use(one, 700, 10);
	assert_int_equal(budget_iteration_block(other, &err), RLMD_STOP_NONE);
	assert_false(budget_reserve(other, &reservation, (struct rlmd_amount){301, 0}, &err));
	assert_string_equal(err.text, "Cost budget exhausted (the limit of batch 7)");
	assert_null(reservation.account);
	use(other, 300, 10);
	assert_int_equal(budget_iteration_block(one, &err), RLMD_STOP_MAX_COST);
	assert_string_equal(err.text, "Cost budget exhausted (the limit of batch 7)");
	assert_int_equal(budget_subcall_block(other, 0, &err), RLMD_STOP_MAX_COST);
	assert_int_equal(saved(batch).calls, 2);
	assert_int_equal(budget_usage(one)->llm_calls, 1); /* counts stay with the job */
	budget_free(one);
	budget_free(other);
	rlmd_account_unref(batch);
}

/* A sub-run reserves in the accounts above, too; what is granted to it does not. */
static void test_sub_runs(void **state)
{
	struct rlmd_account *batch = account("batch 7", 1000, 0, NULL);
	struct budget *root = job_below(batch), *pool = budget_new_pool(root);
	struct budget *child = budget_new_child(pool, 1, 1, NULL, NULL);

	(void)state;
	assert_int_equal(budget_limits(child)->cost, 500); /* half of what there was */
	assert_int_equal(saved(batch).reserved_cost, 0);
	use(child, 200, 5);
	assert_int_equal(saved(batch).cost, 200);
	use(root, 700, 5); /* of the batch, not of a budget of its own */
	assert_int_equal(budget_remaining(child).cost, 100);
	use(child, 100, 5);
	assert_int_equal(budget_iteration_block(child, NULL), RLMD_STOP_MAX_COST);
	rlmd_account_unref(batch); /* the job still pays out of it */
	budget_free(child);
	budget_free(pool);
	assert_int_equal(saved(budget_limits(root)->above).cost, 1000);
	budget_free(root);
}

/* An overrun blocks everybody, until it is made good. */
static void test_overrun(void **state)
{
	struct rlmd_account *batch = account("batch 7", 1000, 0, NULL);
	struct budget *job = job_below(batch);
	struct reservation reservation = {0}, held = {0};
	struct rlmd_error err = {0};

	(void)state;
	assert_true(budget_reserve(job, &held, (struct rlmd_amount){400, 0}, NULL));
	assert_true(budget_reserve(job, &reservation, (struct rlmd_amount){500, 0}, NULL));
	account_settle(&reservation, (struct rlmd_amount){800, 0});
	assert_int_equal(saved(batch).overrun_cost, 300);
	assert_int_equal(rlmd_account_remaining(batch).cost, 0);
	assert_null(rlmd_account_reserve(batch, (struct rlmd_amount){0, 0}, &err));
	assert_string_equal(err.text, "Cost budget exhausted (the limit of batch 7)");
	account_drop(&held);
	assert_int_equal(rlmd_account_remaining(batch).cost, 200);
	rlmd_charge_drop(rlmd_account_reserve(batch, (struct rlmd_amount){200, 0}, &err));
	budget_free(job);
	rlmd_account_unref(batch);
}

/* LIB-25 of an account: what is free goes on, what has a price does not. */
static void test_spend_nothing(void **state)
{
	struct rlmd_account *none = account("tenant b", RLMD_NOTHING, RLMD_UNLIMITED, NULL);
	struct budget *job = job_below(none);
	struct reservation reservation = {0};

	(void)state;
	use(job, 0, 1000);
	assert_int_equal(budget_iteration_block(job, NULL), RLMD_STOP_NONE);
	assert_false(budget_reserve(job, &reservation, (struct rlmd_amount){1, 1}, NULL));
	budget_free(job);
	rlmd_account_unref(none);
}

/* A later process goes on where this one was; what nobody heard of any more is spent. */
static void test_restore(void **state)
{
	struct rlmd_account *batch = account("batch 7", 1000, 0, NULL), *later;
	struct budget *job = job_below(batch);
	struct reservation reservation = {0};
	struct rlmd_spending spending;
	struct rlmd_error err = {0};

	(void)state;
	use(job, 300, 30);
	assert_true(budget_reserve(job, &reservation, (struct rlmd_amount){100, 7}, NULL));
	spending = saved(batch);
	assert_int_equal(spending.reserved_cost, 100);
	assert_false(spending.estimated);
	later = account("batch 7", 1000, 0, NULL);
	assert_true(rlmd_account_restore(later, &spending, &err));
	assert_int_equal(saved(later).cost, 400);
	assert_int_equal(saved(later).tokens, 37);
	assert_int_equal(saved(later).calls, 1);
	assert_true(saved(later).estimated);
	assert_int_equal(rlmd_account_remaining(later).cost, 600);
	assert_false(rlmd_account_restore(later, &spending, &err)); /* it would count twice */
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	rlmd_account_unref(later);

	spending.reserved_cost = spending.reserved_tokens = 0; /* known: it came to nothing */
	later = account("batch 7", 200, 0, NULL);              /* and less is allowed by now */
	assert_true(rlmd_account_restore(later, &spending, NULL));
	assert_int_equal(rlmd_account_remaining(later).cost, 0);
	assert_null(rlmd_account_reserve(later, (struct rlmd_amount){0, 0}, NULL));
	rlmd_account_unref(later);
	account_drop(&reservation);
	budget_free(job);
	rlmd_account_unref(batch);
}

/* LIB-26: what cannot be is refused, and nothing aborts. */
static void test_bad_arguments(void **state)
{
	struct rlmd_account_limits limits = {.size = sizeof limits};
	struct rlmd_account *good = account("good", 0, 0, NULL);
	struct rlmd_spending spending = {.size = sizeof spending};
	struct rlmd_error err = {0};
	char longest[RLMD_ACCOUNT_NAME_MAX + 2] = "";

	(void)state;
	memset(longest, 'x', RLMD_ACCOUNT_NAME_MAX + 1);
	assert_null(rlmd_account_new(NULL, NULL, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_null(rlmd_account_new("", NULL, NULL, NULL));
	assert_null(rlmd_account_new("\xff", NULL, NULL, NULL));
	assert_null(rlmd_account_new(longest, NULL, NULL, NULL));
	limits.cost = -2;
	assert_null(rlmd_account_new("x", &limits, NULL, &err));
	assert_non_null(strstr(err.text, "negative"));
	limits = (struct rlmd_account_limits){.size = 4};
	assert_null(rlmd_account_new("x", &limits, NULL, NULL));
	rlmd_account_unref(NULL);
	assert_string_equal(rlmd_account_name(NULL), "");
	assert_int_equal(rlmd_account_remaining(NULL).cost, 0);
	assert_null(rlmd_account_reserve(NULL, (struct rlmd_amount){0}, &err));
	assert_null(rlmd_account_reserve(good, (struct rlmd_amount){-1, 0}, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	rlmd_charge_settle(NULL, (struct rlmd_amount){0});
	rlmd_charge_drop(NULL);
	rlmd_charge_settle(rlmd_account_reserve(good, (struct rlmd_amount){5, 5}, NULL),
			   (struct rlmd_amount){-7, -7});
	assert_int_equal(saved(good).cost, 0);
	assert_false(rlmd_account_save(NULL, &spending, NULL));
	assert_false(rlmd_account_save(good, NULL, NULL));
	spending.size = 8;
	assert_false(rlmd_account_save(good, &spending, &err));
	assert_false(rlmd_account_restore(NULL, &spending, NULL));
	assert_false(rlmd_account_restore(good, NULL, NULL));
	assert_false(rlmd_account_restore(good, &spending, NULL));
	rlmd_account_unref(good);
}

/* A later version's limit that is not known here would not be kept: it is refused. */
static void test_later_version(void **state)
{
	struct {
		struct rlmd_account_limits limits;
		int64_t calls;
	} later = {.limits = {.size = sizeof later, .cost = 10}};
	struct {
		struct rlmd_spending spending;
		int64_t more;
	} spending = {.spending = {.size = sizeof spending}, .more = 7};
	struct rlmd_account *good;
	struct rlmd_error err = {0};
	char *json;

	(void)state;
	good = rlmd_account_new("good", &later.limits, NULL, NULL);
	assert_int_equal(rlmd_account_remaining(good).cost, 10);
	later.calls = 3;
	assert_null(rlmd_account_new("bad", &later.limits, NULL, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_account_restore(good, &spending.spending, NULL));
	assert_true(rlmd_account_save(good, &spending.spending, NULL));
	assert_int_equal(spending.more, 0);
	assert_int_equal(spending.spending.size, sizeof spending);
	json = rlmd_spending_json(&spending.spending);
	assert_non_null(json);
	assert_false(
		rlmd_spending_from_json((struct rlmd_text){NULL, 5}, &spending.spending, &err));
	assert_true(rlmd_spending_from_json(rlmd_text_of(json), &spending.spending, NULL));
	free(json);
	rlmd_account_unref(good);
}

/* Sums saturate, and a saturated sum gives back no more than it had. */
static void test_huge(void **state)
{
	struct rlmd_account *huge = account("huge", RLMD_UNLIMITED - 1, 0, NULL);
	struct rlmd_amount most = {INT64_MAX - 1, INT64_MAX};
	struct rlmd_charge *one = rlmd_account_reserve(huge, most, NULL);
	struct rlmd_account *later = account("later", 5, 5, NULL);
	struct rlmd_spending spending = {.size = sizeof spending,
					 .cost = INT64_MAX,
					 .reserved_cost = INT64_MAX,
					 .tokens = INT64_MAX,
					 .reserved_tokens = 1};

	(void)state;
	assert_non_null(one);
	assert_null(rlmd_account_reserve(huge, (struct rlmd_amount){1, 0}, NULL));
	rlmd_charge_settle(one, (struct rlmd_amount){INT64_MAX, INT64_MAX});
	assert_int_equal(rlmd_account_remaining(huge).cost, 0);
	assert_true(rlmd_account_restore(later, &spending, NULL));
	assert_true(saved(later).cost == INT64_MAX);
	assert_int_equal(rlmd_account_remaining(later).tokens, 0);
	rlmd_account_unref(later);
	rlmd_account_unref(huge);
}

static void note(void *owner)
{
	++*(int *)owner;
}

/* Reservations of calls in flight block nobody, and may be waited for, wherever money is short. */
static void test_waiting(void **state)
{
	struct rlmd_account *day = account("today", 0, 100, NULL);
	struct rlmd_account *one = account("one", 0, 0, day), *other = account("other", 0, 0, day);
	struct rlmd_charge *all = rlmd_account_reserve(one, (struct rlmd_amount){0, 90}, NULL);
	const struct rlmd_amount much = {0, 11};
	const struct rlmd_account *who = NULL;
	struct account_waiter waiter = {0}, gone = {0};
	struct reservation held = {0}, sent = {0};
	int told = 0;

	(void)state;
	assert_null(account_awaited(other, much)); /* nobody will give it back */
	account_reserve(one, &sent, (struct rlmd_amount){0});
	account_send(&sent);
	assert_null(account_awaited(other, (struct rlmd_amount){0, 10}));
	assert_ptr_equal(account_awaited(other, much), day);
	account_reserve(other, &held, (struct rlmd_amount){0, 10});
	assert_int_equal(account_block(other, &who), RLMD_STOP_NONE);
	account_wait(day, &waiter, note, &told);
	account_wait(day, &gone, note, &told);
	account_wait_no_more(&gone);
	account_wait_no_more(&gone);
	rlmd_charge_drop(all);
	assert_int_equal(told, 0); /* the call's end is what counts */
	account_drop(&sent);
	assert_int_equal(told, 1);
	assert_null(waiter.account);
	account_drop(&held);

	account_reserve(one, &sent, (struct rlmd_amount){0});
	account_send(&sent);
	account_reserve(one, &held, (struct rlmd_amount){0});
	account_settle(&held, (struct rlmd_amount){0, 100});
	assert_int_equal(account_block(other, &who), RLMD_STOP_MAX_TOKENS); /* spent is spent */
	assert_ptr_equal(who, day);
	account_drop(&sent);
	assert_int_equal(told, 1);
	rlmd_account_unref(one);
	rlmd_account_unref(other);
	rlmd_account_unref(day);
}

/* A call cost more than was reserved for it. While another one is in flight, which may cost less,
 * nothing is blocked. */
static void test_overdrawn_for_a_while(void **state)
{
	struct rlmd_account *all = account("all", 0, 100, NULL);
	const struct rlmd_amount half = {0, 50};
	struct rlmd_charge *first = rlmd_account_reserve(all, half, NULL);
	struct rlmd_charge *second = rlmd_account_reserve(all, half, NULL);
	struct reservation sent = {0};
	const struct rlmd_account *who = NULL;

	(void)state;
	account_reserve(all, &sent, (struct rlmd_amount){0});
	account_send(&sent);
	rlmd_charge_settle(first, (struct rlmd_amount){0, 70});
	assert_int_equal(account_block(all, &who), RLMD_STOP_NONE);
	account_drop(&sent);
	assert_int_equal(account_block(all, &who), RLMD_STOP_MAX_TOKENS);
	rlmd_charge_settle(second, (struct rlmd_amount){0, 20});
	assert_int_equal(account_block(all, &who), RLMD_STOP_NONE);
	rlmd_account_unref(all);
}

static void note_lack(void *owner, struct rlmd_amount needed)
{
	*(struct rlmd_amount *)owner = needed;
}

/* Money at risk is covered beforehand; mere reservations are not. */
static void test_cover(void **state)
{
	struct rlmd_account *day = account("today", 0, 0, NULL), *one = account("one", 0, 0, day);
	struct rlmd_amount lack = {0}, call = {60, 6};
	struct rlmd_account_cover cover = {sizeof cover, {100, 1000}, note_lack, &lack};
	struct reservation held = {0}, sent = {0};
	struct account_waiter waiter = {0};
	int told = 0;

	(void)state;
	assert_null(account_uncovered(one, (struct rlmd_amount){INT64_MAX, INT64_MAX}));
	assert_true(rlmd_account_set_cover(day, &cover, NULL));
	account_reserve(one, &held, (struct rlmd_amount){1000, 0});
	assert_null(account_uncovered(one, call));
	assert_int_equal(lack.cost, 0);
	account_reserve(one, &sent, call);
	account_send(&sent); /* one more like it would not be covered */
	assert_int_equal(lack.cost, 120);
	assert_int_equal(lack.tokens, 12);
	assert_null(account_uncovered(one, (struct rlmd_amount){40, 0}));
	assert_ptr_equal(account_uncovered(one, (struct rlmd_amount){41, 0}), day);
	assert_int_equal(lack.cost, 101);
	account_wait(day, &waiter, note, &told);
	cover.amount.cost = 120;
	assert_true(rlmd_account_set_cover(day, &cover, NULL));
	assert_int_equal(told, 1);
	assert_null(account_uncovered(one, call));
	account_settle(&sent, (struct rlmd_amount){50, 5});
	assert_null(account_uncovered(one, call));
	assert_non_null(account_uncovered(one, (struct rlmd_amount){71, 0}));
	assert_true(rlmd_account_set_cover(day, NULL, NULL));
	assert_null(account_uncovered(one, (struct rlmd_amount){INT64_MAX, 0}));
	account_drop(&held);

	cover.amount.tokens = -1;
	assert_false(rlmd_account_set_cover(day, &cover, NULL));
	cover.amount.tokens = 0;
	cover.lacks = NULL;
	assert_false(rlmd_account_set_cover(day, &cover, NULL));
	cover.lacks = note_lack;
	assert_false(rlmd_account_set_cover(NULL, &cover, NULL));
	cover.size = 1;
	assert_false(rlmd_account_set_cover(day, &cover, NULL));
	rlmd_account_unref(one);
	rlmd_account_unref(day);
}

static void test_other_limits(void **state)
{
	struct rlmd_account *day = account("today", 100, 0, NULL);
	struct rlmd_account_limits limits = {sizeof limits, 150, 0};
	struct account_waiter waiter = {0};
	struct rlmd_charge *reservation = rlmd_account_reserve(day, (struct rlmd_amount){90, 0},
							       NULL);
	int told = 0;

	(void)state;
	account_wait(day, &waiter, note, &told);
	assert_true(rlmd_account_set_limits(day, &limits, NULL));
	assert_int_equal(told, 1);
	assert_int_equal(rlmd_account_remaining(day).cost, 60);
	limits.cost = 80;
	assert_true(rlmd_account_set_limits(day, &limits, NULL));
	assert_int_equal(rlmd_account_remaining(day).cost, 0);
	assert_null(rlmd_account_reserve(day, (struct rlmd_amount){0}, NULL)); /* overdrawn */
	rlmd_charge_settle(reservation, (struct rlmd_amount){30, 0});
	assert_int_equal(rlmd_account_remaining(day).cost, 50);
	limits.cost = -2;
	assert_false(rlmd_account_set_limits(day, &limits, NULL));
	limits.cost = 1;
	assert_false(rlmd_account_set_limits(NULL, &limits, NULL));
	rlmd_account_unref(day);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),        cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_who_was_short), cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_sub_runs),      cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_spend_nothing), cmocka_unit_test(test_restore),
		cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_later_version),
		cmocka_unit_test(test_huge),          cmocka_unit_test(test_cover),
		cmocka_unit_test(test_other_limits),  cmocka_unit_test(test_overdrawn_for_a_while),
	};

	return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}

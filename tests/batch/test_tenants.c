/* batch/tenants: what is said of them, and what cannot be said. */
#include "batch/tenants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/money.h"

static void set(struct tenants *tenants, const char *tenant, const char *setting, const char *value)
{
	struct rlmd_error err;

	if (!tenants_set(tenants, tenant, setting, value, &err))
		fail_msg("%s", err.text);
}

static void test_all(void **state)
{
	struct tenants tenants = {0};
	const struct tenant *tenant;
	struct rlmd_error err;

	(void)state;
	set(&tenants, "acme", "provider", "openai");
	set(&tenants, "acme", "provider", "anthropic");
	set(&tenants, "acme", "key-file", "/etc/rlmd/acme.key");
	set(&tenants, "acme", "models", "old");
	set(&tenants, "acme", "models", "claude-*, qwen3:14b");
	set(&tenants, "acme", "weight", "4");
	set(&tenants, "b.2", "weight", "1000");
	set(&tenants, "acme", "max-parallel", "8");
	set(&tenants, "acme", "calls-per-minute", "2k");
	set(&tenants, "acme", "max-cost", "0");
	set(&tenants, "acme", "max-tokens", "5M");
	set(&tenants, "acme", "max-cost-per-day", "2.5");
	set(&tenants, "acme", "worker-memory", "512M");
	set(&tenants, "acme", "require", "L3");
	assert_int_equal(tenants.count, 2);
	tenant = tenants_find(&tenants, "acme", &err);
	assert_string_equal(tenant->provider, "anthropic");
	assert_string_equal(tenant->key_file, "/etc/rlmd/acme.key");
	assert_int_equal(tenant->models.count, 2);
	assert_int_equal(tenant->weight, 4);
	assert_int_equal(tenant->max_parallel, 8);
	assert_int_equal(tenant->calls_per_minute, 2000);
	assert_int_equal(tenant->max_cost, 0);
	assert_int_equal(tenant->max_tokens, 5000000);
	assert_true(tenant->max_cost_per_day == 5 * MONEY_DOLLAR / 2);
	assert_int_equal(tenant->worker_memory, 512 << 20);
	assert_int_equal(tenant->require, 3);
	assert_true(tenants_may_use(tenant, "claude-opus-5"));
	assert_true(tenants_may_use(tenant, "qwen3:14b"));
	assert_false(tenants_may_use(tenant, "qwen3:1"));
	assert_false(tenants_may_use(tenant, "old"));

	tenant = tenants_find(&tenants, "b.2", &err);
	assert_null(tenant->provider);
	assert_int_equal(tenant->weight, 1000);
	assert_int_equal(tenant->max_cost, -1);
	assert_int_equal(tenant->max_tokens, 0);
	assert_int_equal(tenant->require, 0);
	assert_true(tenants_may_use(tenant, "anything"));
	tenants_done(&tenants);
	assert_int_equal(tenants.count, 0);
}

static void test_refused(void **state)
{
	static const char *const table[][4] = {
		{"a", "wieght", "1", "a tenant has no 'wieght'; it has provider, key-file, models"},
		{"a", "model", "x", "stands above the first tenant, or under [exec]"},
		{"a", "provider", "", "provider: '' is empty"},
		{"a", "key-file", "\xff", "is not UTF-8"},
		{"a", "models", " ,, ", "models: names nothing"},
		{"a", "models", "\xff", "is not UTF-8"},
		{"a", "weight", "0", "weight: '0' is no number of a share from 1 to 1000"},
		{"a", "weight", "1.5", "is no number"},
		{"a", "weight", "-1", "is no number"},
		{"a", "max-parallel", "many", "max-parallel: 'many' is no number"},
		{"a", "calls-per-minute", "99999999999999999999", "is no number"},
		{"a", "max-cost", "-5", "max-cost: "},
		{"a", "max-cost", "5 dollars", "max-cost: "},
		{"a", "worker-memory", "1K", "worker-memory: '1K' is no number of bytes"},
		{"a", "require", "L5", "require: 'L5' is none of L1, L2, L3 and L4"},
		{"a", "require", "3", "'3' is none of"},
		{"", "weight", "1", "no tenant can be named ''"},
		{".a", "weight", "1", "a letter or digit first"},
		{"a b", "weight", "1", "no tenant can be named 'a b'"},
		{"../x", "weight", "1", "no tenant can be named"},
		{"12345678901234567890123456789012345678901", "weight", "1", "up to 40 letters"},
	};
	struct tenants tenants = {0};
	struct rlmd_error err;

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (tenants_set(&tenants, table[i][0], table[i][1], table[i][2], &err))
			fail_msg("taken: %s = %s", table[i][1], table[i][2]);
		assert_int_equal(err.kind, RLMD_ERROR_USAGE);
		if (!strstr(err.text, table[i][3]))
			fail_msg("%s", err.text);
	}
	tenants_done(&tenants);
}

/* A bad value takes no good one's place. */
static void test_kept(void **state)
{
	struct tenants tenants = {0};
	struct rlmd_error err;

	(void)state;
	set(&tenants, "a", "weight", "3");
	set(&tenants, "a", "models", "m");
	assert_false(tenants_set(&tenants, "a", "weight", "x", &err));
	assert_false(tenants_set(&tenants, "a", "models", ",", &err));
	assert_int_equal(tenants.items[0].weight, 3);
	assert_int_equal(tenants.items[0].models.count, 1);
	tenants_done(&tenants);
}

static void test_unknown(void **state)
{
	struct tenants tenants = {0};
	struct rlmd_error err;

	(void)state;
	assert_null(tenants_find(&tenants, "acme", &err));
	assert_int_equal(err.kind, RLMD_ERROR_INPUT);
	assert_non_null(strstr(err.text, "there is no tenant 'acme'; there are none; a section"));
	set(&tenants, "a", "weight", "3");
	set(&tenants, "b", "weight", "3");
	assert_null(tenants_find(&tenants, "acme", &err));
	assert_non_null(strstr(err.text, "there are a, b; a section [tenant NAME] of rlmd.conf"));
	tenants_done(&tenants);
}

static void test_users(void **state)
{
	struct tenants tenants = {0};

	(void)state;
	assert_null(tenants_of_user(&tenants, 0));
	set(&tenants, "a", "users", "no such user, 4242");
	set(&tenants, "b", "users", "root, 4242");
	set(&tenants, "c", "users", "0");
	assert_string_equal(tenants_of_user(&tenants, 4242)->name, "a");
	assert_string_equal(tenants_of_user(&tenants, 0)->name, "b");
	assert_null(tenants_of_user(&tenants, 42));
	tenants_done(&tenants);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_kept),  cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_users),
	};

	return cmocka_run_group_tests_name("tenants", tests, NULL, NULL);
}

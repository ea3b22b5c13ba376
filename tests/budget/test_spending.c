/* The spending of an account, as JSON: every number comes back as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rlmd/budget.h>

static const struct rlmd_spending some = {
	.size = sizeof some,
	.cost = 9007199254740993, /* no double has it */
	.tokens = 2,
	.calls = 3,
	.reserved_cost = 4,
	.reserved_tokens = INT64_MAX,
	.overrun_cost = 6,
	.overrun_tokens = 7,
	.estimated = true,
};

static bool reads(const char *json, struct rlmd_spending *ret, struct rlmd_error *err)
{
	*ret = (struct rlmd_spending){.size = sizeof *ret};
	return rlmd_spending_from_json((struct rlmd_text){json, strlen(json)}, ret, err);
}

static void test_there_and_back(void **state)
{
	char *json = rlmd_spending_json(&some);
	struct rlmd_spending read;

	(void)state;
	assert_string_equal(json, "{\"version\":1,\"cost\":9007199254740993,\"tokens\":2,"
				  "\"calls\":3,\"reservedCost\":4,"
				  "\"reservedTokens\":9223372036854775807,\"overrunCost\":6,"
				  "\"overrunTokens\":7,\"estimated\":true}");
	assert_true(reads(json, &read, NULL));
	assert_int_equal(read.size, sizeof read);
	assert_true(read.cost == some.cost && read.tokens == some.tokens);
	assert_true(read.calls == some.calls && read.estimated);
	assert_true(read.reserved_cost == some.reserved_cost);
	assert_true(read.reserved_tokens == some.reserved_tokens);
	assert_true(read.overrun_cost == some.overrun_cost);
	assert_true(read.overrun_tokens == some.overrun_tokens);
	free(json);
}

/* Members of a later version are passed over; those that an earlier one lacked are zero. */
static void test_other_members(void **state)
{
	struct rlmd_spending read;

	(void)state;
	assert_true(reads("{\"version\": 1, \"cost\": 1, \"tokens\": 2, \"calls\": 3, "
			  "\"joules\": 4.5}",
			  &read, NULL));
	assert_true(read.cost == 1 && read.tokens == 2 && read.calls == 3);
	assert_true(!read.reserved_cost && !read.estimated);
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"version\": 2, \"cost\": 1, \"tokens\": 2, \"calls\": 3}",
		"{\"version\": 1, \"cost\": 1, \"tokens\": 2}",
		"{\"version\": 1, \"cost\": 1.5, \"tokens\": 2, \"calls\": 3}",
		"{\"version\": 1, \"cost\": \"1\", \"tokens\": 2, \"calls\": 3}",
		"{\"version\": 1, \"cost\": -1, \"tokens\": 2, \"calls\": 3}",
		"{\"version\": 1, \"cost\": 9223372036854775808, \"tokens\": 2, \"calls\": 3}",
		"{\"version\": 1, \"cost\": 1, \"tokens\": 2, \"calls\": 3, \"reservedCost\": null}",
		"{\"version\": 1, \"cost\": 1, \"tokens\": 2, \"calls\": 3, \"estimated\": 1}",
		"{\"version\": 1, \"cost\": 1, \"tokens\": 2, \"calls\": 3} more",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct rlmd_spending read;
		struct rlmd_error err = {0};

		assert_false(reads(bad[i], &read, &err));
		assert_int_equal(err.kind, RLMD_ERROR_INPUT);
		assert_non_null(strstr(err.text, "a saved account"));
		assert_int_equal(read.cost, 0);
	}
}

static void test_bad_sizes(void **state)
{
	struct rlmd_spending small = {.size = 8};
	struct rlmd_error err = {0};

	(void)state;
	assert_null(rlmd_spending_json(NULL));
	assert_null(rlmd_spending_json(&small));
	assert_false(rlmd_spending_from_json((struct rlmd_text){"{}", 2}, &small, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
	assert_false(rlmd_spending_from_json((struct rlmd_text){"{}", 2}, NULL, NULL));
	small.size = sizeof small;
	assert_false(rlmd_spending_from_json((struct rlmd_text){NULL, 2}, &small, &err));
	assert_int_equal(err.kind, RLMD_ERROR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_other_members),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bad_sizes),
	};

	return cmocka_run_group_tests_name("spending", tests, NULL, NULL);
}

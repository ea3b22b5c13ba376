/* The values of requests and responses. */
#include "llm/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_usage_is_summed(void **state)
{
	struct llm_usage sum = {1, 2, 3, 4, 5, 6, false};
	const struct llm_usage more = {10, 20, 30, 40, 50, 60, true};

	(void)state;
	request_add_usage(&sum, &more);
	assert_int_equal(sum.input, 11);
	assert_int_equal(sum.output, 22);
	assert_int_equal(sum.cache_read, 33);
	assert_int_equal(sum.cache_write, 44);
	assert_int_equal(sum.cache_write_1h, 55);
	assert_int_equal(sum.reasoning, 66);
	assert_true(sum.estimated);
	request_add_usage(&sum, &(struct llm_usage){0});
	assert_true(sum.estimated);
}

/* Scripts of answers match by these names. */
static void test_kinds_have_their_names(void **state)
{
	static const struct {
		enum llm_kind kind;
		const char *name;
	} cases[] = {
		{LLM_TURN, "turn"},
		{LLM_QUERY, "llm_query"},
		{LLM_FORCED, "forced"},
		{LLM_DIRECT, "direct"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(request_kind_name(cases[i].kind), cases[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage_is_summed),
		cmocka_unit_test(test_kinds_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

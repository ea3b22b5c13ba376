/* Where an answer came from: names that programs read. */
#include "base/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_sources(void **state)
{
	(void)state;
	assert_string_equal(answer_source_name(ANSWER_MISSING), "error");
	assert_string_equal(answer_source_name(ANSWER_FINAL_DIRECT), "final_direct");
	assert_string_equal(answer_source_name(ANSWER_FINAL_VAR), "final_var");
	assert_string_equal(answer_source_name(ANSWER_FORCED), "forced");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}

/* cli/plan_result: the exit status and the sentence that operations come to. */
#include "cli/plan_result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text.h"

/* A letter an operation: succeeded, cancelled, failed for its budget, its network, another one. */
static json_t *result_of(const char *letters, const char *winner)
{
	json_t *results = json_object();

	for (size_t i = 0; letters[i]; i++) {
		const char c = letters[i], id[] = {(char)('a' + i), '\0'};
		const char *kind = c == 'b'   ? "budget"
				   : c == 'n' ? "network"
				   : c == 'd' ? "dependency"
					      : NULL;
		json_t *one = json_pack("{s:s, s:s}", "id", id, "status",
					c == 's'   ? "succeeded"
					: c == 'c' ? "cancelled"
						   : "failed");

		if (kind)
			json_object_set_new(
				one, "error",
				json_pack("{s:s, s:s}", "kind", kind, "message", "why"));
		json_object_set_new(results, id, one);
	}
	return json_pack("{s:o, s:s?}", "results", results, "winner", winner);
}

static void test_statuses(void **state)
{
	static const struct {
		const char *letters, *winner;
		int status;
		const char *text;
	} cases[] = {
		{"ss", NULL, 0, "2 operations"},
		{"s", NULL, 0, "1 operation"},
		{"sbn", "a", 0, "3 operations, 2 failed"},
		{"sn", NULL, 3, "2 operations, 1 failed"},
		{"nn", NULL, 5, "2 operations, 2 failed"},
		{"nd", NULL, 5, "2 operations, 2 failed"},
		{"sb", NULL, 6, "2 operations, 1 failed"},
		{"bn", NULL, 3, "2 operations, 2 failed"},
		{"cc", NULL, 0, "2 operations, 2 cancelled"},
		{"fcs", NULL, 3, "3 operations, 1 failed, 1 cancelled"},
		{"d", NULL, 3, "1 operation, 1 failed"},
		{"", NULL, 0, "0 operations"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *result = result_of(cases[i].letters, cases[i].winner);
		struct plan_tally tally = plan_result_tally(result);
		char *text = plan_result_text(&tally);

		assert_int_equal(plan_result_status(&tally), cases[i].status);
		assert_string_equal(text, cases[i].text);
		free(text);
		json_decref(result);
	}
}

/* An operation that failed because another one did is not the reason. */
static void test_the_first_failure(void **state)
{
	json_t *result = result_of("sdnb", NULL);
	struct plan_tally tally = plan_result_tally(result);
	struct rlmd_error err;

	(void)state;
	plan_result_error(&tally, &err);
	assert_string_equal(err.text, "3 of 4 operations failed; the first, 'c': why");
	json_decref(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_the_first_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

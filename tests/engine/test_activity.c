/* All that a job has under way: runs and calls, and how they are shown to its host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/activity.h"
#include "llm/request.h"

static void test_counts(void **state)
{
	const struct llm_request request = {0};
	struct activity root = {.run = "root"}, deep = {.run = "deep", .depth = 3};
	struct activity call = {&request, .depth = 5}, other = {&request, .depth = 6};
	struct activity_list list = TAILQ_HEAD_INITIALIZER(list);

	(void)state;
	assert_int_equal(activity_deepest(&list), 0);
	activity_begin(&list, &root);
	activity_begin(&list, &deep);
	activity_begin(&list, &call);
	activity_begin(&list, &other);
	assert_int_equal(activity_deepest(&list), 3); /* calls are no runs */
	assert_int_equal(activity_calls(&list), 0);
	call.sent = true;
	assert_int_equal(activity_calls(&list), 1);
	assert_ptr_equal(TAILQ_FIRST(&list), &root);
	activity_end(&list, &deep);
	assert_int_equal(activity_deepest(&list), 0);
	activity_end(&list, &call);
	assert_int_equal(activity_calls(&list), 0);
}

static void test_a_call(void **state)
{
	const struct llm_message messages[] = {{LLM_SYSTEM, text_of("be brief")},
					       {LLM_USER, text_of("which colour?")}};
	const struct llm_request request = {
		.model = "m", .messages = messages, .message_count = 2, .kind = LLM_QUERY};
	struct activity activity = {&request, .run = "run", .depth = 2, .turn = 4};
	struct rlmd_activity shown = activity_show(&activity);

	(void)state;
	assert_int_equal(shown.kind, RLMD_SUBCALL_LLM);
	assert_int_equal(shown.call, RLMD_MODEL_SUBCALL);
	assert_string_equal(shown.run, "run");
	assert_null(shown.parent);
	assert_int_equal(shown.depth, 2);
	assert_int_equal(shown.turn, 4);
	assert_string_equal(shown.model, "m");
	assert_true(text_equal(shown.prompt, "which colour?"));
	assert_true(shown.waits);
	activity.sent = true;
	assert_false(activity_show(&activity).waits);
}

static void test_a_run(void **state)
{
	const struct activity activity = {NULL,      "child", "parent", "weak", text_of("find it"),
					  .depth = 1};
	struct rlmd_activity shown = activity_show(&activity);

	(void)state;
	assert_int_equal(shown.kind, RLMD_SUBCALL_RUN);
	assert_string_equal(shown.run, "child");
	assert_string_equal(shown.parent, "parent");
	assert_string_equal(shown.model, "weak");
	assert_true(text_equal(shown.prompt, "find it"));
	assert_false(shown.waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_a_call),
		cmocka_unit_test(test_a_run),
	};

	return cmocka_run_group_tests_name("activity", tests, NULL, NULL);
}

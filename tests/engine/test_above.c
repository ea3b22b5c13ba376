/* Jobs that pay out of an account above them: what they are told where that one is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "engine/stage.h"
#include "fake/model.h"

enum { TOKENS = 12000 }; /* of the batch: a second turn is more than it has left */

static const char *brief(const struct llm_request *request)
{
	if (request->kind == LLM_FORCED)
		return "forced words";
	return request->turn ? "FINAL(the end)" : "```repl\nprint\n```";
}

/* Five times what was estimated, so that the next turn is too dear. */
static struct llm_usage dear(const struct llm_request *request)
{
	int64_t tokens = 0;

	for (size_t i = 0; i < request->message_count; i++)
		tokens += text_tokens(request->messages[i].text);
	return (struct llm_usage){.input = 5 * tokens, .output = 5};
}

static bool warned(const struct fixture *fixture, const char *words)
{
	const json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(fixture->result, "warnings"), i, warning)
		if (!strcmp(json_string_value(warning), words))
			return true;
	return false;
}

static const char *member(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static int64_t spent(const struct rlmd_account *account)
{
	struct rlmd_spending spending = {.size = sizeof spending};

	assert_true(rlmd_account_save(account, &spending, NULL));
	assert_int_equal(spending.reserved_tokens, 0);
	return spending.tokens;
}

/* The first job of a batch gets as far as the batch's tokens do, and the second one nowhere, while
 * somebody else holds their rest; neither has a limit of its own. */
static void test_a_batch_is_spent(void **state)
{
	const struct rlmd_account_limits limits = {sizeof limits, 0, TOKENS};
	struct rlmd_account *batch = rlmd_account_new("batch 7", &limits, NULL, NULL);
	struct stage_config config = usual;
	struct fixture fixture;
	struct rlmd_charge *rest;
	int64_t first;

	(void)state;
	fake_model = brief;
	fake_usage = dear;
	fake_attempts = 1;
	config.limits.cost = config.limits.tokens = BUDGET_UNLIMITED;
	config.account = batch;
	begin(&fixture, &config);
	drive(&fixture);
	assert_string_equal(member(fixture.result, "stopReason"), "max_tokens");
	assert_true(text_equal(output(&fixture), "forced words"));
	assert_true(warned(&fixture, "Budget exhausted, answer was forced"));
	assert_true(warned(&fixture, "Token budget exhausted (the limit of batch 7)"));
	assert_string_equal(rlmd_result_limited_by(rlmd_job_result(fixture.job)), "batch 7");
	first = used(&fixture, "tokens");
	end(&fixture);
	assert_true(first > 0);
	assert_int_equal(spent(batch), first);

	rest = rlmd_account_reserve(batch, rlmd_account_remaining(batch), NULL);
	assert_non_null(rest);
	begin(&fixture, &config);
	rlmd_account_unref(batch); /* the job has it */
	drive(&fixture);
	assert_string_equal(member(fixture.result, "stopReason"), "max_tokens");
	assert_non_null(strstr(member(json_object_get(fixture.result, "error"), "message"),
			       "Token budget exhausted (the limit of batch 7)"));
	assert_string_equal(rlmd_result_limited_by(rlmd_job_result(fixture.job)), "batch 7");
	assert_int_equal(used(&fixture, "tokens"), 0);
	rlmd_charge_drop(rest);
	assert_int_equal(spent(batch), first);
	end(&fixture);
	fake_usage = NULL;
	fake_attempts = 0;
}

static const char * final(const struct llm_request *request)
{
	(void)request;
	return "FINAL(the end)";
}

/* Until there is nothing to do but to wait. */
static void turns(struct fixture *fixture)
{
	for (int i = 0; i < 1000; i++)
		event_base_loop(fixture->base, EVLOOP_NONBLOCK);
}

/* Each in an engine of its own, so that one stands still while the other goes on. */
struct pair {
	struct fixture first, second;
};

/* The first job's call is in flight and has reserved what there is; the second job has nothing left
 * to do but to wait for it. */
static void begin_pair(struct pair *pair)
{
	const struct rlmd_account_limits limits = {sizeof limits, 0, TOKENS};
	struct rlmd_account *batch = rlmd_account_new("batch 7", &limits, NULL, NULL);
	struct stage_config config = usual;

	fake_model = final;
	config.limits.cost = config.limits.tokens = BUDGET_UNLIMITED;
	config.account = batch;
	begin(&pair->first, &config);
	fake_holds = true;
	turns(&pair->first);
	assert_int_equal(fake_calls, 1);
	fake_holds = false;
	begin(&pair->second, &config);
	turns(&pair->second);
	assert_int_equal(rlmd_account_remaining(batch).tokens, 0);
	assert_int_equal(pair->second.results, 0);
	assert_int_equal(fake_calls, 1);
	rlmd_account_unref(batch);
}

static void end_pair(struct pair *pair)
{
	assert_int_equal(pair->first.results, 1);
	assert_int_equal(pair->second.results, 1);
	end(&pair->first);
	end(&pair->second);
}

/* Most of what a call in flight has reserved comes back: so that of another job waits for its end,
 * whichever that is, as calls of one job do. */
static void test_a_call_waits_for_other_jobs(void **state)
{
	struct pair pair;

	(void)state;
	begin_pair(&pair);
	fake_answer_held();
	drive(&pair.first);
	drive(&pair.second);
	assert_true(text_equal(output(&pair.first), "the end"));
	assert_true(text_equal(output(&pair.second), "the end"));
	assert_string_equal(member(pair.second.result, "stopReason"), "final");
	end_pair(&pair);

	begin_pair(&pair);
	rlmd_job_cancel(pair.first.job);
	drive(&pair.first);
	drive(&pair.second);
	assert_true(text_equal(output(&pair.second), "the end"));
	end_pair(&pair);
}

static void test_what_waits_for_other_jobs_may_end(void **state)
{
	struct pair pair;

	(void)state;
	begin_pair(&pair);
	rlmd_job_cancel(pair.second.job);
	drive(&pair.second);
	assert_int_equal(fake_calls, 1);
	fake_answer_held();
	drive(&pair.first);
	assert_true(text_equal(output(&pair.first), "the end"));
	end_pair(&pair);

	begin_pair(&pair);
	rlmd_job_free(pair.second.job);
	fake_answer_held();
	drive(&pair.first);
	assert_true(text_equal(output(&pair.first), "the end"));
	end(&pair.first);
	end(&pair.second);
}

static void note_lack(void *owner, struct rlmd_amount needed)
{
	*(struct rlmd_amount *)owner = needed;
}

/* Nothing is sent before what it may cost is covered, and no limit stands in its way. */
static void test_a_call_waits_for_its_cover(void **state)
{
	struct rlmd_account *batch = rlmd_account_new("batch 7", NULL, NULL, NULL);
	struct rlmd_amount lack = {0};
	struct rlmd_account_cover cover = {sizeof cover, {0}, note_lack, &lack};
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	fake_model = final;
	config.account = batch;
	assert_true(rlmd_account_set_cover(batch, &cover, NULL));
	for (int end_it = 0; end_it < 2; end_it++) {
		begin(&fixture, &config);
		turns(&fixture);
		assert_int_equal(fake_calls, 0);
		assert_true(lack.tokens > 0);
		cover.amount = lack;
		if (end_it)
			rlmd_job_cancel(fixture.job);
		else
			assert_true(rlmd_account_set_cover(batch, &cover, NULL));
		drive(&fixture);
		assert_true(end_it ? !used(&fixture, "tokens")
				   : text_equal(output(&fixture), "the end"));
		end(&fixture);
		cover.amount.tokens = 1;
		assert_true(rlmd_account_set_cover(batch, &cover, NULL));
	}
	rlmd_account_unref(batch);
}

/* A limit of the job's own is not its batch's. */
static void test_whose_limit_it_was(void **state)
{
	struct rlmd_account *batch = rlmd_account_new("batch 7", NULL, NULL, NULL);
	struct stage_config config = usual;
	struct fixture fixture;

	(void)state;
	fake_model = final;
	config.account = batch;
	config.limits.tokens = 10;
	begin(&fixture, &config);
	drive(&fixture);
	assert_string_equal(member(fixture.result, "stopReason"), "max_tokens");
	assert_null(rlmd_result_limited_by(rlmd_job_result(fixture.job)));
	end(&fixture);
	rlmd_account_unref(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_batch_is_spent),
		cmocka_unit_test(test_a_call_waits_for_other_jobs),
		cmocka_unit_test(test_what_waits_for_other_jobs_may_end),
		cmocka_unit_test(test_a_call_waits_for_its_cover),
		cmocka_unit_test(test_whose_limit_it_was),
	};

	return cmocka_run_group_tests_name("above", tests, NULL, NULL);
}

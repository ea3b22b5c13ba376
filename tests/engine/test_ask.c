/* engine/ask: what is reserved for a call, and what it pays, in whatever way it ends. */
#include "engine/ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "engine/run_private.h"
#include "engine/stage.h"
#include "fake/model.h"

enum { TOKENS = 100000, KEPT = TOKENS / 10, LOWERED = 100 };

static struct rlmd_account *account;
static int64_t held[2];       /* reserved while its first calls are under way */
static int64_t max_tokens[2]; /* of these */
static size_t asked;
static int64_t at_once = 2; /* calls in flight */

static struct rlmd_spending spending(void)
{
	struct rlmd_spending spending = {.size = sizeof spending};

	assert_true(rlmd_account_save(account, &spending, NULL));
	return spending;
}

static void look(const struct llm_request *request)
{
	if (asked < 2) {
		held[asked] = spending().reserved_tokens;
		max_tokens[asked] = request->max_tokens;
	}
	asked++;
}

static const char *answering(const struct llm_request *request)
{
	look(request);
	return "FINAL(the end)";
}

static const char *failing_then(const struct llm_request *request)
{
	look(request);
	return asked == 1 ? "FINAL(the first)" : NULL;
}

static const char *calling(const struct llm_request *request)
{
	look(request);
	if (request->kind != LLM_TURN)
		return "fine";
	return request->turn ? "FINAL(the end)" : "```repl\nask\n```";
}

static void begin_question(struct fixture *fixture,
			   const char *(*model)(const struct llm_request *))
{
	const struct rlmd_account_limits limits = {sizeof limits, 0, TOKENS};
	struct stage_config config = usual;

	account = rlmd_account_new("batch 7", &limits, NULL, NULL);
	asked = fake_again = 0;
	fake_model = model;
	config.limits.cost = config.limits.tokens = BUDGET_UNLIMITED;
	config.max_parallel = at_once;
	config.account = account;
	begin(fixture, &config);
}

static void end_question(struct fixture *fixture)
{
	assert_int_equal(spending().reserved_tokens, 0);
	end(fixture);
	rlmd_account_unref(account);
	fake_broken = (struct llm_usage){0};
	fake_usage = NULL;
	fake_lowered = fake_attempts = 0;
}

/* An attempt that broke off before its usage was known may have cost all that was reserved for it:
 * that is taken from the budget, and the estimate is what is told. What is known is paid as it is.
 */
static void test_an_attempt_that_broke_off(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_broken = (struct llm_usage){.input = 10, .output = 5, .estimated = true};
	begin_question(&fixture, answering);
	drive(&fixture);
	assert_int_equal(fake_again, 1);
	assert_true(text_equal(output(&fixture), "the end"));
	assert_int_equal(used(&fixture, "tokens"), 30);
	assert_int_equal(spending().tokens, held[0] - KEPT + 15);
	end_question(&fixture);

	fake_broken = (struct llm_usage){.input = 10, .output = 5};
	begin_question(&fixture, answering);
	drive(&fixture);
	assert_int_equal(fake_again, 1);
	assert_int_equal(spending().tokens, 30);
	end_question(&fixture);
}

/* The reservation was for one attempt. */
static void test_another_attempt_must_be_affordable(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_broken = (struct llm_usage){.input = TOKENS - KEPT - 100};
	begin_question(&fixture, answering);
	drive(&fixture);
	assert_int_equal(fake_again, 0);
	assert_int_equal(asked, 0);
	assert_int_equal(spending().tokens, fake_broken.input);
	assert_int_equal(used(&fixture, "tokens"), fake_broken.input);
	end_question(&fixture);
}

static void on_lacks(void *owner, struct rlmd_amount needed)
{
	(void)owner;
	(void)needed;
}

/* Nothing is risked beyond what the account's host has said that it may have spent. */
static void test_another_attempt_must_be_covered(void **state)
{
	struct rlmd_account_cover cover = {sizeof cover, {INT64_MAX, 0}, on_lacks, NULL};
	struct fixture fixture;

	(void)state;
	begin_question(&fixture, answering);
	drive(&fixture);
	cover.amount.tokens = held[0] - KEPT;
	end_question(&fixture);

	begin_question(&fixture, answering);
	assert_true(rlmd_account_set_cover(account, &cover, NULL));
	drive(&fixture);
	assert_true(text_equal(output(&fixture), "the end")); /* for one it is enough */
	end_question(&fixture);

	fake_broken = (struct llm_usage){.input = 10, .output = 5};
	begin_question(&fixture, answering);
	assert_true(rlmd_account_set_cover(account, &cover, NULL));
	drive(&fixture);
	assert_int_equal(fake_again, 0);
	assert_int_equal(spending().tokens, 15);
	end_question(&fixture);
}

/* A reply that a low limit has cut: both attempts are paid for, and are one call. */
static void test_a_reply_that_was_cut(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_lowered = LOWERED;
	begin_question(&fixture, answering);
	drive(&fixture);
	assert_int_equal(asked, 2);
	assert_true(text_equal(output(&fixture), "the end"));
	assert_int_equal(used(&fixture, "llmCalls"), 1);
	assert_int_equal(used(&fixture, "tokens"), 30);
	assert_int_equal(spending().tokens, 30);
	end_question(&fixture);

	fake_lowered = LOWERED;
	begin_question(&fixture, failing_then); /* what there is stands */
	drive(&fixture);
	assert_int_equal(asked, 2);
	assert_true(text_equal(output(&fixture), "the first"));
	assert_int_equal(used(&fixture, "llmCalls"), 1);
	assert_int_equal(spending().tokens, 30);
	end_question(&fixture);
}

static int64_t first_bill;

static struct llm_usage billed(const struct llm_request *request)
{
	(void)request;
	return (struct llm_usage){.input = asked == 1 ? first_bill : 10};
}

/* It is asked for again with twice the limit that cut it, or not at all. */
static void test_room_for_a_reply_that_was_cut(void **state)
{
	struct fixture fixture;
	int64_t input;

	(void)state;
	begin_question(&fixture, answering);
	drive(&fixture);
	input = held[0] - KEPT - max_tokens[0];
	end_question(&fixture);
	for (int room = -1; room < 1; room++) {
		first_bill = TOKENS - KEPT - (input + 2 * LOWERED + room);
		fake_lowered = LOWERED;
		fake_attempts = 2; /* nothing is learned from the bill */
		fake_usage = billed;
		begin_question(&fixture, answering);
		drive(&fixture);
		assert_int_equal(asked, room < 0 ? 1 : 2);
		assert_true(text_equal(output(&fixture), "the end"));
		end_question(&fixture);
	}
}

/* The reserve for a forced answer is no more than that takes, once it is known: what code asks for
 * can have the rest. */
static void test_what_is_kept_is_adjusted(void **state)
{
	struct fixture fixture;

	(void)state;
	fake_attempts = 1;
	at_once = 1;
	begin_question(&fixture, calling);
	at_once = 2;
	drive(&fixture);
	assert_true(asked > 2);
	assert_true(held[0] - max_tokens[0] > KEPT);
	assert_true(held[1] - max_tokens[1] < KEPT);
	end_question(&fixture);
}

static void on_done(void *owner, const struct llm_response *response, const struct rlmd_error *err)
{
	(void)owner;
	(void)response;
	(void)err;
}

static int64_t held_with(struct fixture *fixture, struct rlmd_text schema)
{
	const struct llm_message messages[] = {{LLM_SYSTEM, text_of("be brief")},
					       {LLM_USER, text_of("the question")}};
	const struct ask_options options = {
		.caller = &fixture->job->task.root->caller,
		.request = {.model = "fake",
			    .messages = messages,
			    .message_count = 2,
			    .max_tokens = 100,
			    .deadline = INT64_MAX,
			    .kind = LLM_QUERY,
			    .schema = schema},
	};
	struct ask *ask = ask_start(&fixture->job->scope, &options, on_done, NULL);
	int64_t before = spending().reserved_tokens;

	for (int i = 0; i < 100; i++)
		event_base_loop(fixture->base, EVLOOP_NONBLOCK);
	before = spending().reserved_tokens - before;
	ask_cancel(ask);
	return before;
}

/* A schema goes with the request, and is billed like the rest of it. */
static void test_a_schema_is_paid_for(void **state)
{
	struct rlmd_text schema = text_of("{\"type\":\"object\",\"required\":[\"answer\"]}");
	struct fixture fixture;

	(void)state;
	begin_question(&fixture, answering);
	fake_holds = true;
	for (int i = 0; i < 100; i++)
		event_base_loop(fixture.base, EVLOOP_NONBLOCK);
	assert_int_equal(fake_calls, 1); /* the run's own */
	assert_int_equal(held_with(&fixture, schema) - held_with(&fixture, text_of("")),
			 text_tokens(schema));
	fake_holds = false;
	rlmd_job_cancel(fixture.job);
	drive(&fixture);
	end_question(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_attempt_that_broke_off),
		cmocka_unit_test(test_another_attempt_must_be_affordable),
		cmocka_unit_test(test_another_attempt_must_be_covered),
		cmocka_unit_test(test_a_reply_that_was_cut),
		cmocka_unit_test(test_room_for_a_reply_that_was_cut),
		cmocka_unit_test(test_what_is_kept_is_adjusted),
		cmocka_unit_test(test_a_schema_is_paid_for),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
